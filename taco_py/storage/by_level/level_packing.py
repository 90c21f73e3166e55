"""Levels of unusual kinds packed from coordinates, and their coordinates listed again.

One class a kind, in the table `PACKINGS`. Those of dense levels, of compressed ones and the
singletons below them, are packed together (`pack.pack_levels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.diagnostics.errors import FormatError, StructureError
from taco_py.formats.level_kind import ADDED_KINDS, LevelKind
from taco_py.storage.tensor_data import Array, LevelArrays, row_of_bits

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
    """A level to be packed.

    parents      the position above of each entry
    coordinates  of each entry
    count        how many positions there are above
    size         of the mode
    dtype        of index arrays
    above        the levels above, the nearest last
    counts       how many positions each of these has, after 1 for the root
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
    """A packed level: its arrays, the position of each entry, and how many positions there are."""

    arrays: LevelArrays
    places: Places
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The coordinates below some positions: of which of these each is, its position, and it."""

    owner: Places
    places: Places
    coordinates: Array


class LevelPacking(Protocol):
    """How levels of one kind are stored.

    in_order  whether entries that are packed must ascend, by positions above and coordinates
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
        """Count the positions of a level below so many parents."""
        ...

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        """Raise StructureError where the arrays contradict each other.

        counts  the positions of the levels above, after 1 for the root
        """
        ...


def ranges(begin: Places, counts: Places) -> tuple[Places, Places]:
    """The integers of consecutive ranges, and which range each is of.

    [5 9], [2 1]  ->  [5 6 9], [0 0 1]
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return np.arange(len(owner)) - (first - begin)[owner], owner


def ends_of(lengths: Array, dtype: np.dtype[Any]) -> Array:
    """pos: where each of consecutive ranges begins, and at last where all end."""
    pos = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, out=pos[1:])
    return pos


def extremes(level: Packing) -> tuple[Places, Places]:
    """The least coordinate below each parent, and the one behind the largest; 0 and 0 for none."""
    least, behind = np.full(level.count, level.size, np.int64), np.zeros(level.count, np.int64)
    np.minimum.at(least, level.parents, level.coordinates)
    np.maximum.at(behind, level.parents, level.coordinates.astype(np.int64) + 1)
    return np.minimum(least, behind), behind


def refuse(condition: bool, expected: str, hint: str) -> None:
    """Raise StructureError where a condition holds."""
    if condition:
        raise StructureError(f"Expected {expected}", hint=hint)


REBUILD = "rebuild the tensor from its coordinates, for example with Tensor.from_coo"


class Dense:
    """Every coordinate: `places = parents * size + coordinate`."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        places = level.parents * level.size + level.coordinates
        return Packed(LevelArrays(), places, level.count * level.size)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        owner = np.repeat(np.arange(len(parents)), size)
        coordinates = np.tile(np.arange(size), len(parents))
        return Listed(owner, parents[owner] * size + coordinates, coordinates)

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents * size

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return


class Compressed:
    """The coordinates `crd[pos[p]:pos[p+1]]`."""

    in_order = True

    def pack(self, level: Packing) -> Packed:
        heads = new_prefixes(level)
        parents = level.parents[heads]
        lengths = np.bincount(parents, minlength=level.count)
        crd = level.coordinates[heads].astype(level.dtype)
        arrays = LevelArrays(ends_of(lengths, level.dtype), crd)
        return Packed(arrays, np.cumsum(heads) - 1, len(crd))

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.pos is not None and arrays.crd is not None
        begin = arrays.pos[parents].astype(np.int64)
        places, owner = ranges(begin, arrays.pos[parents + 1] - begin)
        return Listed(owner, places, arrays.crd[places])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return len(arrays.crd)  # type: ignore[arg-type]

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return  # `check.check_level`


