"""The stored entries of a tensor, grouped by the lines along one mode.

    T[:, 3] is a line along mode 0: entries that differ in this coordinate alone

Sorting, scans and places of extrema work line by line, and never make an array of all elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.coordinates import ascends, fuse, sort_keys
from taco_py.data.storage.pack import canonical, unpack
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.fill import as_number


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Entries in the order of their lines, within each by coordinate.

    columns  one array of coordinates for each mode
    values   one number for each entry
    axis     the mode along which lines run
    size     the number of elements of a line
    starts   the first entry of each line, and last the number of entries
    """

    columns: tuple[Array, ...]
    values: Array
    axis: int
    size: int
    starts: Array

    @property
    def counts(self) -> Array:
        """Return the number of entries of each line."""
        return np.diff(self.starts)

    @property
    def line(self) -> Array:
        """Return for each entry the number of its line."""
        return np.repeat(np.arange(len(self.starts) - 1), self.counts)

    @property
    def rank(self) -> Array:
        """Return for each entry its number within the line."""
        ranks: Array = np.arange(len(self.values)) - np.repeat(self.starts[:-1], self.counts)
        return ranks

    @property
    def places(self) -> Array:
        """Return for each entry its coordinate along the line."""
        return self.columns[self.axis].astype(np.int64, copy=False)

    def heads(self) -> list[Array]:
        """Return the coordinates of each line, without those along it."""
        first = self.starts[:-1]
        return [column[first] for mode, column in enumerate(self.columns) if mode != self.axis]


def lines_along(data: TensorData, axis: int) -> Lines:
    """Group a tensor's entries by its lines along a mode; the tensor has sparse levels."""
    columns, values = unpack(canonical(data))
    other_modes = [mode for mode in range(len(data.shape)) if mode != axis]
    if not len(values):
        return Lines(columns, values, axis, data.shape[axis], np.zeros(1, np.int64))
    modes = [*other_modes, axis]
    keys = fuse([columns[m] for m in modes], [data.shape[m] for m in modes])
    if not ascends(keys, strictly=True).all():
        _, order = sort_keys(keys)
        columns, values = tuple(column[order] for column in columns), values[order]
    begins = _begins([columns[m] for m in other_modes], len(values))
    starts = np.flatnonzero(np.append(begins, True))
    return Lines(columns, values, axis, data.shape[axis], starts)


def _begins(columns: Sequence[Array], count: int) -> Array:
    """Tell whether each entry's coordinates differ from the coordinates of the entry before it."""
    begins = np.zeros(count, np.bool_)
    begins[0] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins


def fill_number(data: TensorData) -> Any:
    """Return the number that elements have where nothing is stored."""
    return as_number(data.fill, data.dtype)
