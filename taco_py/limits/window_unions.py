"""How many coordinates neighbouring rows of a sparse operand have together.

    rows {0, 2}, {2}, {5}, {2, 5}   →   windows of 2 rows: {0, 2} and {2, 5}, 2 on average

A dense operand that is read at these coordinates is read there once at least while the window runs.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.cost.spread import Entries
from taco_py.storage.pack import expand

COUNTED = 1 << 16
"""Entries up to which all are looked at; of more so many neighbours in the middle."""


@dataclass(frozen=True, slots=True, eq=False)
class Unions:
    """The coordinates of the levels of an operand, by windows of its outermost level."""

    entries: Entries

    def distinct(self, level: int, rows: float) -> float:
        """The coordinates of a level in so many neighbouring rows, on average."""
        count = max(1, round(rows))
        return self.entries.recall(("union", level, count), lambda: self._distinct(level, count))

    def _distinct(self, level: int, rows: int) -> float:
        data = self.entries.data
        outer, inner = self._middle(0), self._middle(level)
        if not outer.size:
            return 0.0
        modes = data.format.mode_order
        first, end = int(outer[0]), int(outer[-1]) + 1
        if outer.size == data.nnz:
            first, end = 0, data.shape[modes[0]]
        keys = (outer.astype(np.int64) - first) // rows * data.shape[modes[level]] + inner
        return len(np.unique(keys)) / ceil((end - first) / rows)

    def _middle(self, level: int) -> NDArray[Any]:
        """The coordinates of a level, of the entries that are looked at."""
        return self.entries.recall(("middle", level), lambda: _middle(self.entries, level))


def _middle(entries: Entries, level: int) -> NDArray[Any]:
    """The coordinates of a level of the entries in the middle."""
    every = expand(entries.data)[level]
    start = max(0, (every.size - COUNTED) // 2)
    return np.asarray(every[start : start + COUNTED])
