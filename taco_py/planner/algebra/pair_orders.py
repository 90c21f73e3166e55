"""Orders in which many factors are contracted in pairs: opt_einsum's, compared by costs of ours.

    A[a,b] * B[b,c] * C[c,d] * … * Z[y,z]   →   (0, 1), (26, 2), (27, 3), …

Dynamic programming over all subsets is for few factors (`contraction_trees`). Of many, candidates
come from greedy searches (Smith and Gray 2018, opt_einsum), from dynamic programming where few
subsets are connected, as in chains, and from a partition of the hypergraph (Gray and Kourtis 2021,
cotengra) where that library is installed and the work is worth its time. But for partitions, how
many are tried depends on the factors alone, so that a product has one order on every machine.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from math import comb, prod

from codegen.records import dataclass
from taco_py.compiler.cost.effort import Effort

Pairs = Sequence[tuple[int, int]]
"""The numbers of what each step multiplies: factors have the first, each product has the next."""
TRIED_PAIRS = 600
"""The factors, and pairs of them that share an index, that all random greedy searches together may
have: a ring of 20 factors has 15 searches, one of more than 300 the usual greedy order alone."""
MOST_TRIED = 16
CONNECTED_GROUPS = 256
"""Connected subsets up to which all orders that join them are compared: those of a chain of 22."""
BRANCHED_FACTORS = 14
"""Factors up to which a depth-first search follows the best candidate of each step, as opt_einsum's
usual one does."""
PARTITIONED_PRODUCTS = 1e10
"""Multiplications, seconds of work, from which a partition of the hypergraph is looked for."""
PARTITIONS = 32
"""The partitions that are tried, as long as there is time."""
PARTITION_SECONDS = 5.0
"""After which no other partition is begun: a search pays where work takes seconds."""


@dataclass(frozen=True, slots=True)
class Network:
    """A product of factors, by their indices.

    factors  the indices of each factor
    output     the indices that are not summed
    sizes    the size of each index
    """

    factors: tuple[tuple[str, ...], ...]
    output: frozenset[str]
    sizes: Mapping[str, int]

    @property
    def shared(self) -> int:
        """Return the pairs of factors that share an index, once for each index that they share."""
        holders = Counter(index for indices in self.factors for index in indices)
        return sum(comb(count, 2) for count in holders.values())

    def steps(self, pairs: Pairs) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
        """Yield the loops of each step, and the indices of its product."""
        groups = [frozenset(indices) for indices in self.factors]
        holders: dict[str, int] = {}
        for group in groups:
            for index in group:
                holders[index] = holders.get(index, 0) + 1
        for left, right in pairs:
            one, other = groups[left], groups[right]
            summed = set()
            for index in one & other:
                holders[index] -= 1
                if holders[index] == 1 and index not in self.output:
                    summed.add(index)
            loops = one | other
            open_indices = loops - summed
            groups.append(open_indices)
            yield loops, open_indices

    def volume(self, indices: frozenset[str]) -> float:
        """Return the number of coordinate tuples over indices."""
        return prod([self.sizes[index] for index in indices], start=1.0)

    def cost(self, pairs: Pairs, element_steps: float) -> tuple[float, float]:
        """Return the multiplications of all steps with the cost of storing their products, and
        without.
        """
        stored = products = 0.0
        for loops, open_indices in self.steps(pairs):
            volume = self.volume(loops)
            products += volume
            stored += volume if len(open_indices) == len(loops) else self.volume(open_indices)
        return products + element_steps * stored, products

    def products(self, pairs: Pairs) -> float:
        """Return the multiplications of all steps."""
        return sum(self.volume(loops) for loops, _ in self.steps(pairs))


@dataclass(frozen=True, slots=True)
class PairOrder:
    """The cheapest order, what it costs, and how many orders it was chosen from.

    products  the multiplications alone
    """

    pairs: Pairs
    cost: float
    products: float
    candidates: int


def cheapest_order(network: Network, effort: Effort, element_steps: float) -> PairOrder:
    """Return the order of least cost, in multiplications and in stored products.

    element_steps  writing and reading an element of a product, in multiplications
    """

    usual = _greedy(network)
    best = PairOrder(usual, *network.cost(usual, element_steps), 1)
    for search in _searches(network, best.cost, effort):
        if effort.over:
            effort.cut(
                f"after {best.candidates} contraction orders of {len(network.factors)} operands"
            )
            break
        pairs = search()
        cost, products = network.cost(pairs, element_steps)
        if cost < best.cost:
            best = PairOrder(pairs, cost, products, best.candidates + 1)
        else:
            best = replace(best, candidates=best.candidates + 1)
    return best


def candidates(network: Network) -> Iterator[Pairs]:
    """Yield the usual greedy order and, for few factors, random ones."""
    yield _greedy(network)
    for seed in range(_trials(network)):
        yield _greedy(network, seed)


def _trials(network: Network) -> int:
    """Count the random greedy searches to run."""
    return min(MOST_TRIED, TRIED_PAIRS // (len(network.factors) + network.shared))


def _searches(network: Network, cost: float, effort: Effort) -> Iterator[Callable[[], Pairs]]:
    """Yield the searches for further candidates.

    cost  of the usual greedy order
    """
    if _few_connected(network):
        yield partial(_exact, network)
        return
    if len(network.factors) <= BRANCHED_FACTORS:
        yield partial(_branched, network)
    for seed in range(_trials(network)):
        yield partial(_greedy, network, seed)
    if cost >= PARTITIONED_PRODUCTS and find_spec("cotengra") is not None:
        yield partial(_partitioned, network, effort.left)


def _greedy(network: Network, seed: int | None = None) -> Pairs:
    """Return the pair first that frees most memory; by a seed, one of those that free nearly as
    much."""
    from opt_einsum.path_random import thermal_chooser
    from opt_einsum.paths import ssa_greedy_optimize

    inputs = [frozenset(indices) for indices in network.factors]
    if seed is None:
        return ssa_greedy_optimize(inputs, network.output, dict(network.sizes))  # type: ignore[no-any-return]
    state = random.getstate()  # the chooser draws from the one generator of all
    random.seed(seed)
    try:
        return ssa_greedy_optimize(  # type: ignore[no-any-return]
            inputs, network.output, dict(network.sizes), thermal_chooser, "memory-removed-jitter"
        )
    finally:
        random.setstate(state)


def _exact(network: Network) -> Pairs:
    """Return the order of fewest operations without outer products."""
    from opt_einsum.paths import DynamicProgramming, linear_to_ssa

    inputs = [frozenset(indices) for indices in network.factors]
    search = DynamicProgramming(minimize="flops")
    return linear_to_ssa(search(inputs, network.output, dict(network.sizes)))  # type: ignore[no-any-return]


def _branched(network: Network) -> Pairs:
    """Return the order that a depth-first search with bounds finds."""
    from opt_einsum.paths import branch, linear_to_ssa

    inputs = [frozenset(indices) for indices in network.factors]
    path = branch(inputs, network.output, dict(network.sizes), nbranch=1)
    return linear_to_ssa(path)  # type: ignore[no-any-return]


def _partitioned(network: Network, left: float) -> Pairs:
    """Return the order of a recursive partition of the hypergraph of factors and indices.

    left  the seconds that there are
    """
    import cotengra
    from opt_einsum.paths import linear_to_ssa

    methods = ["greedy", "kahypar" if find_spec("kahypar") is not None else "labels"]
    search = cotengra.HyperOptimizer(
        methods=methods,
        max_repeats=PARTITIONS,
        max_time=min(PARTITION_SECONDS, left),
        parallel=False,
        progbar=False,
    )
    path = search(list(network.factors), tuple(sorted(network.output)), dict(network.sizes))
    return linear_to_ssa(path)  # type: ignore[no-any-return]


def _few_connected(network: Network) -> bool:
    """Tell whether few subsets of the factors are connected, and all factors are."""
    holders: dict[str, int] = {}
    for number, indices in enumerate(network.factors):
        for index in indices:
            holders[index] = holders.get(index, 0) | 1 << number
    neighbours = [0] * len(network.factors)
    for number, indices in enumerate(network.factors):
        for index in indices:
            neighbours[number] |= holders[index] & ~(1 << number)
    adjacency = {1 << number: adjacent for number, adjacent in enumerate(neighbours)}
    queue = list(adjacency)
    for group in queue:
        open_set = adjacency[group]
        while open_set:
            bit = open_set & -open_set
            open_set ^= bit
            larger = group | bit
            if larger not in adjacency:
                adjacency[larger] = (adjacency[group] | neighbours[bit.bit_length() - 1]) & ~larger
                queue.append(larger)
                if len(queue) > CONNECTED_GROUPS:
                    return False
    return (1 << len(network.factors)) - 1 in adjacency
