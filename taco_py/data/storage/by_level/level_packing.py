"""Interfaces for packing levels from coordinates and listing their coordinates.

Also the functions that kinds share (`kinds_packed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.data.storage.tensor_data import Array, LevelArrays
from taco_py.language.diagnostics.errors import FormatError, StructureError

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The entries of a tensor at one level.

    places       the position of each entry
    coordinates  of the level's mode
    """

    places: Places
    coordinates: Array


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """The input for packing a level.

    parents      the position of each entry at the level above
    coordinates  of each entry
    count        the number of positions above
    size         of the mode
    dtype        of index arrays
    above        the levels above, the nearest last
    counts       the number of positions of each of these, after 1 for the root
    """

    parents: Places
    coordinates: Array
    count: int
    size: int
    dtype: np.dtype[Any]
    above: Sequence[Column]
    counts: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A packed level: its arrays, the position of each entry, and the number of positions."""

    arrays: LevelArrays
    places: Places
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The coordinates below some positions.

    owner        the number of the parent position of each coordinate
    places       its own position
    coordinates  the coordinates
    """

    owner: Places
    places: Places
    coordinates: Array


class LevelPacking(Protocol):
    """The storage of levels of one kind.

    in_order  whether entries to pack must ascend, by positions above and coordinates
    """

    in_order: bool

    def pack(self, level: Packing) -> Packed:
        """Store entries. Raises FormatError where the kind cannot."""
        ...

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        """List the coordinates below positions."""
        ...

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        """Return the number of positions of a level below `parents` positions."""
        ...

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        """Raise StructureError where the arrays contradict each other.

        counts  the positions of the levels above, after 1 for the root
        """
        ...


def ranges(begin: Places, counts: Places) -> tuple[Places, Places]:
    """Return the integers of consecutive ranges, and the number of each one's range.

    [5 9], [2 1]  ->  [5 6 9], [0 0 1]
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return np.arange(len(owner)) - (first - begin)[owner], owner


def ends_of(lengths: Array, dtype: np.dtype[Any]) -> Array:
    """Return pos: the start of each consecutive range of a length, and the end of the last."""
    pos = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, out=pos[1:])
    return pos


def extremes(level: Packing) -> tuple[Places, Places]:
    """Return the least coordinate below each parent, and the largest plus 1; 0 and 0 for none."""
    least, stops = np.full(level.count, level.size, np.int64), np.zeros(level.count, np.int64)
    np.minimum.at(least, level.parents, level.coordinates)
    np.maximum.at(stops, level.parents, level.coordinates.astype(np.int64) + 1)
    return np.minimum(least, stops), stops


def refuse(condition: bool, expected: str, hint: str) -> None:
    """Raise StructureError where a condition holds."""
    if condition:
        raise StructureError(f"Expected {expected}", hint=hint)


REBUILD = "rebuild the tensor from its coordinates, for example with Tensor.from_coo"


def new_prefixes(level: Packing) -> NDArray[np.bool_]:
    """Mark the entries that differ in parent or coordinate from the entry before."""
    heads = np.ones(len(level.parents), np.bool_)
    heads[1:] = level.parents[1:] != level.parents[:-1]
    heads[1:] |= level.coordinates[1:] != level.coordinates[:-1]
    return heads


def require_one(level: Packing, crd: Array, kind: str) -> None:
    """Raise FormatError for several coordinates below one position."""
    clashes = int((crd[level.parents] != level.coordinates).sum())
    if clashes:
        raise FormatError(
            f"Expected at most one coordinate below each position of a {kind} level, found "
            f"{clashes} more",
            hint="store it compressed, or give each coordinate a position above, as ELL does",
        )


def indices_of(array: Array | None, name: str, count: int | None) -> Array:
    """Return the array if it holds `count` integers. Raises StructureError."""
    if array is None or array.ndim != 1 or array.dtype.kind != "i":
        raise StructureError(f"Expected {name} to be a vector of integers", hint=REBUILD)
    if count is not None and len(array) != count:
        raise StructureError(
            f"Expected {count} numbers in {name}, found {len(array)}", hint=REBUILD
        )
    return array


def lengths_of(arrays: LevelArrays, parents: int) -> Array:
    """Return the number of positions of each parent. Raises StructureError."""
    pos = indices_of(arrays.pos, "pos", parents + 1)
    lengths = np.diff(pos)
    refuse(
        bool(pos[0] != 0 or (lengths < 0).any()),
        "pos to begin with 0 and never to descend, found otherwise",
        REBUILD,
    )
    return lengths


def hash_of(keys: Places, room: Places) -> Places:
    """Return the preferred place of each coordinate in a table of `room` places."""
    mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    places: Places = ((mixed >> np.uint64(32)).astype(np.int64)) & (room - 1)
    return places


def insert(crd: Array, begin: Places, room: Places, keys: Places) -> Places:
    """Insert distinct coordinates into the tables that begin at `begin`; return their places."""
    step = hash_of(keys, room)
    places = np.zeros(len(keys), np.int64)
    left = np.arange(len(keys))
    while len(left):
        at = begin[left] + step[left]
        free = crd[at] < 0
        crd[at[free]] = keys[left[free]]  # one of several coordinates for a place wins
        entered = crd[at] == keys[left]
        places[left[entered]] = at[entered]
        left = left[~entered]
        step[left] = (step[left] + 1) & (room[left] - 1)
    return places
