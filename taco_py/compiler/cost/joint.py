"""What is known of several tensors together: whether their entries meet where both have many.

    C[i,j] = A[i,k] * B[k,j] visits Σ_k (A's entries in column k) · (B's in row k) entries, which is
    nnz(A)·nnz(B) / size(k) only where A's columns and B's rows are filled independently

(Joint counts over shared indices, and degree constraints: Galley, Deeds et al. 2024, section 5.)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial
from functools import reduce as fold
from itertools import combinations
from math import prod

from codegen.records import dataclass
from taco_py.compiler.cost.sets import Bound, Number, Recall
from taco_py.compiler.cost.spread import Entries
from taco_py.language.notation.nodes import Access

STARTS = 4
"""Accesses up to which a bound takes them in every order."""


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
        """Return the ratio of tuples that all operands store to the number under independence.

        Of an access of which one index alone is bound more than that counts the coordinates that
        store something, not the entries, so that it says nothing.
        """
        found: Number = 1.0
        for pair in self.pairs:
            times = bound.each(pair.indices, pair.times, pair.recall)
            for apart in pair.apart:
                times = bound.alone(apart, (1.0,) * len(apart), times)
            found = found * times
        return found

    def most(self, bound: Bound) -> Number:
        """Return an upper bound of the share of tuples at which all operands store an entry.

        nnz(A[i,k]) · most entries of a row of B[k,j], or the other way round
        """
        places = range(min(len(self.accesses), STARTS))  # fewer only make the bound larger
        best: dict[frozenset[int], Number] = {frozenset(): 1.0}
        for size in range(1, len(places) + 1):
            for group in map(frozenset, combinations(places, size)):
                options = []
                for last in sorted(group):
                    before = group - {last}
                    covered = {i for k in before for i in self.accesses[k].indices}
                    options.append(best[before] * self._more(self.accesses[last], covered, bound))
                best[group] = fold(bound.least, options)
        return best[frozenset(places)]

    def _more(self, access: Access, covered: Container[str], bound: Bound) -> Number:
        """Return the largest share of an access's entries at one tuple of covered indices."""
        own = tuple(dict.fromkeys(access.indices))
        entries = self.entries[access.tensor]
        old = tuple(index for index in own if index in covered)
        rest = tuple(index for index in own if index not in covered)
        sizes = tuple(self.sizes[index] for index in rest)

        def find(some: Bound) -> Number:
            volume = some.most(1.0, some.product(rest, sizes))
            return some.least(1.0, _most(entries, access, old, some) / volume)

        return bound.each(own, find, partial(entries.recall, (access.indices, old, sizes)))

    def _pairs(self) -> Iterable[_Pair]:
        """Return each two accesses that have an index in common, with how often coordinates meet
        there."""
        for left, right in combinations(self.accesses, 2):
            mine, other = self.entries[left.tensor], self.entries[right.tensor]
            often = {
                index: mine.meeting(a, other, right.indices.index(index))
                for a, index in enumerate(left.indices)
                if index in right.indices
                and mine.known(a)
                and other.known(right.indices.index(index))
            }
            if often:
                recall = partial(mine.recall, (other, left.indices, right.indices))
                own = (tuple(dict.fromkeys(a.indices)) for a in (left, right))
                apart = tuple(indices for indices in own if len(indices) > 1)
                known = tuple(often), tuple(often.values())
                yield _Pair(*known, self._together(left, right, often), apart, recall)

    def _together(self, left: Access, right: Access, often: Mapping[str, float]) -> float:
        """Return the ratio of meetings of two accesses to the number under independence."""
        if len(often) < 2:
            return 1.0
        mine, its = (tuple(map(a.indices.index, often)) for a in (left, right))
        other = self.entries[right.tensor]
        met = self.entries[left.tensor].meeting_together(mine, other, its)
        apart = prod(often.values())
        return met / apart if met is not None and apart else 1.0


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two accesses with indices in common.

    often  how many times more often their coordinates meet there than were they independent
    together  the same at all of them, beside each by itself
    apart  the indices of each that has more than one
    recall  keeps what is known of them
    """

    indices: tuple[str, ...]
    often: tuple[float, ...]
    together: float
    apart: tuple[tuple[str, ...], ...]
    recall: Recall

    def times(self, bound: Bound) -> Number:
        """Return how many times more often they meet at all of them that are bound."""
        met: Number = self.together
        for index in self.indices:
            met = bound.where(index, met, 1.0)
        return met * bound.product(self.indices, self.often)


def _most(entries: Entries, access: Access, covered: Iterable[str], bound: Bound) -> Number:
    """Return the most entries that have one coordinate of each of these indices that is bound."""
    every = float(max(entries.data.nnz, 1))
    found: Number = every
    for index in covered:
        mode = access.indices.index(index)
        if entries.known(mode):
            most = float(entries.spread(mode).most)
            found = bound.least(found, bound.where(index, most, every))
    return found
