"""The greedy baseline: partitions that get better by merging two of their kernels.

From singletons on, each pair of kernels of which one reads the other is merged, and the partition
kept where it is cheaper than the one that it came from; a partition is marked once all its pairs
are tried (Jung et al. 2021, DeepCuts, algorithm 1). No primitive is computed twice.

    {0} {1} {2}  →  {0, 1} {2},  {0} {1, 2}  →  {0, 1, 2}

Each round follows the few cheapest partitions that are not marked, so that long graphs end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf

from taco_py.graph.orchestrate.candidate_kernels import Candidates, Kernel, make_kernel
from taco_py.graph.orchestrate.convexity import contract, is_convex
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
    prices = PriceList(dag, _without_time(price, spent := [0.0]), {})
    allowed = frozenset(candidates.kernels)
    best = tuple(1 << p for p in bits(dag.needed))
    without = [m for m in best if _price(dag, m, allowed, prices) == inf]
    if without:
        raise refuse_unmade(dag, sum(without))
    best_cost = sum(_price(dag, members, allowed, prices) for members in best)
    seen, wave, rounds = {best}, [(best_cost, best)], 0
    while wave:
        rounds += 1
        better: list[tuple[float, Partition]] = []
        for cost, partition in wave:
            for merged, gain in _merges(dag, partition, allowed, prices):
                if merged not in seen:
                    seen.add(merged)
                    better.append((cost - gain, merged))
        wave = sorted(better)[:width]
        if wave and wave[0][0] < best_cost:
            best_cost, best = wave[0]
    statistics = ChoiceStatistics(
        "greedy",
        dag.needed.bit_count(),
        candidates.states,
        len(candidates.kernels),
        len(prices.known),
        len(seen),
        rounds,
        seconds=time.perf_counter() - start - spent[0],
    )
    return make_choice(dag, [make_kernel(dag, members) for members in best], prices, statistics)


def _merges(
    dag: Dag, partition: Partition, allowed: frozenset[Kernel], prices: PriceList
) -> Iterator[tuple[Partition, float]]:
    """Yield each cheaper partition in which a kernel and one that reads it are one, with the gain.

    The price is asked for before the order: most pairs are no candidates.
    """
    holders = {p: members for members in partition for p in bits(members)}
    for left in partition:
        readers = {holders[q] for p in bits(left) for q in bits(dag.successors[p] & dag.needed)}
        for right in sorted(readers - {left}):
            union = left | right
            if not is_convex(dag, union):
                continue
            apart = sum(_price(dag, members, allowed, prices) for members in (left, right))
            gain = apart - _price(dag, union, allowed, prices)
            if gain <= 0:
                continue
            rest = [members for members in partition if members not in (left, right)]
            merged = tuple(sorted((*rest, union), key=lambda members: members & -members))
            if contract(dag, merged) is not None:
                yield merged, gain


def _price(dag: Dag, members: int, allowed: frozenset[Kernel], prices: PriceList) -> float:
    """Return the price of these primitives as one kernel, infinity for what is no candidate."""
    kernel = make_kernel(dag, members)
    return prices.of(kernel) if kernel in allowed else inf


def _without_time(price: Price, spent: list[float]) -> Price:
    """Return a price function that adds the time it takes to `spent`."""

    def timed(kernel: Kernel) -> float:
        start = time.perf_counter()
        seconds = price(kernel)
        spent[0] += time.perf_counter() - start
        return seconds

    return timed
