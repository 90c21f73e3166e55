"""Pairwise orders of a product's factors, by costs that know the nonzeros.

A product of n factors is n - 1 contractions of two, each summed over what no other factor has.
Trees are compared by dynamic programming over subsets: of few factors over all, of more over those
that are connected by shared indices, of which a chain of n has n(n+1)/2 (Moerkotte and Neumann
2006). Where these are too many, the best is taken of a few simple orders: the cheapest pair first
(Smith and Gray 2018, opt_einsum), all from the left, and all from the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from taco_py.autoschedule.effort import Effort
from taco_py.cost.estimate import Statistics, result_size
from taco_py.cost.machine import CONVERSION, TEMPORARY
from taco_py.notation.checks import free_indices
from taco_py.plan.products import Product

EXACT = 7
"""Operands up to which all pairwise orders are compared."""
GROUPS = 256
"""Connected subsets of the operands up to which all orders that join them are compared."""
THREE = (((0, 1), 2), ((0, 2), 1), ((1, 2), 0))
"""The pairs of three factors, and what is left."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Pairwise contractions, numbered as by einsum: a pair goes, its product is appended."""

    cost: float
    path: tuple[tuple[int, ...], ...]


def cheapest_tree(
    stats: Statistics,
    product: Product,
    kept: tuple[str, ...],
    effort: Effort | None = None,
    memory: float = inf,
) -> Tree:
    """The pairwise order of least expected work: opt_einsum with costs that know nonzeros.

    memory  the elements that each intermediate may store; where none keeps to it, the cost is
            infinite
    """
    knows = _Nonzeros(stats, product, kept, memory)
    return knows.tree(knows.path(effort or Effort()))


def near_trees(
    stats: Statistics, product: Product, kept: tuple[str, ...], effort: Effort, memory: float
) -> tuple[Tree, ...]:
    """The cheapest tree and others that copies and formats, of which it knows nothing, may favour.

    These are all of three factors, and of more a few simple ones whose work is not more by as much
    as copies of all operands.
    """
    knows = _Nonzeros(stats, product, kept, memory)
    best = knows.tree(knows.path(effort))
    copies = CONVERSION * sum(knows.nnz(frozenset((k,))) for k in range(len(product.factors)))
    limit = best.cost + copies if len(product.factors) > 3 else inf
    return (best, *(tree for tree in knows.simple() if tree != best and tree.cost <= limit))


def simple_trees(stats: Statistics, product: Product, kept: tuple[str, ...]) -> tuple[Tree, ...]:
    """Orders to try besides the cheapest: of three factors all, of more a few simple ones."""
    return _Nonzeros(stats, product, kept, inf).simple()


