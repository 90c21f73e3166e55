"""Keys that identify calls, read from the operands in less than a microsecond each.

    call_key("ij,j->i", (A, x))
    -> ("ij,j->i", (csr_array, float64, int32, 10, 4, 4), (float64, None, (4,)))

A key has every fact that plans depend on: types and dtypes, and sizes and numbers of entries as
numbers of bits, for they only decide between loop orders. Lengths of arrays, agreement of sizes,
and so on are checked in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.data.storage.borrow import DTYPES
from taco_py.data.storage.size_classes import size_classes
from taco_py.language.notation.functions.defined import DEFINED, bodies_in

Array = np.ndarray[Any, Any]
Signature = tuple[object, ...]

CONVERTED_TYPES = tuple(
    getattr(sp, f"{form}_{family}") for form in ("lil", "dok") for family in ("array", "matrix")
)
COUNTS = (type(None), int)
"""The types of numbers of threads that keys distinguish; True is no number of threads."""
CONTIGUOUS = 0x0001  # in the flags of a NumPy array, as one number


def call_key(identity: Hashable, operands: Iterable[Any]) -> Signature | None:
    """Return the key of a call, None for an operand of an unknown type.

    identity  the text, the names of the operands, the options
    """
    key: list[object] = [identity]
    if DEFINED.bodies:  # texts may name functions of users, which have bodies
        for operand in identity if isinstance(identity, tuple) else (identity,):
            key.extend(bodies_in(operand, DEFINED.bodies))
    try:
        for operand in operands:
            key.append(READERS.get(type(operand), of_tensor)(operand))
    except (AttributeError, TypeError, ValueError):
        return None
    return tuple(key)


def options_key(out: Any, dtype: Any, *options: Any) -> Signature:
    """Return the key of rarely used options; equal values of different types differ."""
    return (None if out is None else (type(out), getattr(out, "dtype", None)), dtype, repr(options))


def by_outputs(outputs: Any, format: Any, out: Any) -> tuple[Signature, Any, tuple[Any, ...]]:
    """Return the key of a call with several outputs, and its output arrays.

    The second item is `out` for `options_key`, the third has the arrays in the order of the
    outputs.

    ("P", "z"), {"P": "ds"}, {"z": array}   ->   the array of z
    """
    names = tuple(outputs) if isinstance(outputs, list | tuple) else outputs
    forms = tuple(format.items()) if isinstance(format, Mapping) else format
    if not isinstance(out, Mapping):
        return ("outputs", names, forms), out, () if out is None else (out,)
    order = names if isinstance(names, tuple) else (names,)
    ordered = dict.fromkeys((*(name for name in order if name in out), *out))
    arrays = {name: out[name] for name in ordered if out[name] is not None}
    kinds = tuple((n, type(array), getattr(array, "dtype", None)) for n, array in arrays.items())
    return ("outputs", names, forms, kinds), None, tuple(arrays.values())


def parted(operands: tuple[Any, ...]) -> tuple[object, tuple[Any, ...]]:
    """Separate einsum's subscripts from its operands, in either of its forms."""
    if type(operands[0]) is str:
        return operands[0], operands[1:]
    return interleaved(operands)


def interleaved(operands: Sequence[Any]) -> tuple[object, tuple[Any, ...]]:
    """Return the key of einsum's integer form, and the tensors in it."""
    pairs = len(operands) // 2 * 2
    subscripts = (*operands[1:pairs:2], *operands[pairs:])
    if all(type(sublist) in (list, tuple) for sublist in subscripts):
        return ("interleaved", repr(subscripts)), tuple(operands[:pairs:2])
    return ("interleaved", None), (None,)  # of no signature


def of_tensor(T: Any) -> Signature:  # noqa: N803
    """Return the cached signature of a Tensor. Raises AttributeError for other objects."""
    signature: Signature = T.signature()
    return signature


def of_array(array: Array) -> Signature:
    """Return the signature of an ndarray; it includes the order of unusual strides."""
    sizes = size_classes(array.shape)
    if array.flags.num & CONTIGUOUS:
        return (array.dtype, None, sizes)
    modes, unit = stride_order(array)
    return (array.dtype, modes, unit, contiguous_pairs(array, modes), sizes)


