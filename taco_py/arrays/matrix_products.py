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
from taco_py.arrays.elementwise import NUMBERS, as_tensor
from taco_py.arrays.numpy_surface import composed_products
from taco_py.arrays.numpy_surface.composed_products import (
    Labels,
    check_inner_sizes,
    label_matmul,
    label_tensordot,
)
from taco_py.arrays.shapes import expand_dims, squeeze
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
    left, right, result = label_matmul(len(one.shape), len(other.shape))
    inner = one.shape[-1], other.shape[max(len(other.shape) - 2, 0)]
    check_inner_sizes(one.shape, other.shape, inner[0] == inner[1])
    stacks = max(len(left), len(right)) - 2
    letters = ascii_letters[3 : 3 + stacks] + "abc"
    one, left = _without_ones(one, left, stacks)
    other, right = _without_ones(other, right, stacks)
    present = tuple(label for label in result if label in left + right)
    product = _einsum((left, right, present), letters, one, other)
    missing = tuple(place for place, label in enumerate(result) if label not in present)
    return expand_dims(product, missing) if missing else product


def _without_ones(obj: Any, labels: Labels, stacks: int) -> tuple[Any, Labels]:
    """Leave out the modes of size 1 of a stack; return the operand and the labels of its modes."""
    ones = tuple(n for n, label in enumerate(labels) if label < stacks and obj.shape[n] == 1)
    if ones:
        obj = squeeze(obj, ones) if isinstance(obj, Tensor) else np.squeeze(obj, ones)
    return obj, tuple(label for n, label in enumerate(labels) if n not in ones)


def _einsum(labels: Sequence[Labels], letters: str, one: Any, other: Any) -> Any:
    """Compute a product by the labels of both operands and of the result."""
    left, right, result = ("".join(letters[label] for label in part) for part in labels)
    return as_tensor(einsum(f"{left},{right}->{result}", one, other))


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


def dot(one: Any, other: Any) -> Any:
    """Sum products over the last mode of one and the last but one of the other, as np.dot.

    Raises OperandTypeError for an object that is no array.
    """
    return composed_products.dot(_only_array(one), _only_array(other))


def tensordot(one: Any, other: Any, axes: Any = 2) -> Any:
    """Sum products over pairs of modes: those in `axes`, or the last and first few.

    axes  a number of modes, or the modes of each operand

    Raises OperandTypeError for an object that is no array, DimensionError for sizes that do not
    fit.
    """
    one, other = _only_array(one), _only_array(other)
    labels = label_tensordot(len(one.shape), len(other.shape), axes)
    left, right = (
        dict(zip(part, x.shape, strict=True)) for part, x in ((labels[0], one), (labels[1], other))
    )
    first, second = ([part[x] for x in left if x in right] for part in (left, right))
    if first != second:
        raise DimensionError(
            f"Expected modes of equal sizes to sum over, found {first} and {second}",
            hint="axes=([modes of the first], [modes of the second]) pairs them",
        )
    return _einsum(labels, ascii_letters, one, other)
