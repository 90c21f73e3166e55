"""Pairwise orders of a product's factors, by costs that know the nonzeros.

A product of n factors is n - 1 contractions of two, each summed over what no other factor has. For
few factors all trees are compared by dynamic programming over subsets, for more the cheapest pair
goes first (Smith and Gray 2018, opt_einsum).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taco_py.autoschedule.effort import Effort
from taco_py.cost.estimate import Statistics, result_size
from taco_py.cost.machine import TEMPORARY
from taco_py.notation.checks import free_indices
from taco_py.plan.products import Product

EXACT = 7  # operands up to which all pairwise orders are compared


@dataclass(frozen=True, slots=True)
class Tree:
    """Pairwise contractions, numbered as by einsum: a pair goes, its product is appended."""

    cost: float
    path: tuple[tuple[int, ...], ...]


def cheapest_tree(
    stats: Statistics, product: Product, kept: tuple[str, ...], effort: Effort | None = None
) -> Tree:
    """The pairwise order of least expected work: opt_einsum with costs that know nonzeros."""
    from opt_einsum import contract_path
    from opt_einsum.paths import PathOptimizer, ssa_to_linear

    factors = product.factors
    knows = _Nonzeros(stats, product, kept)

    class ByNonzeros(PathOptimizer):  # type: ignore[misc]
        """Exact for few operands, else greedy by the size of the next intermediate."""

        def __call__(self, inputs: object, *_: object, **__: object) -> object:
            return ssa_to_linear(knows.path(effort or Effort()))

    letters = {i: chr(192 + k) for k, i in enumerate(knows.indices)}
    text = ",".join("".join(letters[i] for i in free_indices(f)) for f in factors)
    shapes = [tuple(int(stats.sizes[i]) for i in free_indices(f)) for f in factors]
    out = "".join(letters[i] for i in kept if i in letters)
    path, _ = contract_path(f"{text}->{out}", *shapes, shapes=True, optimize=ByNonzeros())
    return Tree(knows.cost_of(path), tuple(tuple(pair) for pair in path))


class _Nonzeros:
    """Costs of contracting subsets of the factors."""

    def __init__(self, stats: Statistics, product: Product, kept: tuple[str, ...]) -> None:
        self.stats = stats
        self.product = product
        self.factors = factors = product.factors
        self.kept = set(kept)
        self.indices = tuple(dict.fromkeys(i for f in factors for i in free_indices(f)))
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
            self.sizes[group] = result_size(self.stats, part, tuple(self.open(group)))
        return self.sizes[group]

    def pair_cost(self, left: frozenset[int], right: frozenset[int]) -> float:
        """Expected multiplications, plus the temporary unless it is the result."""
        a, b = self.open(left), self.open(right)
        density = self.nnz(left) / max(1.0, self.stats.volume(a))
        density *= self.nnz(right) / max(1.0, self.stats.volume(b))
        work = self.stats.volume(a | b) * density
        whole = left | right
        return work + (0.0 if len(whole) == len(self.factors) else TEMPORARY * self.nnz(whole))

    def path(self, effort: Effort) -> list[tuple[int, int]]:
        """The pairs of the best order; of a good one where there are many or time runs out."""
        if len(self.factors) > EXACT:
            return self.greedy()
        found = self.exact(effort)
        if found is None:
            every = f"all contraction orders of {len(self.factors)} operands were compared"
            effort.cuts.append(f"before {every}")
            return self.greedy()
        return found

    def exact(self, effort: Effort) -> list[tuple[int, int]] | None:
        """Dynamic programming over all subsets; None where time runs out."""
        best: dict[frozenset[int], tuple[float, frozenset[int] | None]] = {}
        count = len(self.factors)
        groups = sorted(
            (frozenset(k for k in range(count) if mask >> k & 1) for mask in range(1, 1 << count)),
            key=lambda g: (len(g), sorted(g)),
        )
        for group in groups:
            if len(group) == 1:
                best[group] = (0.0, None)
                continue
            if effort.over:
                return None
            first = min(group)
            options = [
                (best[left][0] + best[group - left][0] + self.pair_cost(left, group - left), left)
                for left in groups
                if first in left and left < group
            ]
            best[group] = min(options, key=lambda o: o[0])
        return self._ssa(best, frozenset(range(count)))

    def _ssa(
        self,
        best: Mapping[frozenset[int], tuple[float, frozenset[int] | None]],
        all_: frozenset[int],
    ) -> list[tuple[int, int]]:
        path: list[tuple[int, int]] = []

        def visit(group: frozenset[int]) -> int:
            left = best[group][1]
            if left is None:
                return min(group)
            pair = (visit(left), visit(group - left))
            path.append(pair)
            return len(self.factors) + len(path) - 1

        visit(all_)
        return path

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

    def cost_of(self, path: Sequence[Sequence[int]]) -> float:
        """The whole cost of a path in einsum's numbering."""
        groups = [frozenset((k,)) for k in range(len(self.factors))]
        total = 0.0
        for pair in path:
            chosen = [groups[k] for k in pair]
            groups = [g for k, g in enumerate(groups) if k not in pair]
            merged = chosen[0]
            for other in chosen[1:]:
                total += self.pair_cost(merged, other)
                merged |= other
            groups.append(merged)
        return total