class _Nonzeros:
    """Costs of contracting subsets of the factors."""

    def __init__(
        self, stats: Statistics, product: Product, kept: tuple[str, ...], memory: float
    ) -> None:
        self.stats = stats
        self.memory = memory
        self.product = product
        self.factors = product.factors
        self.kept = set(kept)
        self.sizes: dict[frozenset[int], float] = {}

    def open(self, group: frozenset[int]) -> frozenset[str]:
        """The indices that the product of `group` keeps."""
        inside = {i for k in group for i in free_indices(self.factors[k])}
        outside = {i for k, f in enumerate(self.factors) if k not in group for i in free_indices(f)}
        return frozenset(inside & (outside | self.kept))

    def nnz(self, group: frozenset[int]) -> float:
        """The expected nonzeros of the product of `group`, summed over what it may sum."""
        if group not in self.sizes:
            part = self.product.of(self.factors[k] for k in sorted(group))
            self.sizes[group] = result_size(self.stats, part, sorted(self.open(group)))
        return self.sizes[group]

    def pair_cost(self, left: frozenset[int], right: frozenset[int]) -> float:
        """Expected multiplications, plus the temporary unless it is the result; infinite where
        that is too large."""
        a, b = self.open(left), self.open(right)
        density = self.nnz(left) / max(1.0, self.stats.volume(a))
        density *= self.nnz(right) / max(1.0, self.stats.volume(b))
        work = self.stats.volume(a | b) * density
        whole = left | right
        if len(whole) == len(self.factors):
            return work
        stored = self.nnz(whole)
        return work + TEMPORARY * stored if stored <= self.memory else inf

    def path(self, effort: Effort) -> list[tuple[int, int]]:
        """The pairs of the best order; of a good one where there are many or time runs out."""
        groups = self.groups()
        found = None if groups is None else self.exact(groups, effort)
        if found is not None:
            return found
        every = f"all contraction orders of {len(self.factors)} operands were compared"
        effort.cut(f"before {every}")
        return min(self._orders(), key=self.cost_of)

    def simple(self) -> tuple[Tree, ...]:
        """The trees of a few orders that need no search, each once."""
        return tuple(dict.fromkeys(self.tree(pairs) for pairs in self._orders()))

    def tree(self, pairs: Sequence[tuple[int, int]]) -> Tree:
        """What it costs to contract in an order in which each product has the next number."""
        from opt_einsum.paths import ssa_to_linear

        path = tuple(tuple(sorted(pair)) for pair in ssa_to_linear(pairs))
        return Tree(self.cost_of(pairs), path)

    def _orders(self) -> Iterator[list[tuple[int, int]]]:
        if len(self.factors) == 3:
            yield from ([pair, (other, 3)] for pair, other in THREE)
        else:
            yield from (self.greedy(), self.from_left(), self.from_right())

    def groups(self) -> tuple[int, ...] | None:
        """The subsets to build products of, the smaller first, a bit a factor; None for too many.

        A product of what shares no index is larger than both, and seldom better than later.
        """
        count = len(self.factors)
        every = (1 << count) - 1
        if count <= EXACT:
            return self._sorted(range(1, every + 1))
        beside = [self._beside(k) for k in range(count)]
        found = {1 << k: beside[k] for k in range(count)}  # with the factors that touch them
        for group in (listed := list(found)):
            for k in range(count):
                whole = group | 1 << k
                if found[group] >> k & 1 and whole not in found:
                    found[whole] = (found[group] | beside[k]) & ~whole
                    listed.append(whole)
                    if len(listed) > GROUPS:
                        return None
        return self._sorted(found) if every in found else None

    def _sorted(self, groups: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(groups, key=lambda g: (g.bit_count(), sorted(self._factors_of(g)))))

    def _beside(self, k: int) -> int:
        """The factors that share an index with one, a bit each."""
        mine = set(free_indices(self.factors[k]))
        touched = (j for j, f in enumerate(self.factors) if j != k and mine & set(free_indices(f)))
        return sum(1 << j for j in touched)

    def exact(self, groups: Sequence[int], effort: Effort) -> list[tuple[int, int]] | None:
        """Dynamic programming over subsets; None where time runs out."""
        best: dict[int, tuple[float, int]] = {}
        sets = {group: self._factors_of(group) for group in groups}
        for group in groups:
            first = group & -group
            if group == first:
                best[group] = (0.0, 0)
                continue
            if effort.over:
                return None
            options = [
                (best[left][0] + best[group ^ left][0] + self.pair_cost(sets[left], rest), left)
                for left in best
                if left & first and not left & ~group and (rest := sets.get(group ^ left))
            ]
            best[group] = min(options, key=lambda o: o[0])
        return self._ssa(best)

    def _factors_of(self, group: int) -> frozenset[int]:
        return frozenset(k for k in range(len(self.factors)) if group >> k & 1)

    def _ssa(self, best: Mapping[int, tuple[float, int]]) -> list[tuple[int, int]]:
        path: list[tuple[int, int]] = []

        def visit(group: int) -> int:
            left = best[group][1]
            if not left:
                return group.bit_length() - 1
            pair = (visit(left), visit(group ^ left))
            path.append(pair)
            return len(self.factors) + len(path) - 1

        visit((1 << len(self.factors)) - 1)
        return path

    def from_left(self) -> list[tuple[int, int]]:
        """((A·B)·C)·D"""
        count = len(self.factors)
        return [(0, 1), *((count + k - 2, k) for k in range(2, count))]

    def from_right(self) -> list[tuple[int, int]]:
        """A·(B·(C·D))"""
        count = len(self.factors)
        return [(count - 2, count - 1), *((count - 1 - k, count + k - 2) for k in range(2, count))]

    def greedy(self) -> list[tuple[int, int]]:
        """Repeatedly the pair that costs least."""
        live = {k: frozenset((k,)) for k in range(len(self.factors))}
        path: list[tuple[int, int]] = []
        while len(live) > 1:
            keys = sorted(live)
            pairs = [(a, b) for n, a in enumerate(keys) for b in keys[n + 1 :]]
            a, b = min(pairs, key=lambda p: self.pair_cost(live[p[0]], live[p[1]]))
            path.append((a, b))
            live[len(self.factors) + len(path) - 1] = live.pop(a) | live.pop(b)
        return path

    def cost_of(self, path: Sequence[tuple[int, int]]) -> float:
        """The whole cost of a path in which each product has the next number."""
        groups = [frozenset((k,)) for k in range(len(self.factors))]
        total = 0.0
        for a, b in path:
            total += self.pair_cost(groups[a], groups[b])
            groups.append(groups[a] | groups[b])
        return total
