"""How levels of each kind are filled row by row: passes over the entries in C, and their arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.pack import SPARSER
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array
from taco_py.language.formats import LevelKind


class Assembling(Protocol):
    """A tensor whose levels are allocated from the root down.

    name   the tensor in errors
    index  the type of index arrays
    sizes  of each level's mode; counts of the positions above each level
    pos, crd  the arrays of each level
    """

    name: str
    index: np.dtype[Any]
    sizes: list[int]
    counts: list[int]
    pos: list[Array]
    crd: list[Array]

    def run(self, name: str) -> int:
        """Run a pass over the entries, and return the number that it finds."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What is done for an entry at a level of one kind, in C; {k} is the level, {a} the one above.

    allocate  makes the arrays of the level, and counts its positions
    query     what is counted before that
    place     the position of an entry, from that above
    write     what it stores
    """

    allocate: Callable[[Assembling, int], int]
    query: str = ""
    place: str = "const int64_t q{k} = q{a};"
    write: str = ""


def _allocate_dense(assembly: Assembling, k: int) -> int:
    """Count a position for every coordinate below each position above."""
    return assembly.counts[-1] * assembly.sizes[k]


def _allocate_ragged(assembly: Assembling, k: int) -> int:
    """Count the coordinates below each position above."""
    lengths = assembly.pos[k] = np.zeros(assembly.counts[-1] + 1, assembly.index)
    assembly.run(f"query{k}")
    assembly.sizes[k] = assembly.sizes[k] or int(lengths.max(initial=0))
    return _ends(assembly, k, lengths[1:])


def _allocate_banded(assembly: Assembling, k: int) -> int:
    """Find the first and the last coordinate below each position above."""
    ends = assembly.pos[k] = np.zeros(assembly.counts[-1] + 1, assembly.index)
    least = assembly.crd[k] = np.full(assembly.counts[-1], assembly.sizes[k], assembly.index)
    assembly.run(f"query{k}")
    assembly.crd[k] = np.minimum(least, ends[1:])
    return _ends(assembly, k, ends[1:] - assembly.crd[k])


def _ends(assembly: Assembling, k: int, lengths: Array) -> int:
    total = int(lengths.sum(dtype=np.int64))
    if total <= np.iinfo(assembly.index).max:
        pos = np.zeros(len(lengths) + 1, assembly.index)
        np.cumsum(lengths, out=pos[1:])
        assembly.pos[k] = pos
    return total


def _allocate_padded(assembly: Assembling, k: int) -> int:
    """Allocate a coordinate for each position, -1 where there is none."""
    size = assembly.counts[-1] * assembly.index.itemsize
    with room(assembly.name, size, SPARSER):
        assembly.crd[k] = np.full(assembly.counts[-1], -1, assembly.index)
    return assembly.counts[-1]


def _allocate_offset(assembly: Assembling, k: int) -> int:
    """Allocate a distance for each position two levels above."""
    assembly.crd[k] = np.zeros(assembly.counts[-2], assembly.index)
    return assembly.counts[-1]


def _allocate_interval(assembly: Assembling, k: int) -> int:
    """Allocate where the coordinates of each position begin and end."""
    above = assembly.counts[-1]
    assembly.pos[k], assembly.crd[k] = (np.zeros(above, assembly.index) for _ in range(2))
    return above


STEPS: Mapping[LevelKind, Steps] = {
    LevelKind.DENSE: Steps(_allocate_dense, place="const int64_t q{k} = q{a} * size{k} + c{k};"),
    LevelKind.RAGGED: Steps(
        _allocate_ragged,
        "if (c{k} >= pos{k}[q{a} + 1]) pos{k}[q{a} + 1] = (INDEX)(c{k} + 1);",
        "const int64_t q{k} = pos{k}[q{a}] + c{k};",
    ),
    LevelKind.BANDED: Steps(
        _allocate_banded,
        "if (c{k} < crd{k}[q{a}]) crd{k}[q{a}] = (INDEX)c{k};\n"
        "if (c{k} >= pos{k}[q{a} + 1]) pos{k}[q{a} + 1] = (INDEX)(c{k} + 1);",
        "const int64_t q{k} = pos{k}[q{a}] + c{k} - crd{k}[q{a}];",
    ),
    LevelKind.PADDED: Steps(_allocate_padded, write="crd{k}[q{k}] = (INDEX)c{k};"),
    LevelKind.OFFSET: Steps(_allocate_offset, write="crd{k}[q{g}] = (INDEX)(c{k} - c{a});"),
    LevelKind.INTERVAL: Steps(
        _allocate_interval,
        write="if (q{k} != before) pos{k}[q{k}] = (INDEX)c{k};\n"
        "crd{k}[q{k}] = (INDEX)(c{k} + 1);\nbefore = q{k};",
    ),
}
"""What is done at levels of each kind."""