class Singleton:
    """The coordinate `crd[p]`."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        crd = np.zeros(level.count, level.dtype)
        crd[level.parents] = level.coordinates
        require_one(level, crd, "singleton")
        return Packed(LevelArrays(crd=crd), level.parents, level.count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.crd is not None
        return Listed(np.arange(len(parents)), parents, arrays.crd[parents])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return  # `check.check_level`


class Ragged:
    """The coordinates 0 … pos[p+1]-pos[p]-1, each with a value."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        _, behind = extremes(level)
        pos = ends_of(behind, level.dtype)
        places = pos[level.parents].astype(np.int64) + level.coordinates
        return Packed(LevelArrays(pos), places, int(pos[-1]))

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.pos is not None
        begin = arrays.pos[parents].astype(np.int64)
        places, owner = ranges(begin, arrays.pos[parents + 1] - begin)
        return Listed(owner, places, places - begin[owner])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return int(arrays.pos[-1])  # type: ignore[index]

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        lengths = lengths_of(arrays, counts[-1])
        most = int(lengths.max(initial=0))
        refuse(most > size, f"at most {size} coordinates below a parent, found {most}", REBUILD)


class Banded:
    """The coordinates from crd[p] on, pos[p+1]-pos[p] of them, each with a value."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        first, behind = extremes(level)
        pos = ends_of(behind - first, level.dtype)
        places = pos[level.parents].astype(np.int64) + level.coordinates - first[level.parents]
        return Packed(LevelArrays(pos, first.astype(level.dtype)), places, int(pos[-1]))

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.pos is not None and arrays.crd is not None
        begin = arrays.pos[parents].astype(np.int64)
        places, owner = ranges(begin, arrays.pos[parents + 1] - begin)
        return Listed(owner, places, places - begin[owner] + arrays.crd[parents][owner])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return int(arrays.pos[-1])  # type: ignore[index]

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        lengths = lengths_of(arrays, counts[-1])
        crd = indices_of(arrays.crd, "crd", counts[-1])
        outside = (crd < 0) | (crd + lengths > size)
        refuse(bool(outside.any()), f"coordinates below {size}, found others", REBUILD)


class Bitmap:
    """Every coordinate has a position; those whose bit of crd is 1 are stored.

    Each parent has whole words of bits.
    """

    in_order = False

    def pack(self, level: Packing) -> Packed:
        places, count = level.parents * level.size + level.coordinates, level.count * level.size
        row = row_of_bits(level.size, level.dtype)
        marks = np.zeros(level.count * row, np.bool_)
        marks[level.parents * row + level.coordinates] = True
        words = np.packbits(marks, bitorder="little").view(level.dtype)
        return Packed(LevelArrays(crd=words), places, count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.crd is not None
        every = Dense().listed(LevelArrays(), parents, size, above)
        marks = np.unpackbits(arrays.crd.view(np.uint8), bitorder="little").view(np.bool_)
        row = row_of_bits(size, arrays.crd.dtype)
        there = marks[parents[every.owner] * row + every.coordinates]
        return Listed(every.owner[there], every.places[there], every.coordinates[there])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents * size

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        crd = indices_of(arrays.crd, "crd", None)
        words = counts[-1] * row_of_bits(size, crd.dtype) // (8 * crd.dtype.itemsize)
        refuse(len(crd) != words, f"{words} words of bits in crd, found {len(crd)}", REBUILD)


MOST_FULL = 2
"""Places of a hash table for each of its coordinates, at least."""


class Hashed:
    """A hash table below each parent: crd is -1 where a place is free.

    A table has 0 places or a power of 2 of them; coordinate j is at the first free place from
    `hash_of(j)` on, around the end.
    """

    in_order = True

    def pack(self, level: Packing) -> Packed:
        heads = new_prefixes(level)
        parents, keys = level.parents[heads], level.coordinates[heads].astype(np.int64)
        stored = np.bincount(parents, minlength=level.count)
        wanted = np.maximum(stored * MOST_FULL, 1)
        room = np.where(stored, 1 << np.ceil(np.log2(wanted)).astype(np.int64), 0)
        pos = ends_of(room, level.dtype)
        crd = np.full(int(pos[-1]), -1, level.dtype)
        places = insert(crd, pos[parents].astype(np.int64), room[parents], keys)
        return Packed(LevelArrays(pos, crd), places[np.cumsum(heads) - 1], len(crd))

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        every = Compressed().listed(arrays, parents, size, above)
        there = every.coordinates >= 0
        return Listed(every.owner[there], every.places[there], every.coordinates[there])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return len(arrays.crd)  # type: ignore[arg-type]

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        lengths = lengths_of(arrays, counts[-1])
        powers = (lengths & (lengths - 1)) == 0
        refuse(not powers.all(), "hash tables of a power of 2 of places, found others", REBUILD)
        crd = indices_of(arrays.crd, "crd", int(lengths.sum()))
        outside = (crd < -1) | (crd >= size)
        refuse(bool(outside.any()), f"coordinates below {size}, found others", REBUILD)


def hash_of(keys: Places, room: Places) -> Places:
    """Where a table of `room` places would have each coordinate."""
    mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    found: Places = ((mixed >> np.uint64(32)).astype(np.int64)) & (room - 1)
    return found


def insert(crd: Array, begin: Places, room: Places, keys: Places) -> Places:
    """Enter distinct coordinates into the tables that begin at places of crd; their places."""
    step = hash_of(keys, room)
    places = np.zeros(len(keys), np.int64)
    left = np.arange(len(keys))
    while len(left):
        at = begin[left] + step[left]
        free = crd[at] < 0
        crd[at[free]] = keys[left[free]]  # of several for one place, one has it
        entered = crd[at] == keys[left]
        places[left[entered]] = at[entered]
        left = left[~entered]
        step[left] = (step[left] + 1) & (room[left] - 1)
    return places


class Padded:
    """The coordinate crd[p], none where it is -1."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        crd = np.full(level.count, -1, level.dtype)
        crd[level.parents] = level.coordinates
        require_one(level, crd, "padded")
        return Packed(LevelArrays(crd=crd), level.parents, level.count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.crd is not None
        owner = np.flatnonzero(arrays.crd[parents] >= 0)
        return Listed(owner, parents[owner], arrays.crd[parents[owner]])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        crd = indices_of(arrays.crd, "crd", counts[-1])
        outside = (crd < -1) | (crd >= size)
        refuse(bool(outside.any()), f"coordinates below {size}, found others", REBUILD)


class Offset:
    """The coordinate `crd[q] + i`: i the one above, q the position above that; none outside."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        *_, grand, near = level.above
        shift = level.coordinates.astype(np.int64) - near.coordinates
        crd = np.zeros(level.counts[-2], level.dtype)
        crd[grand.places] = shift
        if (crd[grand.places] != shift).any():
            raise FormatError(
                "Expected entries of an offset level on one diagonal below each position, found "
                "several diagonals",
                hint="give each diagonal a position of its own two levels above, as DIA does",
            )
        return Packed(LevelArrays(crd=crd), level.parents, level.count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.crd is not None
        *_, grand, near = above
        found = arrays.crd[grand.places].astype(np.int64) + near.coordinates
        owner = np.flatnonzero((found >= 0) & (found < size))
        return Listed(owner, parents[owner], found[owner])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        indices_of(arrays.crd, "crd", counts[-2])


class Interval:
    """The coordinates from pos[p] to below crd[p], all with the one value of p."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        least, behind = extremes(level)
        met = np.bincount(level.parents, minlength=level.count)
        if (behind - least != met).any():
            raise FormatError(
                "Expected neighbouring coordinates below each position of an interval level, "
                "found gaps",
                hint="give each run of equal values a position of its own above, as RLE does",
            )
        arrays = LevelArrays(least.astype(level.dtype), behind.astype(level.dtype))
        return Packed(arrays, level.parents, level.count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.pos is not None and arrays.crd is not None
        begin = arrays.pos[parents].astype(np.int64)
        coordinates, owner = ranges(begin, arrays.crd[parents] - begin)
        return Listed(owner, parents[owner], coordinates)

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        pos = indices_of(arrays.pos, "pos", counts[-1])
        crd = indices_of(arrays.crd, "crd", counts[-1])
        outside = (pos < 0) | (pos > crd) | (crd > size)
        refuse(bool(outside.any()), f"intervals within 0 … {size}, found others", REBUILD)


class Pattern:
    """The coordinates `crd[pos[p]:pos[p+1]]`, with one value for all."""

    in_order = True

    def pack(self, level: Packing) -> Packed:
        made = Compressed().pack(level)
        return Packed(made.arrays, np.zeros(len(level.parents), np.int64), 1)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        every = Compressed().listed(arrays, parents, size, above)
        return Listed(every.owner, np.zeros(len(every.owner), np.int64), every.coordinates)

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return 1

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        lengths = lengths_of(arrays, counts[-1])
        crd = indices_of(arrays.crd, "crd", int(lengths.sum()))
        outside = (crd < 0) | (crd >= size)
        refuse(bool(outside.any()), f"coordinates below {size}, found others", REBUILD)


class Pair:
    """0 and 1, with the one value of p."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        return Packed(LevelArrays(), level.parents, level.count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        owner = np.repeat(np.arange(len(parents)), 2)
        return Listed(owner, parents[owner], np.tile(np.arange(2), len(parents)))

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return


class Mirrored:
    """The row in turn 0 of the pair and the column in turn 1, or the other way round."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        return Packed(LevelArrays(), level.parents, level.count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        row, column, turn = (each.coordinates for each in above[:3])
        first = len(above) == 3
        owner = np.flatnonzero((turn == 0) | (row != column)) if first else np.arange(len(parents))
        straight = turn == 0 if first else turn == 1
        return Listed(owner, parents[owner], np.where(straight, row, column)[owner])

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return


def new_prefixes(level: Packing) -> NDArray[np.bool_]:
    """Mark the entries whose parent or coordinate differs from those of the entry before."""
    heads = np.ones(len(level.parents), np.bool_)
    heads[1:] = level.parents[1:] != level.parents[:-1]
    heads[1:] |= level.coordinates[1:] != level.coordinates[:-1]
    return heads


def require_one(level: Packing, crd: Array, kind: str) -> None:
    """Raise FormatError where there are several coordinates below a position."""
    clashes = int((crd[level.parents] != level.coordinates).sum())
    if clashes:
        raise FormatError(
            f"Expected at most one coordinate below each position of a {kind} level, found "
            f"{clashes} more",
            hint="store it compressed, or give each coordinate a position above, as ELL does",
        )


def indices_of(array: Array | None, name: str, count: int | None) -> Array:
    """The array, if it holds so many integers. Raises StructureError."""
    if array is None or array.ndim != 1 or array.dtype.kind != "i":
        raise StructureError(f"Expected {name} to be a vector of integers", hint=REBUILD)
    if count is not None and len(array) != count:
        raise StructureError(
            f"Expected {count} numbers in {name}, found {len(array)}", hint=REBUILD
        )
    return array


def lengths_of(arrays: LevelArrays, parents: int) -> Array:
    """How many positions each parent has. Raises StructureError."""
    pos = indices_of(arrays.pos, "pos", parents + 1)
    lengths = np.diff(pos)
    refuse(
        bool(pos[0] != 0 or (lengths < 0).any()),
        "pos to begin with 0 and never to descend, found otherwise",
        REBUILD,
    )
    return lengths


PACKINGS: Mapping[LevelKind, LevelPacking] = {
    LevelKind.DENSE: Dense(),
    LevelKind.COMPRESSED: Compressed(),
    LevelKind.SINGLETON: Singleton(),
    LevelKind.RAGGED: Ragged(),
    LevelKind.BANDED: Banded(),
    LevelKind.BITMAP: Bitmap(),
    LevelKind.HASHED: Hashed(),
    LevelKind.PADDED: Padded(),
    LevelKind.OFFSET: Offset(),
    LevelKind.INTERVAL: Interval(),
    LevelKind.PATTERN: Pattern(),
    LevelKind.PAIR: Pair(),
    LevelKind.MIRRORED: Mirrored(),
}


def packing_of(kind: LevelKind) -> LevelPacking:
    """How levels of a kind are packed."""
    found: LevelPacking = PACKINGS.get(kind) or ADDED_KINDS.packing(kind)
    return found
