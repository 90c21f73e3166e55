"""Searches for nonzero elements of an array, or rows with some. -0.0 is zero, nan is not."""

from __future__ import annotations

from functools import reduce
from math import gcd

import numpy as np
from numpy.typing import NDArray

from taco_py.data.storage.tensor_data import Array

PIECE = 2**20
"""The number of elements that are compared with zero at a time, so that results stay in a cache."""
NARROW = 32
"""The number of words of a row up to which loops over columns are faster than over rows."""


def nonzero_places(vector: Array) -> NDArray[np.intp]:
    """Return the places of the nonzero elements.

    `np.flatnonzero` is five times faster on booleans than on real numbers.
    """
    return np.flatnonzero(are_nonzero(np.ascontiguousarray(vector).reshape(-1, 1)))


def are_nonzero(blocks: Array) -> NDArray[np.bool_]:
    """Tell which rows have a nonzero element.

    The first element is tested separately: in most results it is nonzero in every stored row.
    """
    count, width = blocks.shape
    if width == 0:
        return np.zeros(count, dtype=np.bool_)
    if width == 1 and blocks.dtype == np.bool_:
        return blocks[:, 0]
    if blocks.dtype.kind == "c":
        blocks = blocks.view(blocks.real.dtype)  # twice as wide, but compared several times faster
    nonzero: NDArray[np.bool_] = blocks[:, 0] != blocks.dtype.type(0)
    if blocks.shape[1] == 1:
        return nonzero
    rest = np.flatnonzero(~nonzero)
    if 2 * len(rest) > count:
        return any_nonzero(blocks)
    nonzero[rest] = any_nonzero(blocks.take(rest, axis=0))
    return nonzero


def any_nonzero(rows: Array) -> NDArray[np.bool_]:
    """Tell which rows have a nonzero element, by reading all elements.

    The comparisons of a row, a byte each, are combined as words of up to 8 bytes: NumPy's `any`
    over the last axis takes 15 ns to begin a row, as long as for 100 elements.
    """
    count, width = rows.shape
    zero = rows.dtype.type(0)
    nonzero = np.empty(count, dtype=np.bool_)
    step = max(1, PIECE // width)
    for start in range(0, count, step):
        words = (rows[start : start + step] != zero).view(f"u{gcd(width, 8)}")
        narrow = words.shape[1] <= NARROW
        combined = reduce(np.bitwise_or, words.T) if narrow else words.any(axis=1)
        np.not_equal(combined, 0, out=nonzero[start : start + step])
    return nonzero
