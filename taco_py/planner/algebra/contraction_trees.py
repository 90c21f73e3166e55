"""Orders in which a product's factors are contracted, by costs that know the nonzeros.

A product of n factors is n - 1 contractions of two, each summed over what no other factor has.
Trees are compared by dynamic programming over subsets: of few factors over all, of more over those
that are connected by shared indices, of which a chain of n has n(n+1)/2 (Moerkotte and Neumann
2006). Where these are too many, the best is taken of a few simple orders: the cheapest pair first
(Smith and Gray 2018, opt_einsum), all from the left, and all from the right.

No pair serves where a sparse factor samples a product of others:

    sum(k, S[i,j] * U[i,k] * V[j,k]) * X[j,f]

S·U has an entry for each k of those of S, and U·V is dense. All three in one step are no more than
S has. Such steps of more than two are pairs one of which is not stored but computed inside the
loops of the next; they are found in the same search (`_Nonzeros.options`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf, prod

from codegen.records import dataclass
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.language.notation.checks import free_indices
from taco_py.planner.algebra.pair_orders import Network, candidates
from taco_py.planner.algebra.products import Product

EXACT_FACTORS = 7
"""Operands up to which all pairwise orders are compared."""
FEW_FACTORS = 10
"""Operands of more than which one order is taken by what its steps multiply alone."""
CONNECTED_GROUPS = 256
"""Connected subsets of the operands up to which all orders that join them are compared."""
Group = frozenset[int]
"""Factors, by their places."""
Steps = Sequence[tuple[int, ...]]
"""The numbers of what each step multiplies: factors have the first, each product has the next."""
Best = Mapping[int, tuple[float, tuple[int, ...]]]
"""What the product of each group costs, and what its last step multiplies; groups with a bit a
factor."""
THREE = (((0, 1), 2), ((0, 2), 1), ((1, 2), 0))
"""The pairs of three factors, and what is left."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Contractions, numbered as by einsum: a step's factors go, their product is appended."""

    cost: float
    path: tuple[tuple[int, ...], ...]

    @property
    def most(self) -> int:
        """Return the number of factors of the largest step."""
        return max(map(len, self.path))


def near_trees(
    stats: Statistics, product: Product, output: tuple[str, ...], effort: Effort, memory: float
) -> tuple[Tree, ...]:
    """Return the cheapest tree of pairs and alternatives that may win by their copies or formats.

    These are all of three factors. Of more they are the cheapest with steps of more than two, and a
    few simple ones whose work is not more by as much as copies of all operands.

    memory  the elements that an intermediate may store; a tree with a larger one costs infinitely
            much
    """
    knows = _Nonzeros(stats, product, output, memory)
    best = knows.tree(knows.path(effort))
    entries = sum(knows.nnz(frozenset((k,))) for k in range(len(product.factors)))
    copies = stats.machine.copies.transposed_entry_steps * entries
    limit = best.cost + copies if len(product.factors) > 3 else inf
    larger = tuple(knows.in_larger_steps(effort))
    if len(product.factors) > FEW_FACTORS:
        return (best, *larger)  # to price a tree is to plan all of its kernels
    simple = (tree for tree in knows.simple() if tree != best and tree.cost <= limit)
    return (best, *larger, *simple)


def best_pairs(
    stats: Statistics, product: Product, output: tuple[str, ...], effort: Effort
) -> Steps:
    """Return the pairs of the cheapest contraction order, by costs that count nonzeros."""
    return _Nonzeros(stats, product, output, inf).path(effort)


def simple_trees(stats: Statistics, product: Product, output: tuple[str, ...]) -> tuple[Tree, ...]:
    """Return further orders: all of three factors; of more, trees with larger steps and simple
    ones.
    """
    knows = _Nonzeros(stats, product, output, inf)
    return (*knows.in_larger_steps(Effort()), *knows.simple())


