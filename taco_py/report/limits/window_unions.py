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
from taco_py.compiler.cost.spread import Entries
from taco_py.data.storage.pack import expand

COUNTED = 1 << 16
"""Entries up to which all are looked at; of more so many neighbours in the middle, and the windows
of the others count nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Unions:
    """The coordinates of the levels of an operand, by windows of its outermost level."""

    entries: Entries

    def distinct(self, level: int, rows: float) -> float:
        """Return the coordinates of a level in so many neighbouring rows, on average, at least."""
        count = max(1, round(rows))
        return self.entries.recall(("union", level, count), lambda: self._distinct(level, count))

    def _distinct(self, level: int, rows: int) -> float:
        data = self.entries.data
        outer, inner = self._middle(0), self._middle(level)
        if not outer.size:
            return 0.0
        modes = data.format.mode_order
        keys = outer.astype(np.int64) // rows * data.shape[modes[level]] + inner
        return len(np.unique(keys)) / ceil(data.shape[modes[0]] / rows)

    def _middle(self, level: int) -> NDArray[Any]:
        """Return the coordinates of a level, of the entries that are looked at."""
        return self.entries.recall(("middle", level), lambda: _middle(self.entries, level))


def _middle(entries: Entries, level: int) -> NDArray[Any]:
    """Return the coordinates of a level of the entries in the middle."""
    every = expand(entries.data)[level]
    start = max(0, (every.size - COUNTED) // 2)
    return np.asarray(every[start : start + COUNTED])
