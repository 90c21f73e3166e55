"""The storage of levels of each kind: a table with a class a kind.

Dense levels, compressed levels and the singletons below them are packed together where a format has
no other kinds (`pack.pack_levels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taco_py.data.storage.by_level.level_packing import (
    REBUILD,
    Column,
    LevelPacking,
    Listed,
    Packed,
    Packing,
    Places,
    ends_of,
    extremes,
    indices_of,
    insert,
    lengths_of,
    new_prefixes,
    ranges,
    refuse,
    require_one,
)
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import LevelArrays, row_of_bits
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats.level_kind import ADDED_KINDS, LevelKind


class OnePlace:
    """At most one coordinate below each position, at the position itself."""

    in_order = False

    def pack(self, level: Packing) -> Packed:
        return Packed(LevelArrays(), level.parents, level.count)

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return


class EveryCoordinate:
    """Every coordinate has a position: `parent * size + coordinate`."""

    in_order = False

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return parents * size

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return


class Segments:
    """The positions below parent p are pos[p] … pos[p+1] - 1."""

    in_order = False

    def count(self, arrays: LevelArrays, parents: int, size: int) -> int:
        return int(arrays.pos[-1])  # type: ignore[index]

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        return  # `check.check_level`


class Dense(EveryCoordinate):
    """Every coordinate: `places = parents * size + coordinate`."""

    def pack(self, level: Packing) -> Packed:
        places = level.parents * level.size + level.coordinates
        return Packed(LevelArrays(), places, level.count * level.size)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        owner = np.repeat(np.arange(len(parents)), size)
        coordinates = np.tile(np.arange(size), len(parents))
        return Listed(owner, parents[owner] * size + coordinates, coordinates)


class Compressed(Segments):
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


class Singleton(OnePlace):
    """The coordinate `crd[p]`."""

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


class Ragged(Segments):
    """The coordinates 0 … pos[p+1]-pos[p]-1, each with a value."""

    def pack(self, level: Packing) -> Packed:
        _, stops = extremes(level)
        pos = ends_of(stops, level.dtype)
        places = pos[level.parents].astype(np.int64) + level.coordinates
        return Packed(LevelArrays(pos), places, int(pos[-1]))

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.pos is not None
        begin = arrays.pos[parents].astype(np.int64)
        places, owner = ranges(begin, arrays.pos[parents + 1] - begin)
        return Listed(owner, places, places - begin[owner])

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        lengths = lengths_of(arrays, counts[-1])
        most = int(lengths.max(initial=0))
        refuse(most > size, f"at most {size} coordinates below a parent, found {most}", REBUILD)


class Banded(Segments):
    """The pos[p+1]-pos[p] coordinates from crd[p] on, each with a value."""

    def pack(self, level: Packing) -> Packed:
        first, stops = extremes(level)
        pos = ends_of(stops - first, level.dtype)
        places = pos[level.parents].astype(np.int64) + level.coordinates - first[level.parents]
        return Packed(LevelArrays(pos, first.astype(level.dtype)), places, int(pos[-1]))

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.pos is not None and arrays.crd is not None
        begin = arrays.pos[parents].astype(np.int64)
        places, owner = ranges(begin, arrays.pos[parents + 1] - begin)
        return Listed(owner, places, places - begin[owner] + arrays.crd[parents][owner])

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        lengths = lengths_of(arrays, counts[-1])
        crd = indices_of(arrays.crd, "crd", counts[-1])
        outside = (crd < 0) | (crd + lengths > size)
        refuse(bool(outside.any()), f"coordinates below {size}, found others", REBUILD)


class Bitmap(EveryCoordinate):
    """Every coordinate has a position; coordinates whose bit of crd is 1 are stored.

    Each parent has a whole number of words of bits.
    """

    def pack(self, level: Packing) -> Packed:
        places, count = level.parents * level.size + level.coordinates, level.count * level.size
        row = row_of_bits(level.size, level.dtype)
        with room("a level of bits", level.count * row):
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
        present = marks[parents[every.owner] * row + every.coordinates]
        return Listed(every.owner[present], every.places[present], every.coordinates[present])

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        crd = indices_of(arrays.crd, "crd", None)
        words = counts[-1] * row_of_bits(size, crd.dtype) // (8 * crd.dtype.itemsize)
        refuse(len(crd) != words, f"{words} words of bits in crd, found {len(crd)}", REBUILD)


MOST_FULL = 2
"""The least number of places of a hash table per coordinate."""


class Hashed(Segments):
    """A hash table below each parent; crd is -1 at a free place.

    A table has 0 places or a power of 2; coordinate j is at the first free place from `hash_of(j)`
    on, cyclically.
    """

    in_order = True

    def pack(self, level: Packing) -> Packed:
        heads = new_prefixes(level)
        parents, keys = level.parents[heads], level.coordinates[heads].astype(np.int64)
        stored = np.bincount(parents, minlength=level.count)
        places_needed = np.maximum(stored * MOST_FULL, 1)
        room = np.where(stored, 1 << np.ceil(np.log2(places_needed)).astype(np.int64), 0)
        pos = ends_of(room, level.dtype)
        crd = np.full(int(pos[-1]), -1, level.dtype)
        places = insert(crd, pos[parents].astype(np.int64), room[parents], keys)
        return Packed(LevelArrays(pos, crd), places[np.cumsum(heads) - 1], len(crd))

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        every = Compressed().listed(arrays, parents, size, above)
        present = every.coordinates >= 0
        return Listed(every.owner[present], every.places[present], every.coordinates[present])

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        lengths = lengths_of(arrays, counts[-1])
        powers = (lengths & (lengths - 1)) == 0
        refuse(not powers.all(), "hash tables of a power of 2 of places, found others", REBUILD)
        crd = indices_of(arrays.crd, "crd", int(lengths.sum()))
        outside = (crd < -1) | (crd >= size)
        refuse(bool(outside.any()), f"coordinates below {size}, found others", REBUILD)


class Padded(OnePlace):
    """The coordinate crd[p], none where it is -1."""

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

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        crd = indices_of(arrays.crd, "crd", counts[-1])
        outside = (crd < -1) | (crd >= size)
        refuse(bool(outside.any()), f"coordinates below {size}, found others", REBUILD)


class Offset(OnePlace):
    """The coordinate `crd[q] + i`, for i of the level above and q its parent; none outside the
    mode."""

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
        coordinates = arrays.crd[grand.places].astype(np.int64) + near.coordinates
        owner = np.flatnonzero((coordinates >= 0) & (coordinates < size))
        return Listed(owner, parents[owner], coordinates[owner])

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        indices_of(arrays.crd, "crd", counts[-2])


class Interval(OnePlace):
    """The coordinates from pos[p] to below crd[p], all with the value of p."""

    def pack(self, level: Packing) -> Packed:
        least, stops = extremes(level)
        lengths = np.bincount(level.parents, minlength=level.count)
        if (stops - least != lengths).any():
            raise FormatError(
                "Expected neighbouring coordinates below each position of an interval level, "
                "found gaps",
                hint="give each run of equal values a position of its own above, as RLE does",
            )
        arrays = LevelArrays(least.astype(level.dtype), stops.astype(level.dtype))
        return Packed(arrays, level.parents, level.count)

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        assert arrays.pos is not None and arrays.crd is not None
        begin = arrays.pos[parents].astype(np.int64)
        coordinates, owner = ranges(begin, arrays.crd[parents] - begin)
        return Listed(owner, parents[owner], coordinates)

    def check(self, arrays: LevelArrays, counts: Sequence[int], size: int) -> None:
        pos = indices_of(arrays.pos, "pos", counts[-1])
        crd = indices_of(arrays.crd, "crd", counts[-1])
        outside = (pos < 0) | (pos > crd) | (crd > size)
        refuse(bool(outside.any()), f"intervals within 0 … {size}, found others", REBUILD)


class Pattern(Compressed):
    """The coordinates `crd[pos[p]:pos[p+1]]`, with one value for all."""

    in_order = True

    def pack(self, level: Packing) -> Packed:
        packed = Compressed().pack(level)
        return Packed(packed.arrays, np.zeros(len(level.parents), np.int64), 1)

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


class Pair(OnePlace):
    """0 and 1, both with the value of p."""

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        owner = np.repeat(np.arange(len(parents)), 2)
        return Listed(owner, parents[owner], np.tile(np.arange(2), len(parents)))


class Mirrored(OnePlace):
    """The row in turn 0 of the pair and the column in turn 1, or the converse."""

    def listed(
        self, arrays: LevelArrays, parents: Places, size: int, above: Sequence[Column]
    ) -> Listed:
        row, column, turn = (level.coordinates for level in above[:3])
        first = len(above) == 3
        owner = np.flatnonzero((turn == 0) | (row != column)) if first else np.arange(len(parents))
        straight = turn == 0 if first else turn == 1
        return Listed(owner, parents[owner], np.where(straight, row, column)[owner])


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
    """Return the packing of levels of a kind."""
    packing: LevelPacking = PACKINGS.get(kind) or ADDED_KINDS.packing(kind)
    return packing
