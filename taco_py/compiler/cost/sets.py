"""Sets of index variables, many at a time: what loops cost is known of sets, not of orders.

Sets are columns of bits, a row an index; what is asked of all of them is an array with a number for
each. Sets over few indices are all there are; of many indices those are taken that come near to the
beginnings of one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import lru_cache
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass

Bits = NDArray[np.bool_]
Places = NDArray[np.int64]
Numbers = NDArray[np.float64]


Number = float | Numbers


Recall = Callable[[Callable[[], Number]], Number]
"""What a function returns, which is called no more than once."""
TABLE = 10
"""Indices up to which what depends on them alone is found for all sets of them."""


class Bound(Protocol):
    """The indices of loops: of one set, for which there is a number, or of many at a time, for
    which there is an array of them."""

    def where(self, index: str, yes: Number, no: Number) -> Number:
        """Return one number where the index is bound, another where it is not."""

    def alone(self, indices: Sequence[str], numbers: Sequence[float], other: Number) -> Number:
        """Return the number of the only bound index of a group; another number without one."""

    def product(self, indices: Sequence[str], numbers: Sequence[float]) -> Number:
        """Return the product of the numbers of those indices that are bound, one for each."""

    def map_over(
        self, indices: Sequence[str], find: Callable[[Bound], Number], recall: Recall
    ) -> Number:
        """Return the value of `find` for each set, which depends on some indices alone.

        once  keeps it for all sets of these
        """

    def least(self, left: Number, right: Number) -> Number:
        """Return the lesser of two numbers."""

    def most(self, left: Number, right: Number) -> Number:
        """Return the greater of two numbers."""


@dataclass(frozen=True, slots=True)
class One:
    """One set of indices."""

    names: frozenset[str]

    def where(self, index: str, yes: Number, no: Number) -> Number:
        return yes if index in self.names else no

    def alone(self, indices: Sequence[str], numbers: Sequence[float], other: Number) -> Number:
        bound_numbers = self._of(indices, numbers)
        return bound_numbers[0] if len(bound_numbers) == 1 else other

    def product(self, indices: Sequence[str], numbers: Sequence[float]) -> Number:
        return prod(self._of(indices, numbers), start=1.0)

    def map_over(
        self, indices: Sequence[str], find: Callable[[Bound], Number], recall: Recall
    ) -> Number:
        return find(self)

    def least(self, left: Number, right: Number) -> Number:
        return left if left < right else right

    def most(self, left: Number, right: Number) -> Number:
        return left if left > right else right

    def _of(self, indices: Sequence[str], numbers: Sequence[float]) -> list[float]:
        """Return the numbers of the bound indices."""
        every = zip(indices, numbers, strict=True)
        return [number for index, number in every if index in self.names]


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """Columns of bits over `names`: `has[k]` says which sets have the index `names[k]`.

    weighs    the same as numbers to multiply by, where these are at hand
    codes     how `code` is found from that of others
    codes_of  what it has told
    """

    names: tuple[str, ...]
    has: Bits
    weighs: Numbers | None = None
    codes: Callable[[tuple[str, ...]], Places] | None = None
    codes_of: dict[tuple[str, ...], Places] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        return len(self.has.T)

    def code(self, indices: tuple[str, ...]) -> Places:
        """Return the position of each set's part of some indices among all subsets."""
        if indices not in self.codes_of:
            self.codes_of[indices] = (self.codes or self._code)(indices)
        return self.codes_of[indices]

    def where(self, index: str, yes: Number, no: Number) -> Number:
        return np.where(self.has[self.names.index(index)], yes, no) if index in self.names else no

    def alone(self, indices: Sequence[str], numbers: Sequence[float], other: Number) -> Number:
        code = self.code(tuple(indices))
        values = np.empty(len(code))
        values[:] = other
        single = np.flatnonzero((code & (code - 1) == 0) & (code > 0))
        values[single] = np.array(numbers)[np.log2(code[single]).astype(np.int64)]
        return values

    def product(self, indices: Sequence[str], numbers: Sequence[float]) -> Number:
        places = [k for k, index in enumerate(indices) if index in self.names]
        rows = self.of(indices[k] for k in places)
        return product(np.array([numbers[k] for k in places], np.float64), rows)

    def map_over(
        self, indices: Sequence[str], find: Callable[[Bound], Number], recall: Recall
    ) -> Number:
        if len(indices) > TABLE:
            return find(self)
        key = tuple(indices)
        table = recall(lambda: np.ones(1 << len(key)) * find(Sets(key, every_set(len(key)).has)))
        return np.asarray(table)[self.code(key)]

    def _code(self, indices: tuple[str, ...]) -> Places:
        weights = np.zeros(len(self.names))
        for place, index in enumerate(indices):
            if index in self.names:
                weights[self.names.index(index)] = 1 << place
        has = self.has if self.weighs is None else self.weighs
        code: Places = (weights @ has).astype(np.int64)
        return code

    def least(self, left: Number, right: Number) -> Number:
        return np.minimum(left, right)

    def most(self, left: Number, right: Number) -> Number:
        return np.maximum(left, right)

    def of(self, indices: Iterable[str]) -> Bits:
        """Return the rows of some indices."""
        return self.has[np.array([self.names.index(i) for i in indices], np.int64)]

    def unite(self, places: Places, rows: Sequence[int]) -> Sets:
        """Return some of the sets, each with the indices of some rows."""
        has = self.has[:, places]
        has[list(rows)] = True
        more = {self.names[row] for row in rows}

        def codes(indices: tuple[str, ...]) -> Places:
            bits = sum(1 << place for place, index in enumerate(indices) if index in more)
            return self.code(indices)[places] | bits

        return Sets(self.names, has, codes=codes)


