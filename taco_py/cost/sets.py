"""Sets of index variables, many at a time: what loops cost is known of sets, not of orders.

Sets are columns of bits, a row an index; what is asked of all of them is an array with a number for
each. Sets over few indices are all there are; of many indices those are taken that come near to the
beginnings of one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
Places = NDArray[np.int64]
Numbers = NDArray[np.float64]


Number = float | Numbers


class Bound(Protocol):
    """The indices of loops: of one set, for which there is a number, or of many at a time, for
    which there is an array of them."""

    def where(self, index: str, yes: Number, no: Number) -> Number:
        """One number where the index is bound, another where it is not."""

    def only(self, index: str, among: Sequence[str], yes: Number, no: Number) -> Number:
        """One number where the index alone is bound of some, another elsewhere."""

    def least(self, left: Number, right: Number) -> Number:
        """The lesser of two numbers."""

    def most(self, left: Number, right: Number) -> Number:
        """The greater of two numbers."""


@dataclass(frozen=True, slots=True)
class One:
    """One set of indices."""

    names: frozenset[str]

    def where(self, index: str, yes: Number, no: Number) -> Number:
        return yes if index in self.names else no

    def only(self, index: str, among: Sequence[str], yes: Number, no: Number) -> Number:
        return yes if [i for i in among if i in self.names] == [index] else no

    def least(self, left: Number, right: Number) -> Number:
        return left if left < right else right

    def most(self, left: Number, right: Number) -> Number:
        return left if left > right else right


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """Columns of bits over `names`: `has[k]` says which sets have the index `names[k]`.

    known  which of them have one index alone of some, where that was asked for
    """

    names: tuple[str, ...]
    has: Bits
    known: dict[tuple[str, ...], Bits] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        return len(self.has.T)

    def where(self, index: str, yes: Number, no: Number) -> Number:
        return np.where(self.has[self.names.index(index)], yes, no) if index in self.names else no

    def only(self, index: str, among: Sequence[str], yes: Number, no: Number) -> Number:
        if index not in self.names:
            return no
        key = tuple(among)
        if key not in self.known:
            rows = [self.names.index(i) for i in key if i in self.names]
            self.known[key] = np.add.reduce(self.has[rows], dtype=np.int64) == 1
        return np.where(self.has[self.names.index(index)] & self.known[key], yes, no)

    def least(self, left: Number, right: Number) -> Number:
        return np.minimum(left, right)

    def most(self, left: Number, right: Number) -> Number:
        return np.maximum(left, right)

    def of(self, indices: Iterable[str]) -> Bits:
        """The rows of some indices."""
        return self.has[[self.names.index(i) for i in indices]]

    def at(self, chosen: slice) -> Sets:
        """Some of the sets."""
        return Sets(self.names, self.has[:, chosen])

    def joined(self, rows: Sequence[int]) -> Sets:
        """Each set with the indices of some rows."""
        has = self.has.copy()
        has[list(rows)] = True
        return Sets(self.names, has)


def product(numbers: Numbers, bits: Bits) -> Numbers:
    """For each set the product of the numbers of its indices."""
    found: Numbers = np.where(bits, numbers[:, None], 1.0).prod(axis=0)
    return found


# ---------------------------------------------------------------- families of sets


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Sets from that of none to that of all, and which are others with one index more.

    sets    as numbers, a bit an index
    has     the same as columns of bits
    place   of each number
    inside  for each index and each set the place of the set with that index too; that of all where
            it has the index already, or where the other is not in the family
    ends    where it has, or is not
    innermost  where it becomes that of all
    levels  the places of sets of as many indices each, the largest first, but for that of all
    """

    sets: tuple[int, ...]
    has: Bits
    place: dict[int, int]
    inside: Places
    ends: Bits
    innermost: Bits
    levels: tuple[Places, ...]

    @property
    def whole(self) -> bool:
        """Whether all sets there are belong to it."""
        return len(self.sets) == 1 << len(self.has)


@lru_cache(maxsize=16)
def every_set(count: int) -> Lattice:
    """All sets of so many indices."""
    return _lattice(count, tuple(range(1 << count)))


@lru_cache(maxsize=16)
def sets_near(count: int, width: int) -> Lattice:
    """The first of so many indices with any of the next `width` after them, however many."""
    sets = {0}
    for begin in range(max(1, count - width + 1)):
        sets.update((1 << begin) - 1 | window << begin for window in range(1 << width))
    return _lattice(count, tuple(sorted(number for number in sets if number < 1 << count)))


def _lattice(count: int, sets: tuple[int, ...]) -> Lattice:
    place = {number: k for k, number in enumerate(sets)}
    last = len(sets) - 1
    near = [[place.get(number | 1 << k, -1) for number in sets] for k in range(count)]
    inside = np.array(near, np.int64).reshape(count, len(sets))
    has = np.array([[number >> k & 1 for number in sets] for k in range(count)], np.bool_)
    has = has.reshape(count, len(sets))
    sizes = np.array([number.bit_count() for number in sets])
    levels = tuple(np.flatnonzero(sizes == size) for size in range(count - 1, -1, -1))
    ends = (inside < 0) | has
    inside = np.where(ends, last, inside)
    return Lattice(sets, has, place, inside, ends, (inside == last) & ~ends, levels)
