"""What is known of several tensors together: whether their entries meet where both have many.

    C[i,j] = A[i,k] * B[k,j] visits Σ_k (A's entries in column k) · (B's in row k) entries, which is
    nnz(A)·nnz(B) / size(k) only where A's columns and B's rows are filled independently

(Joint counts over shared indices, and degree constraints: Galley, Deeds et al. 2024, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations
from math import prod

from taco_py.cost.shares import bits_of
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

    sizes, bits  of their indices; sets of these are sums of bits
    """

    def __init__(
        self,
        found: Iterable[Access],
        entries: Mapping[str, Entries],
        sizes: Mapping[str, float],
        bits: Mapping[str, int],
    ) -> None:
        self.entries = entries
        self.bits = bits
        self.accesses = tuple(a for a in dict.fromkeys(found) if a.tensor in entries)
        self.masks = [bits_of(bits, a.indices) for a in self.accesses]
        self.sizes = {bits[i]: sizes[i] for a in self.accesses for i in a.indices}
        self.pairs = tuple(self._pairs())
        self.mosts: dict[int, tuple[tuple[int, float], ...]] = {}
        self.shares: dict[tuple[int, int, int], float] = {}

    def factor(self, bound: int) -> float:
        """How many times more tuples over `bound` all of them store than were they independent.

        Of an access of which one index alone is bound more than that counts the coordinates that
        store something, not the entries, so that it says nothing.
        """
        found = 1.0
        for bit, left, right, times in self.pairs:
            if bound & bit and _many(left, bound) and _many(right, bound):
                found *= times
        return found

    def most(self, bound: int) -> float:
        """A share of the tuples over `bound` that is at least that at which all store something.

        nnz(A[i,k]) · most entries of a row of B[k,j], or the other way round
        """
        inside = [place for place, mask in enumerate(self.masks) if bound & mask]
        if len(inside) > STARTS:
            inside = inside[:STARTS]  # leaving accesses out only makes the bound larger
        return min([self._along(order, bound) for order in permutations(inside)])

    def _along(self, order: Sequence[int], bound: int) -> float:
        covered, found = 0, 1.0
        for place in order:
            mine = bound & self.masks[place]
            key = (place, mine, mine & covered)
            if key not in self.shares:
                self.shares[key] = self._more(*key)
            found *= self.shares[key]
            covered |= mine
        return found

    def _more(self, place: int, mine: int, covered: int) -> float:
        """The most entries of an access at one tuple over what is covered of its indices `mine`,
        as a share of all coordinates of the others."""
        entries = self.entries[self.accesses[place].tensor]
        if place not in self.mosts:
            self.mosts[place] = tuple(
                (self.bits[index], float(entries.spread(mode).most))
                for mode, index in enumerate(self.accesses[place].indices)
                if entries.known(mode)
            )
        found = float(entries.data.nnz)
        for bit, most in self.mosts[place]:
            if most < found and bit & covered:
                found = most
        new = mine & ~covered
        volume = prod((size for bit, size in self.sizes.items() if bit & new), start=1.0)
        return min(1.0, found / max(1.0, volume))

    def _pairs(self) -> Iterable[tuple[int, int, int, float]]:
        """Each index of two accesses with the indices of both, and how often its coordinates meet
        there."""
        for (mask, left), (other_mask, right) in combinations(
            zip(self.masks, self.accesses, strict=True), 2
        ):
            for a, index in enumerate(left.indices):
                if index not in right.indices:
                    continue
                b = right.indices.index(index)
                mine, other = self.entries[left.tensor], self.entries[right.tensor]
                if mine.known(a) and other.known(b):
                    yield self.bits[index], mask, other_mask, meeting(mine, a, other, b)


def _many(indices: int, bound: int) -> bool:
    """Whether more than one of an access's indices is bound, or the only one."""
    return (bound & indices).bit_count() > 1 or indices.bit_count() == 1