class _Nonzeros:
    """Costs of contracting subsets of the factors."""

    def __init__(
        self, stats: Statistics, product: Product, output: tuple[str, ...], memory: float
    ) -> None:
        self.stats = stats
        self.memory = memory
        self.product = product
        self.factors = product.factors
        self.kept = set(output)
        self.indices = [frozenset(free_indices(factor)) for factor in product.factors]
        self.opens: dict[Group, frozenset[str]] = {}
        self.sizes: dict[Group, float] = {}
        self.densities: dict[Group, float] = {}

    def open(self, group: Group) -> frozenset[str]:
        """Return the free indices of the product of `group`."""
        if group not in self.opens:
            inside = {i for k in group for i in self.indices[k]}
            outside = (indices for k, indices in enumerate(self.indices) if k not in group)
            self.opens[group] = frozenset(inside & self.kept.union(*outside))
        return self.opens[group]

    def nnz(self, group: Group) -> float:
        """Return the expected nonzeros of the product of `group`, summed over its contracted
        indices.
        """
        if group not in self.sizes:
            part = self.product.of(self.factors[k] for k in sorted(group))
            self.sizes[group] = result_size(self.stats, part, sorted(self.open(group)))
        return self.sizes[group]

    def step_cost(self, parts: Sequence[Group]) -> float:
        """Return the expected multiplications of a step plus the cost of storing its temporary."""
        loops = frozenset[str]().union(*map(self.open, parts))
        work = self.stats.volume(loops) * prod(map(self.density, parts))
        product = frozenset[int]().union(*parts)
        if len(product) == len(self.factors):
            return work
        stored = self.nnz(product)
        store_cost = self.stats.machine.copies.temporary_entry_steps * stored
        return work + store_cost if stored <= self.memory else inf

    def density(self, group: Group) -> float:
        """Return the expected share of the elements of the product of `group` that are nonzeros."""
        if group not in self.densities:
            volume = max(1.0, self.stats.volume(self.open(group)))
            self.densities[group] = self.nnz(group) / volume
        return self.densities[group]

    def path(self, effort: Effort) -> Steps:
        """Return the pairs of the best order, or of a good one where the search is too large."""
        groups = self.groups()
        steps = None if groups is None else self.exact(groups, effort)
        if steps is not None:
            return steps
        every = f"all contraction orders of {len(self.factors)} operands were compared"
        effort.cut(f"before {every}")
        return min(self._orders(), key=self.cost_of)

    def simple(self) -> tuple[Tree, ...]:
        """Return the distinct trees of a few orders that need no search."""
        return tuple(dict.fromkeys(self.tree(pairs) for pairs in self._orders()))

    def in_larger_steps(self, effort: Effort) -> Iterator[Tree]:
        """Yield the cheapest tree with steps of more than two factors, if it beats pairs."""
        groups = self.groups() if len(self.factors) > 3 else None
        sampled = any(self.density(frozenset((k,))) < 1.0 for k in range(len(self.factors)))
        if groups is None or not sampled:
            return
        steps = self.exact(groups, effort, larger=True)
        if steps is not None and len(steps) > 1 and any(len(step) > 2 for step in steps):
            yield self.tree(steps)

    def tree(self, steps: Steps) -> Tree:
        """Return the tree of steps, with the cost of each step."""
        from opt_einsum.paths import ssa_to_linear

        path = tuple(tuple(sorted(step)) for step in ssa_to_linear(steps))
        return Tree(self.cost_of(steps), path)

    def _orders(self) -> Iterator[Steps]:
        if len(self.factors) == 3:
            yield from ([pair, (other, 3)] for pair, other in THREE)
        else:
            if len(self.factors) > FEW_FACTORS:
                yield from self.of_network()
            else:
                yield self.greedy()
            yield from (self.from_left(), self.from_right())

    def of_network(self) -> Iterator[Steps]:
        """Yield opt_einsum's orders for dense factors, and the greedy order of connected pairs."""
        factors = tuple(map(tuple, self.indices))
        sizes = {i: int(self.stats.sizes[i]) for indices in factors for i in indices}
        yield from candidates(Network(factors, frozenset(self.kept), sizes))
        yield self.greedy_beside()

    def groups(self) -> tuple[int, ...] | None:
        """Return the connected subsets of factors as bit sets, the smaller first; None for too
        many.

        A product of what shares no index is larger than both, and seldom better than later.
        """
        count = len(self.factors)
        every = (1 << count) - 1
        if count <= EXACT_FACTORS:
            return self._sorted(range(1, every + 1))
        neighbours = [self._neighbours(k) for k in range(count)]
        adjacent = {1 << k: neighbours[k] for k in range(count)}  # with the factors that touch them
        for group in (queue := list(adjacent)):
            for k in range(count):
                larger = group | 1 << k
                if adjacent[group] >> k & 1 and larger not in adjacent:
                    adjacent[larger] = (adjacent[group] | neighbours[k]) & ~larger
                    queue.append(larger)
                    if len(queue) > CONNECTED_GROUPS:
                        return None
        return self._sorted(adjacent) if every in adjacent else None

    def _sorted(self, groups: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(groups, key=lambda g: (g.bit_count(), sorted(self._factors_of(g)))))

    def _neighbours(self, k: int) -> int:
        """Return the factors that share an index with factor `k`, as a bit set."""
        mine = set(free_indices(self.factors[k]))
        touched = (j for j, f in enumerate(self.factors) if j != k and mine & set(free_indices(f)))
        return sum(1 << j for j in touched)

    def exact(self, groups: Sequence[int], effort: Effort, larger: bool = False) -> Steps | None:
        """Find the cheapest order by dynamic programming over subsets; None where time runs out.

        larger  whether steps may have more than two parts
        """
        best: dict[int, tuple[float, tuple[int, ...]]] = {}
        sets = {group: self._factors_of(group) for group in groups}
        for group in groups:
            first = group & -group
            if group == first:
                best[group] = (0.0, ())
                continue
            if effort.over:
                return None
            least, step = inf, tuple[int, ...]()
            for left in best:
                if left & first and not left & ~group and group ^ left in best:
                    for parts in self.options(best, left, group ^ left, larger):
                        cost = sum(best[part][0] for part in parts)
                        if cost < least or not step:
                            cost += self.step_cost([sets[part] for part in parts])
                        if cost < least or not step:
                            least, step = cost, parts
            best[group] = (least, step)
        return self._ssa(best)

    def options(self, best: Best, left: int, right: int, larger: bool) -> Iterator[tuple[int, ...]]:
        """Yield the parts of a step that makes the product of two groups."""
        yield left, right
        if larger:
            above, below = best[left][1], best[right][1]
            if above:
                yield *above, right
            if below:
                yield left, *below
            if above and below:
                yield *above, *below

    def _factors_of(self, group: int) -> Group:
        return frozenset(k for k in range(len(self.factors)) if group >> k & 1)

    def _ssa(self, best: Best) -> Steps:
        path: list[tuple[int, ...]] = []

        def visit(group: int) -> int:
            parts = best[group][1]
            if not parts:
                return group.bit_length() - 1
            path.append(tuple(map(visit, parts)))
            return len(self.factors) + len(path) - 1

        visit((1 << len(self.factors)) - 1)
        return path

    def from_left(self) -> Steps:
        """Contract from the left: ((A·B)·C)·D."""
        count = len(self.factors)
        return [(0, 1), *((count + k - 2, k) for k in range(2, count))]

    def from_right(self) -> Steps:
        """Contract from the right: A·(B·(C·D))."""
        count = len(self.factors)
        return [(count - 2, count - 1), *((count - 1 - k, count + k - 2) for k in range(2, count))]

    def greedy(self) -> Steps:
        """Contract the cheapest pair repeatedly."""
        live = {k: frozenset((k,)) for k in range(len(self.factors))}
        path: list[tuple[int, ...]] = []
        while len(live) > 1:
            keys = sorted(live)
            pairs = [(a, b) for n, a in enumerate(keys) for b in keys[n + 1 :]]
            a, b = min(pairs, key=lambda p: self.step_cost([live[k] for k in p]))
            path.append((a, b))
            live[len(self.factors) + len(path) - 1] = live.pop(a) | live.pop(b)
        return path

    def greedy_beside(self) -> Steps:
        """Contract the cheapest pair repeatedly, preferring pairs that share an index."""
        live = {k: frozenset((k,)) for k in range(len(self.factors))}
        path: list[tuple[int, ...]] = []
        costs: list[tuple[float, int, int]] = []

        def meet(new: int, groups: Iterable[int]) -> None:
            mine = self.open(live[new])
            for other in groups:
                if other != new and mine & self.open(live[other]):
                    cost = self.step_cost([live[other], live[new]])
                    heappush(costs, (cost, other, new))

        for k in live:
            meet(k, range(k))
        while len(live) > 1:
            while costs and not {costs[0][1], costs[0][2]} <= live.keys():
                heappop(costs)
            if costs:
                _, a, b = heappop(costs)
            else:  # what is left shares no index: the smallest first
                a, b, *_ = sorted(live, key=lambda k: self.nnz(live[k]))
            new = len(self.factors) + len(path)
            path.append((a, b))
            live[new] = live.pop(a) | live.pop(b)
            meet(new, tuple(live))
        return path

    def cost_of(self, path: Steps) -> float:
        """Return the total cost of a path in which each product has the next number."""
        groups = [frozenset((k,)) for k in range(len(self.factors))]
        total = 0.0
        for step in path:
            parts = [groups[k] for k in step]
            total += self.step_cost(parts)
            groups.append(frozenset[int]().union(*parts))
        return total
