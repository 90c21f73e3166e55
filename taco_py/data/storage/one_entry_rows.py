"""Positions as the coordinates of a tensor with one entry a row.

p = [2, 0, 2], below 4    →    0 0 1 0
                               1 0 0 0
                               0 0 1 0

Rows are counted by the modes of the positions; the positions are read in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.formats import LETTERS, Format


@lru_cache(64)
def form_of_rows(order: int, column: int) -> Format:
    """Return the format of rows of one entry, whose positions stand in the mode `column`."""
    rows = (mode for mode in range(order) if mode != column)
    return Format((*(LETTERS["d"],) * (order - 1), LETTERS["s"]), (*rows, column))


def one_entry_rows(crd: Array, shape: Sequence[int], column: int, dtype: DTypeLike) -> TensorData:
    """Return a tensor that is 1 at each position, and 0 elsewhere.

    crd     a position for each row, in the type of coordinates
    column  the mode that positions are of
    """
    order = len(shape)
    last = LevelArrays(np.arange(len(crd) + 1, dtype=crd.dtype), np.ascontiguousarray(crd))
    levels: tuple[Any, ...] = (*(LevelArrays(),) * (order - 1), last)
    values = np.ones(len(crd), dtype)
    form = form_of_rows(order, column)
    return TensorData(form, tuple(shape), levels, values, sorted=True, unique=True)
