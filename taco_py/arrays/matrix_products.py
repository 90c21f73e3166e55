"""Products of Tensors and arrays, as NumPy's: einsum whose subscripts follow from the orders.

A @ B            "ij,jk->ik"          of matrices
A @ x            "ij,j->i"
A @ B            "aij,ajk->aik"       of stacks; modes of size 1 stretch
tensordot(A, B, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.api.einsum import einsum
from taco_py.arrays.elementwise import NUMBERS, as_tensor, elementwise
from taco_py.arrays.shapes import expand_dims, place_of, squeeze
from taco_py.data.interop.foreign import kind_of
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, OperandTypeError


def matmul(one: Any, other: Any) -> Any:
    """Multiply matrices, vectors or stacks of matrices.

    Returns a Tensor, a number for two vectors, or NotImplemented for other objects. Raises
    DimensionError for scalars and sizes that do not fit.
    """
    one, other = _array(one), _array(other)
    if one is NotImplemented or other is NotImplemented:
        return NotImplemented
    m, n = len(one.shape), len(other.shape)
    if not m or not n:
        raise DimensionError(
            "Expected tensors of order 1 or more for @, found a number", hint="write * for it"
        )
    if one.shape[-1] != other.shape[max(n - 2, 0)]:
        raise DimensionError(
            f"Expected as many columns as rows for @, found shapes {one.shape} and {other.shape}",
            hint="transpose one of them, as in A.T @ B",
        )
    stacks = ascii_letters[3 : 3 + max(m, n) - 2] if max(m, n) > 2 else ""
    one, left = _of_stack(one, stacks, "ab" if m > 1 else "b")
    other, right = _of_stack(other, stacks, "bc" if n > 1 else "b")
    stack_letters = "".join(s for s in stacks if s in left + right)
    result = stack_letters + ("a" if m > 1 else "") + ("c" if n > 1 else "")
    products = as_tensor(einsum(f"{left},{right}->{result}", one, other))
    return _with_stacks(products, stacks, stack_letters)


def _array(obj: Any) -> Any:
    """Return an operand of einsum, or NotImplemented for an object that is no array."""
    if isinstance(obj, list | tuple):
        obj = np.asarray(obj)
    is_array = isinstance(obj, (Tensor, np.ndarray, *NUMBERS)) or sp.issparse(obj)
    if not is_array:
        return NotImplemented
    return np.asarray(obj) if isinstance(obj, NUMBERS) else obj


def _only_array(obj: Any) -> Any:
    """Return an operand of einsum. Raises OperandTypeError for an object that is no array."""
    array = _array(obj)
    if array is NotImplemented:
        raise OperandTypeError(
            f"Expected an array to multiply a Tensor with, found {kind_of(obj)}",
            hint="tp.tensor reads arrays of other libraries",
        )
    return array


def _of_stack(obj: Any, stacks: str, matrix_letters: str) -> tuple[Any, str]:
    """Leave out a stack's modes of size 1; return the operand and the letters of its modes."""
    count = len(obj.shape) - len(matrix_letters)
    letters = stacks[len(stacks) - count :] if count else ""
    ones = [place for place in range(count) if obj.shape[place] == 1]
    if ones:
        obj = squeeze(obj, ones) if isinstance(obj, Tensor) else np.squeeze(obj, tuple(ones))
    return obj, "".join(s for n, s in enumerate(letters) if n not in ones) + matrix_letters


def _with_stacks(products: Any, stacks: str, kept_letters: str) -> Any:
    """Add the modes of size 1 that all operands have."""
    missing = tuple(place for place, letter in enumerate(stacks) if letter not in kept_letters)
    return expand_dims(products, missing) if missing else products


def dot(one: Any, other: Any) -> Any:
    """Sum products over the last mode of one and the last but one of the other, as np.dot."""
    m, n = (len(getattr(operand, "shape", ())) for operand in (one, other))
    if not m or not n:
        return elementwise("multiply", one, other)
    return tensordot(one, other, ((m - 1,), (max(n - 2, 0),)))


def tensordot(one: Any, other: Any, axes: Any = 2) -> Any:
    """Sum products over pairs of modes: those in `axes`, or the last and first few.

    axes  a number of modes, or the modes of each operand

    Raises OperandTypeError for an object that is no array, DimensionError for sizes that do not
    fit.
    """
    one, other = _only_array(one), _only_array(other)
    m, n = len(one.shape), len(other.shape)
    if isinstance(axes, int | np.integer):
        axes = (range(m - int(axes), m), range(int(axes)))
    pairs = zip(axes, (m, n), strict=True)
    left, right = ([place_of(a, order) for a in _as_axes(modes)] for modes, order in pairs)
    sizes = [[x.shape[a] for a in modes] for x, modes in ((one, left), (other, right))]
    if sizes[0] != sizes[1]:
        raise DimensionError(
            f"Expected modes of equal sizes to sum over, found {sizes[0]} and {sizes[1]}",
            hint="axes=([modes of the first], [modes of the second]) pairs them",
        )
    first, second = list(ascii_letters[:m]), list(ascii_letters[m : m + n])
    for a, b in zip(left, right, strict=True):
        second[b] = first[a]
    result_letters = [s for k, s in enumerate(first) if k not in left]
    result_letters += [s for k, s in enumerate(second) if k not in right]
    text = f"{''.join(first)},{''.join(second)}->{''.join(result_letters)}"
    return as_tensor(einsum(text, one, other))


def _as_axes(axis: Any) -> Sequence[Any]:
    return tuple(axis) if isinstance(axis, Sequence | np.ndarray) else (axis,)
