"""What is known of several tensors together: whether their entries meet where both have many.

    C[i,j] = A[i,k] * B[k,j] visits Σ_k (A's entries in column k) · (B's in row k) entries, which is
    nnz(A)·nnz(B) / size(k) only where A's columns and B's rows are filled independently

(Joint counts over shared indices, and degree constraints: Galley, Deeds et al. 2024, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations
from math import prod

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
    """Sparse accesses of one product whose coordinates are known, an Entries for each tensor."""

    def __init__(self, found: Iterable[Access], entries: Mapping[str, Entries]) -> None:
        self.entries = entries
        self.accesses = tuple(a for a in dict.fromkeys(found) if a.tensor in entries)
        self.pairs = tuple(_pairs(self.accesses, entries))
        self.mosts: dict[Access, tuple[tuple[str, float], ...]] = {}

    def factor(self, bound: frozenset[str]) -> float:
        """How many times more tuples over `bound` all of them store than were they independent.

        Of an access of which one index alone is bound more than that counts the coordinates that
        store something, not the entries, so that it says nothing.
        """
        found = 1.0
        for index, left, right, times in self.pairs:
            if index in bound and _many(left, bound) and _many(right, bound):
                found *= times
        return found

    def most(self, bound: frozenset[str], sizes: Mapping[str, float]) -> float:
        """A number of tuples over `bound` that all of them store that is never exceeded.

        nnz(A[i,k]) · most entries of a row of B[k,j], or the other way round
        """
        inside = [a for a in self.accesses if bound.intersection(a.indices)]
        if len(inside) > STARTS:
            inside = inside[:STARTS]  # leaving accesses out only makes the bound larger
        orders: Iterable[Sequence[Access]] = permutations(inside) if inside else ((),)
        return min(self._along(order, bound, sizes) for order in orders)

    def _along(
        self, order: Sequence[Access], bound: frozenset[str], sizes: Mapping[str, float]
    ) -> float:
        covered: set[str] = set()
        found = 1.0
        for access in order:
            mine = bound.intersection(access.indices)
            found *= min(self._more(access, covered), _volume(mine - covered, sizes))
            covered |= mine
        return found * _volume(bound - covered, sizes)

    def _more(self, access: Access, covered: set[str]) -> float:
        """The most entries of an access at one tuple over the indices that are `covered`."""
        if access not in self.mosts:
            entries = self.entries[access.tensor]
            self.mosts[access] = tuple(
                (index, float(entries.spread(mode).most))
                for mode, index in enumerate(access.indices)
                if entries.known(mode)
            )
        found = float(self.entries[access.tensor].data.nnz)
        for index, most in self.mosts[access]:
            if most < found and index in covered:
                found = most
        return found


def _pairs(
    found: Sequence[Access], entries: Mapping[str, Entries]
) -> Iterable[tuple[str, Access, Access, float]]:
    for left, right in combinations(found, 2):
        for a, index in enumerate(left.indices):
            if index not in right.indices:
                continue
            b = right.indices.index(index)
            mine, other = entries[left.tensor], entries[right.tensor]
            if mine.known(a) and other.known(b):
                yield index, left, right, meeting(mine, a, other, b)


def _many(access: Access, bound: frozenset[str]) -> bool:
    return len(access.indices) == 1 or len(bound.intersection(access.indices)) > 1


def _volume(indices: Iterable[str], sizes: Mapping[str, float]) -> float:
    return prod((sizes[i] for i in indices), start=1.0)
