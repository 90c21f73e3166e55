"""NumPy's products, by the labels of their modes or by other products.

np.vecdot(x, y)   →   sum(conj(x) * y) along the last mode
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import listed_axes, place_of, places_of
from taco_py.arrays.numpy_surface.layouts import stack, unstack
from taco_py.arrays.numpy_surface.surface_operands import operands
from taco_py.language.diagnostics.errors import DimensionError, OperandError

Labels = tuple[int, ...]
"""A number for each mode of an operand; modes of one number are multiplied with each other."""


def label_matmul(m: int, n: int) -> tuple[Labels, Labels, Labels]:
    """Return the labels of both operands of orders m and n, and of their product of matrices.

    Raises DimensionError for numbers.
    """
    if not m or not n:
        raise DimensionError(
            "Expected arrays of order 1 or more for @, found a number", hint="write * for it"
        )
    stacks = max(m, n, 2) - 2
    row, inner, column = ((stacks,), (stacks + 1,), (stacks + 2,))
    rows, columns = row * (m > 1), column * (n > 1)
    left = (*range(stacks - max(m - 2, 0), stacks), *rows, *inner)
    right = (*range(stacks - max(n - 2, 0), stacks), *inner, *columns)
    return left, right, (*range(stacks), *rows, *columns)


def check_inner_sizes(one: Any, other: Any, equal: bool) -> None:
    """Raise DimensionError where a product of matrices has modes of unequal sizes to sum over."""
    if not equal:
        raise DimensionError(
            f"Expected as many columns as the other has rows for @, found {one} and {other}",
            hint="transpose one of them, as in A.T @ B",
        )


def label_tensordot(m: int, n: int, axes: Any) -> tuple[Labels, Labels, Labels]:
    """Return the labels of both operands of orders m and n, and of np.tensordot of them.

    axes  a number of modes, the last of the first and the first of the second operand, or the modes
          of each operand
    """
    if np.ndim(axes) == 0 and not isinstance(axes, Sequence):
        count = int(axes)
        axes = (range(m - count, m), range(count))
    pairs = [
        places_of(listed_axes(modes), order) for modes, order in zip(axes, (m, n), strict=True)
    ]
    left = tuple(range(m))
    summed = dict(zip(pairs[1], pairs[0], strict=True))
    right = tuple(summed.get(place, m + place) for place in range(n))
    return left, right, tuple(x for x in (*left, *right) if x not in pairs[0])


def dot(a: Any, b: Any) -> Any:
    """Sum products over the last mode of one and the last but one of the other."""
    a, b = operands(a, b)
    m, n = np.ndim(a), np.ndim(b)
    if not m or not n:
        return a * b
    if max(m, n) <= 2:
        return np.matmul(a, b)
    return np.tensordot(a, b, ((m - 1,), (max(n - 2, 0),)))


def inner(a: Any, b: Any) -> Any:
    """Sum products over the last modes of both."""
    a, b = operands(a, b)
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    return np.tensordot(a, b, ((a.ndim - 1,), (b.ndim - 1,)))


def vdot(a: Any, b: Any) -> Any:
    """Sum the products of all elements, the first ones conjugate."""
    one, two = (x.ravel() for x in operands(a, b))
    return _conjugate(one) @ two


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Sum products along a mode, the first ones conjugate. Raises DimensionError."""
    one, two = operands(x1, x2)
    m, n = (x.shape[place_of(axis, x.ndim)] for x in (one, two))
    if m != n:
        raise DimensionError(
            f"Expected modes of one size to sum over, found {m} and {n}",
            hint="they do not stretch",
        )
    products = _conjugate(one) * two
    return products.sum(axis, dtype=products.dtype)


def _conjugate(x: Any) -> Any:
    return x.conj() if x.dtype.kind == "c" else x


def kron(a: Any, b: Any) -> Any:
    """Multiply each element of one array by all of the other."""
    one, two = operands(a, b)
    order = max(np.ndim(one), np.ndim(two))
    if not order:
        return one * two
    one, two = (
        np.expand_dims(x, tuple(range(order - np.ndim(x)))) if np.ndim(x) < order else x
        for x in (one, two)
    )
    sizes = tuple(n * m for n, m in zip(one.shape, two.shape, strict=True))
    left = np.expand_dims(one, tuple(range(1, 2 * order, 2)))
    right = np.expand_dims(two, tuple(range(0, 2 * order, 2)))
    return np.reshape(left * right, sizes)


def cross(a: Any, b: Any, axis: int = -1) -> Any:
    """Compute cross products of vectors of three elements along a mode."""
    arrays = operands(a, b)
    places = [place_of(axis, x.ndim) for x in arrays]
    sizes = [int(x.shape[place]) for x, place in zip(arrays, places, strict=True)]
    if sizes != [3, 3]:
        raise DimensionError(
            f"Expected modes of size 3, found {sizes[0]} and {sizes[1]}", hint="axis= names them"
        )
    (a0, a1, a2), (b0, b1, b2) = (
        unstack(x, axis=place) for x, place in zip(arrays, places, strict=True)
    )
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis)


def multi_dot(arrays: Sequence[Any]) -> Any:
    """Multiply matrices in the order that costs least; the outer ones may be vectors."""
    parts = operands(*arrays)
    if len(parts) < 2:
        raise OperandError(
            "Expected two arrays or more, found fewer", hint="np.linalg.multi_dot([A, B])"
        )
    labels: list[list[int]] = [[place, place + 1] for place in range(len(parts))]
    labels[0] = labels[0][-parts[0].ndim :]
    labels[-1] = labels[-1][: parts[-1].ndim]
    ends = [*labels[0][:-1], *labels[-1][1:]]
    return np.einsum(*(part for pair in zip(parts, labels, strict=True) for part in pair), ends)
