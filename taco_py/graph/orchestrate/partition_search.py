"""The greedy baseline: partitions that get better by merging two of their kernels.

From singletons on, each pair of kernels of which one reads the other is merged, and the partition
kept where it is cheaper than the one that it came from; a partition is marked once all its pairs
are tried (Jung et al. 2021, DeepCuts, algorithm 1). No primitive is computed twice.

    {0} {1} {2}  →  {0, 1} {2},  {0} {1, 2}  →  {0, 1, 2}

Each round follows the few cheapest partitions that are not marked, so that long graphs end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf

from codegen.records import dataclass
from taco_py.graph.orchestrate.candidate_kernels import Candidates, Kernel, make_kernel
from taco_py.graph.orchestrate.convexity import contract
from taco_py.graph.orchestrate.dag import Dag, bits
from taco_py.graph.orchestrate.kernel_choice import (
    Choice,
    ChoiceStatistics,
    Price,
    PriceList,
    make_choice,
    refuse_unmade,
)

Partition = tuple[int, ...]
"""The members of each kernel, in the order of their first primitives."""


def search_partitions(dag: Dag, candidates: Candidates, price: Price, *, width: int = 4) -> Choice:
    """Choose a partition into candidate kernels that no merge of a pair makes cheaper.

    width  how many partitions each round follows; 1: the best alone

    Raises ScheduleError where a primitive has no finite price by itself.
    """
    start = time.perf_counter()
    prices = _Prices(dag, frozenset(candidates.kernels), PriceList(dag, price, {}), {})
    best = tuple(1 << p for p in bits(dag.live))
    without = [members for members in best if prices.of(members) == inf]
    if without:
        raise refuse_unmade(dag, sum(without))
    best_cost = sum(map(prices.of, best))
    visited, wave, rounds = {best}, [(best_cost, best)], 0
    while wave:
        rounds += 1
        better = sorted({merge for candidate in wave for merge in _merges(dag, *candidate, prices)})
        wave = list(islice(_can_run(dag, better, visited), width))
        if wave and wave[0][0] < best_cost:
            best_cost, best = wave[0]
    statistics = ChoiceStatistics(
        "greedy",
        dag.live.bit_count(),
        candidates.states,
        len(candidates.kernels),
        len(prices.price_list.costs),
        len(visited),
        rounds,
        seconds=time.perf_counter() - start,
    )
    kernels = [make_kernel(dag, members) for members in best]
    return make_choice(dag, kernels, prices.price_list, statistics)


@dataclass(frozen=True, slots=True)
class _Prices:
    """Prices of sets of primitives as kernels, infinite for those that are no candidates."""

    dag: Dag
    allowed: frozenset[Kernel]
    price_list: PriceList
    computed: dict[int, float]

    def of(self, members: int) -> float:
        if members not in self.computed:
            kernel = make_kernel(self.dag, members)
            self.computed[members] = self.price_list.of(kernel) if kernel in self.allowed else inf
        return self.computed[members]


def _merges(
    dag: Dag, cost: float, partition: Partition, prices: _Prices
) -> Iterator[tuple[float, Partition]]:
    """Yield each cheaper partition in which a kernel and one that reads it are one."""
    holders = {p: members for members in partition for p in bits(members)}
    for left in partition:
        readers = {holders[q] for p in bits(left) for q in bits(dag.successors[p] & dag.live)}
        for right in readers - {left}:
            union = left | right
            gain = prices.of(left) + prices.of(right) - prices.of(union)
            if gain > 0:
                rest = (members for members in partition if members not in (left, right))
                merged = sorted((*rest, union), key=lambda members: members & -members)
                yield cost - gain, tuple(merged)


def _can_run(
    dag: Dag, partitions: Iterable[tuple[float, Partition]], visited: set[Partition]
) -> Iterator[tuple[float, Partition]]:
    """Yield the partitions that are new and whose kernels do not wait for each other."""
    for cost, partition in partitions:
        if partition not in visited:
            visited.add(partition)
            if contract(dag, partition) is not None:
                yield cost, partition
