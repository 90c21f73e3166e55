"""What is counted of a matrix before its format is chosen: all rows' lengths, and a sample.

rows of CSR   →   pieces of adjacent rows with some 33 000 entries   →   distinct blocks, diagonals
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from taco_py.data.storage.tensor_data import Array, TensorData

SAMPLE = 1 << 15
"""The approximate number of sampled entries."""
PIECES = 32
"""The number of pieces of adjacent rows in a sample."""
PIECE_ROWS = 24
"""A common multiple of the rows of slices and blocks."""
PAIRS = 2000
"""Entries whose mirror images are looked up."""


class MatrixSample:
    """A sample of the entries of CSR with sorted columns and without duplicates.

    data  the matrix; all entries in pieces of adjacent rows are sampled, when they are asked for
    """

    def __init__(self, data: TensorData) -> None:
        self.data = data
        self._blocks: dict[tuple[int, int], float] = {}
        self._slots: dict[int, float] = {}

    @cached_property
    def places(self) -> tuple[Array, Array]:
        """Return rows and columns of the sampled entries."""
        return _sampled(self.data)

    @property
    def rows(self) -> Array:
        """Return the rows of the sampled entries."""
        return self.places[0]

    @property
    def columns(self) -> Array:
        """Return the columns of the sampled entries."""
        return self.places[1]

    @property
    def entries(self) -> int:
        """Return the number of sampled entries, at least 1."""
        return max(1, len(self.rows))

    @cached_property
    def lengths(self) -> Array:
        """Return the number of entries of each row of the matrix."""
        pos = self.data.levels[1].pos
        assert pos is not None
        return np.diff(pos)

    @property
    def index_bytes(self) -> int:
        """Return the bytes of a coordinate."""
        crd = self.data.levels[1].crd
        return 4 if crd is None else crd.dtype.itemsize

    def blocks(self, rows: int, columns: int) -> float:
        """Return the blocks with an entry, for each entry."""
        if (rows, columns) not in self._blocks:
            distinct = count_distinct(self.rows // rows, self.columns // columns)
            self._blocks[rows, columns] = distinct / self.entries
        return self._blocks[rows, columns]

    def slots(self, height: int) -> float:
        """Return the diagonals of slices of rows, for each entry."""
        if height not in self._slots:
            distinct = count_distinct(self.rows // height, self.columns - self.rows)
            self._slots[height] = distinct / self.entries
        return self._slots[height]

    @cached_property
    def diagonals(self) -> int:
        """Return the number of distinct diagonals of the sample."""
        return count_distinct(np.zeros_like(self.rows), self.columns - self.rows)

    def padded(self, height: int) -> float:
        """Return the values of slots as wide as the longest row of each slice, for each entry.

        height  rows of a slice; 0 for all rows
        """
        lengths = self.lengths
        if not height:
            return float(lengths.max(initial=0)) * len(lengths) / max(1, self.data.nnz)
        starts = np.arange(0, len(lengths), height)
        longest = np.maximum.reduceat(lengths, starts) if len(starts) else lengths
        return height * float(longest.sum()) / max(1, self.data.nnz)

    @cached_property
    def mirrored(self) -> float:
        """Return the share of sampled entries off the diagonal whose mirror images are equal."""
        if self.data.shape[0] != self.data.shape[1]:
            return 0.0
        step = max(1, len(self.rows) // PAIRS)
        rows, columns = self.rows[::step], self.columns[::step]
        off = rows != columns
        places, mirrors = self._find(rows[off], columns[off]), self._find(columns[off], rows[off])
        values = self.data.values
        equal = (mirrors >= 0) & (values[mirrors] == values[places])
        return float(equal.mean()) if len(equal) else 1.0

    @cached_property
    def has_equal_values(self) -> bool:
        """Tell whether all values are one number other than 0."""
        values = self.data.values[: self.data.nnz]
        if not len(values) or values[0] != values[0] or values[0] == 0:
            return False
        return bool((values[:64] == values[0]).all() and (values == values[0]).all())

    def _find(self, rows: Array, columns: Array) -> Array:
        """Return the position of each entry, -1 where there is none: a binary search in its row."""
        pos, crd = self.data.levels[1].pos, self.data.levels[1].crd
        assert pos is not None and crd is not None
        low, end = pos[rows].astype(np.int64), pos[rows + 1].astype(np.int64)
        high = end.copy()
        while (low < high).any():
            middle = (low + high) // 2
            before = (low < high) & (crd[np.minimum(middle, len(crd) - 1)] < columns)
            high = np.where(before | (low >= high), high, middle)
            low = np.where(before, middle + 1, low)
        is_there = (low < end) & (crd[np.minimum(low, len(crd) - 1)] == columns)
        return np.where(is_there, low, -1)


def _sampled(data: TensorData) -> tuple[Array, Array]:
    """Return rows and columns of a sample of entries: all entries in pieces of adjacent rows."""
    pos, crd = data.levels[1].pos, data.levels[1].crd
    assert pos is not None and crd is not None
    count = data.shape[0]
    piece_rows = max(1, SAMPLE * count // max(1, data.nnz) // PIECES)
    piece_rows = -(-piece_rows // PIECE_ROWS) * PIECE_ROWS
    starts = [piece * count // PIECES // PIECE_ROWS * PIECE_ROWS for piece in range(PIECES)]
    ends = [0, *(min(start + piece_rows, count) for start in starts)]
    begins = [max(start, end) for start, end in zip(starts, ends[:-1], strict=True)]
    pieces = zip(begins, ends[1:], strict=True)
    picked = [np.arange(begin, end) for begin, end in pieces if begin < end] or [np.arange(0)]
    while len(picked) > 1 and sum(int(pos[r[-1] + 1] - pos[r[0]]) for r in picked) > 2 * SAMPLE:
        picked = picked[::2]  # rows are long
    sampled = np.concatenate(picked)
    lengths = pos[sampled + 1] - pos[sampled]
    rows = np.repeat(sampled, lengths)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows, crd[np.repeat(pos[sampled].astype(np.int64), lengths) + offsets].astype(np.int64)


def count_distinct(outer: Array, inner: Array) -> int:
    """Count the distinct pairs."""
    if not len(outer):
        return 0
    low = int(inner.min())
    width = int(inner.max()) - low + 1
    keys = np.sort(outer.astype(np.int64) * width + (inner - low))  # faster than hashed
    return 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))