def product(numbers: Numbers, bits: Bits) -> Numbers:
    """Return for each set the product of the numbers of its indices."""
    products: Numbers = np.where(bits, numbers[:, None], 1.0).prod(axis=0)
    return products


# ---------------------------------------------------------------- families of sets


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Sets from that of none to that of all, and which are others with one index more.

    sets    as numbers, a bit an index
    has     the same as columns of bits
    weighs  the same as numbers to multiply by
    place   of each number
    inside  for each index and each set the place of the set with that index too; that of all where
            it has the index already, or where the other is not in the family
    ends    where it has, or is not
    innermost  the indices and places where it becomes that of all
    levels  the places of sets of as many indices each, the largest first, but for that of all
    """

    sets: tuple[int, ...]
    has: Bits
    weighs: Numbers
    place: dict[int, int]
    inside: Places
    ends: Bits
    innermost: tuple[Places, Places]
    levels: tuple[Places | slice, ...]

    @property
    def full(self) -> bool:
        """Tell whether all sets there are belong to it."""
        return len(self.sets) == 1 << len(self.has)


@lru_cache(maxsize=16)
def every_set(count: int) -> Lattice:
    """Return all sets of so many indices."""
    return _lattice(count, tuple(range(1 << count)))


@lru_cache(maxsize=16)
def sets_near(count: int, width: int) -> Lattice:
    """Return the first of so many indices with any of the next `width` after them, however many."""
    sets = {0}
    for begin in range(max(1, count - width + 1)):
        sets.update((1 << begin) - 1 | window << begin for window in range(1 << width))
    every = sorted(number for number in sets if number < 1 << count)
    if len(every) < 1 << count:
        every.sort(key=int.bit_count)  # those of as many indices are neighbours
    return _lattice(count, tuple(every))


def _lattice(count: int, sets: tuple[int, ...]) -> Lattice:
    place = {number: k for k, number in enumerate(sets)}
    last = len(sets) - 1
    near = [[place.get(number | 1 << k, -1) for number in sets] for k in range(count)]
    inside = np.array(near, np.int64).reshape(count, len(sets))
    has = np.array([[number >> k & 1 for number in sets] for k in range(count)], np.bool_)
    has = has.reshape(count, len(sets))
    sizes = np.array([number.bit_count() for number in sets])
    levels = tuple(_run(np.flatnonzero(sizes == size)) for size in range(count - 1, -1, -1))
    ends = (inside < 0) | has
    inside = np.where(ends, last, inside)
    weighs = has.astype(np.float64)
    rows, places = np.nonzero((inside == last) & ~ends)
    return Lattice(sets, has, weighs, place, inside, ends, (rows, places), levels)


def _run(places: Places) -> Places | slice:
    """Return the places as a slice, which is faster to take, where they are neighbours."""
    begin, end = int(places[0]), int(places[-1]) + 1
    return slice(begin, end) if end - begin == len(places) else places
