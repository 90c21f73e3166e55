"""What tells calls apart, read off the operands in less than a microsecond each.

    call_key("ij,j->i", (A, x))
    -> ("ij,j->i", (csr_array, float64, int32, 10, 4, 4), (float64, None, (4,)))

A key has all that plans depend on: types and dtypes, and sizes and numbers of entries as numbers of
bits, for they only decide between loop orders. Whether arrays are as long as they should be, sizes
agree, and so on is looked at in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.api.operands import layout
from taco_py.api.tensor import Tensor
from taco_py.storage.tensor_data import Array, TensorData

Signature = tuple[object, ...]

CONTIGUOUS = 0x0001  # in the flags of a NumPy array, as one number


def call_key(identity: Hashable, operands: Iterable[Any]) -> Signature | None:
    """The key of a call, None where an operand is of another type than those in READERS.

    identity  what is called: the text, the names of the operands, the options
    """
    try:
        return (identity, *[READERS[type(operand)](operand) for operand in operands])
    except (KeyError, AttributeError, TypeError, ValueError):
        return None


def of_array(array: Array) -> Signature:
    """Of an ndarray: the order of its strides if they are not those of a fresh array."""
    bits = tuple(map(int.bit_length, array.shape))
    if array.flags.num & CONTIGUOUS:
        return (array.dtype, None, bits)
    form, unit = layout(array)
    return (array.dtype, (form.mode_order, unit), bits)


def of_compressed(A: Any) -> Signature:  # noqa: N803
    """Of a CSR or CSC matrix."""
    rows, columns = A.shape
    values = A.data
    return (
        type(A), values.dtype, A.indices.dtype,
        len(values).bit_length(), rows.bit_length(), columns.bit_length(),
    )  # fmt: skip


def of_coo(A: Any) -> Signature:  # noqa: N803
    """Of a coordinate list of any order."""
    values = A.data
    kind = A.coords[0].dtype
    bits = map(int.bit_length, A.shape)
    return (type(A), values.dtype, kind, len(values).bit_length(), *bits)


def of_tensor(T: Tensor) -> Signature:  # noqa: N803
    """Of a Tensor, which is immutable and remembers it."""
    return T.remember(of_data)


def of_data(data: TensorData) -> Signature:
    """Of a Tensor's arrays."""
    if data.format.is_dense:
        return (Tensor, str(data.format), of_array(data.values))
    kinds = [a.dtype for level in data.levels for a in (level.pos, level.crd) if a is not None]
    order = tuple(level.ordered for level in data.format.levels)
    bits = map(int.bit_length, (data.nnz, *data.shape))
    return (Tensor, str(data.format), order, data.dtype, *kinds, *bits)


def of_number(number: complex) -> Signature:
    """Of a Python number; ValueError for integers of more than 64 bits, whose dtype is another."""
    if type(number) is int and not -(2**63) <= number < 2**63:
        raise ValueError
    return (type(number),)


READERS: Mapping[type, Callable[[Any], Signature]] = {
    np.ndarray: of_array,
    sp.csr_array: of_compressed,
    sp.csr_matrix: of_compressed,
    sp.csc_array: of_compressed,
    sp.csc_matrix: of_compressed,
    sp.coo_array: of_coo,
    sp.coo_matrix: of_coo,
    Tensor: of_tensor,
    float: of_number,
    int: of_number,
    complex: of_number,
    bool: of_number,
}