def stride_order(array: Array) -> tuple[tuple[int, ...], bool]:
    """Return the modes by descending stride, and whether the smallest stride is one element."""
    natural, shape = tuple(range(array.ndim)), array.shape
    flags = array.flags
    if flags.c_contiguous or not shape:
        return natural, True
    if flags.f_contiguous and min(shape) > 1:
        return natural[::-1], True
    long = [abs(s) if n > 1 else 0 for s, n in zip(array.strides, shape, strict=True)]
    modes = tuple(sorted(natural, key=long.__getitem__, reverse=True))
    if 0 in long:
        modes = natural if array.strides[-1] == array.itemsize else modes
    return modes, array.strides[modes[-1]] == array.itemsize


def contiguous_pairs(array: Array, modes: tuple[int, ...]) -> tuple[bool, ...]:
    """Tell for each stored mode but the last whether it is contiguous with the next.

    Its stride is then the size of the next mode times that mode's stride.
    """
    if array.flags.c_contiguous:
        return (True,) * (array.ndim - 1)
    shape, strides = array.shape, array.strides
    return tuple(
        strides[mode] == shape[after] * strides[after] != 0 for mode, after in pairwise(modes)
    )


def of_compressed(A: Any) -> Signature:  # noqa: N803
    """Return the signature of a CSR or CSC matrix."""
    rows, columns = A.shape
    values = A.data
    return (
        type(A), values.dtype, A.indices.dtype,
        len(values).bit_length(), rows.bit_length(), columns.bit_length(),
    )  # fmt: skip


def of_blocks(A: Any) -> Signature:  # noqa: N803
    """Return the signature of a bsr matrix, with the size of its blocks."""
    rows, columns = A.shape
    values = A.data
    return (
        type(A), values.dtype, A.indices.dtype, values.shape[1:],
        values.size.bit_length(), rows.bit_length(), columns.bit_length(),
    )  # fmt: skip


def of_diagonals(A: Any) -> Signature:  # noqa: N803
    """Return the signature of a dia matrix, with its number of diagonals and whether they are
    full."""
    rows, columns = A.shape
    values = A.data
    are_full = values.ndim == 2 and values.shape[1] == columns
    return (
        type(A), values.dtype, are_full, len(values), rows.bit_length(), columns.bit_length(),
    )  # fmt: skip


def of_coo(A: Any) -> Signature:  # noqa: N803
    """Return the signature of a coordinate list of any order."""
    values = A.data
    kind = A.coords[0].dtype
    bits = map(int.bit_length, A.shape)
    return (type(A), values.dtype, kind, len(values).bit_length(), *bits)


def of_other(A: Any) -> Signature:  # noqa: N803
    """Return the signature of a scipy.sparse array that is converted before use."""
    return (type(A), A.dtype, A.nnz.bit_length(), *map(int.bit_length, A.shape))


def of_scalar(number: Any) -> Signature:
    """Return the signature of a NumPy scalar."""
    return (type(number),)


def of_number(number: complex) -> Signature:
    """Return the signature of a Python number. Raises ValueError for more than 64 bits."""
    if type(number) is int and not -(2**63) <= number < 2**63:
        raise ValueError
    return (type(number),)


READERS: Mapping[type, Callable[[Any], Signature]] = {
    np.ndarray: of_array,
    sp.csr_array: of_compressed,
    sp.csr_matrix: of_compressed,
    sp.csc_array: of_compressed,
    sp.csc_matrix: of_compressed,
    sp.bsr_array: of_blocks,
    sp.bsr_matrix: of_blocks,
    sp.dia_array: of_diagonals,
    sp.dia_matrix: of_diagonals,
    sp.coo_array: of_coo,
    sp.coo_matrix: of_coo,
    **dict.fromkeys((dtype.type for dtype in DTYPES), of_scalar),
    **dict.fromkeys(CONVERTED_TYPES, of_other),
    float: of_number,
    int: of_number,
    complex: of_number,
    bool: of_number,
}
