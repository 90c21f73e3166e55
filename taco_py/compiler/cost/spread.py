"""How a tensor's entries are spread over the coordinates of a mode: few rows may hold most of them.

    rows of 0, 1, 3 and 0 entries  →  2 rows of 4 that store something, 3 entries at most,
                                      2.5 entries in the row of an entry, (1² + 3²) / 4

They are counted where that takes a pass over few positions, as over the pos array of CSR, and else
estimated from a sample of positions. (The degree sequences and constraints of Galley, Deeds et al.
2024, section 5.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.data.storage.by_level.level_tree import is_usual
from taco_py.data.storage.pack import expand
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.legal.stored import is_sparse

SAMPLE = 1 << 14
"""Positions of a sample."""
COUNTED = 1 << 18
"""Positions up to which all are counted; those of the root, which need no coordinates, always."""
LARGEST = 1 << 22
"""Coordinates up to which a mode has an array of counts."""
MOST_JOINT_ENTRIES, SPARE = 1 << 17, 2
"""Entries up to which coordinates of several modes together are counted; and the bits that hashed
numbers of coordinates have more than the number of entries. [2 to 4 ms for 100 000]"""
MIXED = (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)
"""Shifts and factors of SplitMix64's finaliser (Steele, Lea and Flood 2014)."""
Counts = NDArray[np.float64]
Modes = tuple[int, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spread:
    """The entries of one mode's coordinates.

    size     coordinates
    entries  stored entries
    distinct coordinates that store something, expected
    most     entries that a coordinate has at most: a bound that always holds
    square   entries that share a coordinate with an entry on average, itself included: the second
             moment of the counts over the first
    groups   how many coordinates have about as many entries as how many, a pair for each power of
             two
    """

    size: int
    entries: int
    distinct: float
    most: int
    square: float
    groups: tuple[tuple[float, float], ...]

    @property
    def mean(self) -> float:
        """Return entries of a coordinate that stores something."""
        return self.entries / max(self.distinct, 1.0)


def _are_equal(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


class Entries:
    """The coordinates that a tensor stores; what is asked of them is found once."""

    __slots__ = ("_counts", "_known", "_sparse", "_spreads", "data")

    def __init__(self, data: TensorData) -> None:
        self.data = data
        self._sparse = is_sparse(data.format)
        self._counts: dict[int, tuple[Counts, Counts, bool]] = {}
        self._spreads: dict[int, Spread] = {}
        self._known: dict[Hashable, object] = {}

    def has_counts(self, mode: int) -> bool:
        """Tell whether its coordinates are few enough to be counted."""
        return self._sparse and 0 < self.data.shape[mode] <= LARGEST

    def counts(self, mode: int) -> Counts:
        """Return the entries at each coordinate of a mode, as far as a sample has met them."""
        return self._counted(mode)[0]

    def exact(self, mode: int) -> bool:
        """Tell whether all entries were counted."""
        return self._counted(mode)[2]

    def spread(self, mode: int) -> Spread:
        """Return the distribution of one mode."""
        if mode not in self._spreads:
            self._spreads[mode] = self._summary(mode)
        return self._spreads[mode]

    def recall(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return the cached result of `find`, which is called one time for each key."""
        if key not in self._known:
            self._known[key] = find()
        result: T = self._known[key]  # type: ignore[assignment]
        return result

    def meeting(self, mode: int, other: Entries, its: int) -> float:
        """Return the ratio of coinciding pairs of entries to the number under independence."""
        return self.recall((mode, other, its), lambda: self._meeting(mode, other, its))

    def _meeting(self, mode: int, other: Entries, its: int) -> float:
        if self is other and mode == its and not self.exact(mode):
            spread = self.spread(mode)
            return spread.size * spread.square / max(spread.entries, 1)
        mine, theirs = self.counts(mode), other.counts(its)
        product = float(mine.sum()) * float(theirs.sum())
        return len(mine) * float(mine @ theirs) / product if product else 1.0

    def meeting_together(self, modes: Modes, other: Entries, its: Modes) -> float | None:
        """Return `meeting` at the coordinates of several modes together; None where entries are
        many."""
        if modes == its and len({*modes}) == len(self.data.shape) and self.stores_as(other):
            return prod(map(float, self.data.shape)) / max(self.data.nnz, 1)
        if max(self.data.nnz, other.data.nnz) > MOST_JOINT_ENTRIES:
            return None
        key = (modes, other, its)
        return self.recall(key, lambda: self._meeting_together(modes, other, its))

    def stores_as(self, other: Entries) -> bool:
        """Tell whether another tensor stores the same coordinates in the same format."""
        if self is other:
            return True
        alike = self.data.format == other.data.format and self.data.shape == other.data.shape
        if not alike or self.data.nnz != other.data.nnz:
            return False
        return self.recall(("stores as", other), lambda: self._stores_as(other))

    def _stores_as(self, other: Entries) -> bool:
        pairs = zip(self.data.levels, other.data.levels, strict=True)
        return all(
            _are_equal(mine.pos, its.pos) and _are_equal(mine.crd, its.crd) for mine, its in pairs
        )

    def _meeting_together(self, modes: Modes, other: Entries, its: Modes) -> float:
        volume = prod(self.data.shape[mode] for mode in modes)
        bits = max(self.data.nnz, other.data.nnz).bit_length() + SPARE
        hashed = volume > 1 << bits
        count = 1 << bits if hashed else volume
        mine = _numbered(self.data, modes, count)
        theirs = mine if self is other and modes == its else _numbered(other.data, its, count)
        product = float(mine.sum()) * float(theirs.sum())
        chance = 1.0 / count if hashed else 0.0  # at which others fall on the same number
        pairs = (float(mine @ theirs) - product * chance) / (1.0 - chance)
        return volume * max(pairs, 1.0) / product if product else 1.0

    def _counted(self, mode: int) -> tuple[Counts, Counts, bool]:
        """Return the entries at each coordinate, how often it was met, and whether that is all."""
        if mode not in self._counts:
            self._counts[mode] = _counted(self.data, mode)
        return self._counts[mode]

    def _summary(self, mode: int) -> Spread:
        counts, sampled, exact = self._counted(mode)
        data = self.data
        entries, size = data.nnz, data.shape[mode]
        positive = counts[counts > 0]
        distinct, square = float(len(positive)), float((positive * positive).sum())
        most = int(counts.max()) if exact else entries
        if not exact:
            singles, twice = float((sampled == 1).sum()), float((sampled == 2).sum())
            unseen = singles * singles / (2.0 * max(twice, 1.0))  # Chao 1984
            few = positive[sampled[counts > 0] == 1].sum()
            distinct = min(distinct + unseen, float(size), float(entries))
            square = max(square - float((counts * counts / np.maximum(sampled, 1.0)).sum()), 0.0)
            square += entries
            rest = distinct - len(positive) + singles
            positive = positive[sampled[counts > 0] > 1]
            groups = (*_grouped(positive), *(((rest, float(few) / rest),) if rest > 0 else ()))
        else:
            groups = _grouped(positive)
        return Spread(size, entries, distinct, most, square / max(entries, 1), groups)


def recall_in(entries: Entries | None, key: Hashable) -> Callable[[Callable[[], T]], T]:
    """Cache a function's result with the facts of some entries, where there are any."""
    return (lambda find: find()) if entries is None else partial(entries.recall, key)


def _grouped(counts: Counts) -> tuple[tuple[float, float], ...]:
    """Count how many counts there are between each two powers of two, and their mean."""
    kinds = np.floor(np.log2(counts)).astype(np.int64)
    return tuple(
        (float(len(group)), float(group.mean()))
        for kind in np.unique(kinds)
        for group in [counts[kinds == kind]]
    )


def _counted(data: TensorData, mode: int) -> tuple[Counts, Counts, bool]:
    """Return entries at each coordinate of a mode, the positions met there, and whether those are
    all."""
    level = data.format.mode_order.index(mode)
    if not is_usual(data.format):
        counts = np.bincount(expand(data)[level], None, data.shape[mode]).astype(np.float64)
        return counts, counts, True
    positions = _positions(data, level)
    exact = level == 0 or positions <= COUNTED
    if exact:
        sample = np.arange(positions)
    else:
        sample = np.random.default_rng(level).integers(0, positions, SAMPLE)
    size = data.shape[mode]
    crd = data.levels[level].crd
    coordinates = sample % size if crd is None else crd[sample].astype(np.int64)
    weights = _below(data, level, sample) * (1.0 if exact else positions / SAMPLE)
    counts = np.bincount(coordinates, weights, size).astype(np.float64)
    return counts, np.bincount(coordinates, None, size).astype(np.float64), exact


def _numbered(data: TensorData, modes: Modes, count: int) -> Counts:
    """Return the entries whose coordinates of some modes together have each number below `count`:
    all coordinates one of their own, or hashed where these are more."""
    stored = dict(zip(data.format.mode_order, expand(data), strict=True))
    keys = np.zeros(len(stored[modes[0]]), np.uint64)
    for mode in modes:
        keys = keys * np.uint64(data.shape[mode]) + stored[mode].astype(np.uint64)
    if prod(data.shape[mode] for mode in modes) > count:
        for shift, factor in MIXED:
            keys = (keys ^ keys >> np.uint64(shift)) * np.uint64(factor)
        keys = (keys ^ keys >> np.uint64(MIXED[0][0])) % np.uint64(count)
    return np.bincount(keys.astype(np.int64), minlength=count).astype(np.float64)


def _positions(data: TensorData, last: int) -> int:
    """Return the positions of a level."""
    count = 1
    for level in range(last + 1):
        crd = data.levels[level].crd
        size = data.shape[data.format.mode_order[level]]
        count = count * size if crd is None else len(crd)
    return count


def _below(data: TensorData, level: int, positions: NDArray[np.int64]) -> Counts:
    """Return the entries below each of the chosen positions of a level."""
    begin, end = positions, positions + 1
    for place in range(level + 1, data.format.order):
        arrays = data.levels[place]
        if arrays.pos is not None:
            begin, end = arrays.pos[begin], arrays.pos[end]
        elif arrays.crd is None:
            size = data.shape[data.format.mode_order[place]]
            begin, end = begin * size, end * size
    return (end - begin).astype(np.float64)
