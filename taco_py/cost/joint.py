"""What is known of several tensors together: whether their entries meet where both have many.

    C[i,j] = A[i,k] * B[k,j] visits Σ_k (A's entries in column k) · (B's in row k) entries, which is
    nnz(A)·nnz(B) / size(k) only where A's columns and B's rows are filled independently

(Joint counts over shared indices, and degree constraints: Galley, Deeds et al. 2024, section 5.)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import reduce as fold
from itertools import combinations

from taco_py.cost.sets import Bound, Number
from taco_py.cost.spread import Entries
from taco_py.notation.nodes import Access

STARTS = 4
"""Accesses up to which a bound takes them in every order."""


def meeting(left: Entries, a: int, right: Entries, b: int) -> float:
    """How many times more pairs of entries share a coordinate of modes `a` and `b` than would if
    they were spread independently."""
    if left is right and a == b and not left.exact(a):
        spread = left.spread(a)
        return spread.size * spread.square / max(spread.entries, 1)
    mine, other = left.counts(a), right.counts(b)
    both = float(mine.sum()) * float(other.sum())
    return len(mine) * float(mine @ other) / both if both else 1.0


class Joint:
    """Sparse accesses of one product whose coordinates are known, an Entries for each tensor.

    sizes  of their indices
    """

    def __init__(
        self, found: Iterable[Access], entries: Mapping[str, Entries], sizes: Mapping[str, float]
    ) -> None:
        self.entries = entries
        self.sizes = sizes
        self.accesses = tuple(a for a in dict.fromkeys(found) if a.tensor in entries)
        self.pairs = tuple(self._pairs())

    def factor(self, bound: Bound) -> Number:
        """How many times more tuples over a set of indices all of them store than were they
        independent.

        Of an access of which one index alone is bound more than that counts the coordinates that
        store something, not the entries, so that it says nothing.
        """
        found: Number = 1.0
        for index, left, right, often in self.pairs:
            times: Number = often
            for access in (self.accesses[left], self.accesses[right]):
                if len(access.indices) > 1:
                    times = bound.only(index, access.indices, 1.0, times)
            found = found * bound.where(index, times, 1.0)
        return found

    def most(self, bound: Bound) -> Number:
        """A share of the tuples over a set of indices that is at least that at which all store
        something.

        nnz(A[i,k]) · most entries of a row of B[k,j], or the other way round
        """
        places = range(min(len(self.accesses), STARTS))  # fewer only make the bound larger
        known = {place: _Rows(self.accesses[place], self, bound) for place in places}
        best: dict[frozenset[int], Number] = {frozenset(): 1.0}
        for size in range(1, len(places) + 1):
            for group in map(frozenset, combinations(places, size)):
                options = []
                for last in sorted(group):
                    before = group - {last}
                    covered = {i for k in before for i in self.accesses[k].indices}
                    options.append(best[before] * known[last].more(covered))
                best[group] = fold(bound.least, options)
        return best[frozenset(places)]

    def _pairs(self) -> Iterable[tuple[str, int, int, float]]:
        """Each index of two accesses, these two, and how often its coordinates meet there."""
        for (k, left), (m, right) in combinations(enumerate(self.accesses), 2):
            for a, index in enumerate(left.indices):
                if index not in right.indices:
                    continue
                b = right.indices.index(index)
                mine, other = self.entries[left.tensor], self.entries[right.tensor]
                if mine.known(a) and other.known(b):
                    yield index, k, m, meeting(mine, a, other, b)


class _Rows:
    """What is known of one access for a set of indices, or for each of many."""

    def __init__(self, access: Access, joint: Joint, bound: Bound) -> None:
        entries = joint.entries[access.tensor]
        self.bound = bound
        self.entries = float(max(entries.data.nnz, 1))
        self.sizes = {i: bound.where(i, joint.sizes[i], 1.0) for i in access.indices}
        self.most = {
            index: bound.where(index, float(entries.spread(mode).most), self.entries)
            for mode, index in enumerate(access.indices)
            if entries.known(mode)
        }
        self.known: dict[tuple[str, ...], Number] = {}

    def more(self, covered: Container[str]) -> Number:
        """The most entries at one tuple over the indices that are covered, as a share of all
        coordinates of the others."""
        old = tuple(index for index in self.sizes if index in covered)
        if old not in self.known:
            found: Number = self.entries
            rest: Number = 1.0
            for index, size in self.sizes.items():
                if index not in covered:
                    rest = rest * size
                elif index in self.most:
                    found = self.bound.least(found, self.most[index])
            self.known[old] = self.bound.least(1.0, found / self.bound.most(1.0, rest))
        return self.known[old]
