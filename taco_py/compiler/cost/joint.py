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
        self, uses: Iterable[Access], entries: Mapping[str, Entries], sizes: Mapping[str, float]
    ) -> None:
        self.entries = entries
        self.sizes = sizes
        self.accesses = tuple(a for a in dict.fromkeys(uses) if a.tensor in entries)
        self.pairs = tuple(self._pairs())

    def factor(self, bound: Bound) -> Number:
        """Return the ratio of tuples that all operands store to the number under independence.

        Of an access of which one index alone is bound more than that counts the coordinates that
        store something, not the entries, so that it says nothing.
        """
        ratio: Number = 1.0
        for pair in self.pairs:
            times = bound.map_over(pair.indices, pair.times, pair.recall)
            for indices in pair.separate:
                times = bound.alone(indices, (1.0,) * len(indices), times)
            ratio = ratio * times
        return ratio

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
        indices = tuple(dict.fromkeys(access.indices))
        entries = self.entries[access.tensor]
        old = tuple(index for index in indices if index in covered)
        rest = tuple(index for index in indices if index not in covered)
        sizes = tuple(self.sizes[index] for index in rest)

        def find(some: Bound) -> Number:
            volume = some.most(1.0, some.product(rest, sizes))
            return some.least(1.0, _most(entries, access, old, some) / volume)

        return bound.map_over(indices, find, partial(entries.recall, (access.indices, old, sizes)))

    def _pairs(self) -> Iterable[_Pair]:
        """Return each two accesses that have an index in common, with how often coordinates meet
        there."""
        for left, right in combinations(self.accesses, 2):
            mine, other = self.entries[left.tensor], self.entries[right.tensor]
            rates = {
                index: mine.meeting(a, other, right.indices.index(index))
                for a, index in enumerate(left.indices)
                if index in right.indices
                and mine.has_counts(a)
                and other.has_counts(right.indices.index(index))
            }
            if rates:
                recall = partial(mine.recall, (other, left.indices, right.indices))
                index_sets = (tuple(dict.fromkeys(a.indices)) for a in (left, right))
                separate = tuple(indices for indices in index_sets if len(indices) > 1)
                named_rates = tuple(rates), tuple(rates.values())
                yield _Pair(*named_rates, self._joint_ratio(left, right, rates), separate, recall)

    def _joint_ratio(self, left: Access, right: Access, rates: Mapping[str, float]) -> float:
        """Return the ratio of meetings of two accesses to the number under independence."""
        if len(rates) < 2:
            return 1.0
        mine, its = (tuple(map(a.indices.index, rates)) for a in (left, right))
        other = self.entries[right.tensor]
        meetings = self.entries[left.tensor].meeting_together(mine, other, its)
        independent = prod(rates.values())
        return meetings / independent if meetings is not None and independent else 1.0


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two accesses with indices in common.

    rates        how many times more often their coordinates meet there than were they independent
    joint_ratio  the same at all of them, beside each by itself
    separate     the indices of each that has more than one
    recall       keeps what is known of them
    """

    indices: tuple[str, ...]
    rates: tuple[float, ...]
    joint_ratio: float
    separate: tuple[tuple[str, ...], ...]
    recall: Recall

    def times(self, bound: Bound) -> Number:
        """Return how many times more often they meet at all of them that are bound."""
        ratio: Number = self.joint_ratio
        for index in self.indices:
            ratio = bound.where(index, ratio, 1.0)
        return ratio * bound.product(self.indices, self.rates)


def _most(entries: Entries, access: Access, covered: Iterable[str], bound: Bound) -> Number:
    """Return the most entries that have one coordinate of each of these indices that is bound."""
    every = float(max(entries.data.nnz, 1))
    least: Number = every
    for index in covered:
        mode = access.indices.index(index)
        if entries.has_counts(mode):
            most = float(entries.spread(mode).most)
            least = bound.least(least, bound.where(index, most, every))
    return least
