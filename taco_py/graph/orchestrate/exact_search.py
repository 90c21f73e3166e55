"""The cheapest kernels of a small graph, by a search through all sets of values that can exist.

    ∅  →  {values made}  →  …  →  all results

A step runs one kernel whose inputs exist; the shortest path is the optimum (Dijkstra 1959). It
shares nothing with the binary program, which tests compare with it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from heapq import heappop, heappush

from taco_py.graph.orchestrate.candidate_kernels import Candidates, Kernel
from taco_py.graph.orchestrate.dag import Dag
from taco_py.graph.orchestrate.kernel_choice import (
    Choice,
    ChoiceStatistics,
    Price,
    PriceList,
    is_finite,
    make_choice,
    refuse_unmade,
    unmade,
)
from taco_py.language.diagnostics.errors import ScheduleError

MOST_PRIMITIVES = 10
"""Primitives of a graph that all sets are tried for."""

Place = tuple[int, int]
"""The values that exist, and the primitives that may not be computed again."""


def search_exactly(
    dag: Dag, candidates: Candidates, price: Price, *, recompute: bool = True
) -> Choice:
    """Choose the cheapest kernels by trying all orders, when there are few primitives.

    Raises ScheduleError for a graph that is too large, and where nothing makes the results.
    """
    size = dag.live.bit_count()
    if size > MOST_PRIMITIVES:
        raise ScheduleError(
            f"Expected at most {MOST_PRIMITIVES} primitives for the exact search, found {size}",
            hint="choose by the binary program",
        )
    prices = PriceList(dag, price, {})
    finite = {k: c for k in candidates.kernels if is_finite(c := prices.of(k))}
    start = time.perf_counter()
    kernels = _shortest_path(finite, dag.outputs, 0 if recompute else dag.live)
    if kernels is None:
        raise refuse_unmade(dag, unmade(finite, dag.outputs))
    spent = time.perf_counter() - start
    statistics = ChoiceStatistics(
        "exact", size, candidates.states, len(candidates.kernels), len(prices.costs), seconds=spent
    )
    return make_choice(dag, kernels, prices, statistics)


def _shortest_path(
    prices: Mapping[Kernel, float], goal: int, singles: int
) -> tuple[Kernel, ...] | None:
    """Return the cheapest order of kernels from nothing to the goal, None where none exists."""
    start: Place = (0, 0)
    costs = {start: 0.0}
    came: dict[Place, tuple[Place, Kernel]] = {}
    heap: list[tuple[float, Place]] = [(0.0, start)]
    while heap:
        cost, place = heappop(heap)
        values, ran = place
        if cost > costs[place]:
            continue
        if not goal & ~values and not singles & ~ran:
            return _path(came, place)
        for kernel, price in prices.items():
            if kernel.inputs & ~values or kernel.members & ran or not kernel.outputs & ~values:
                continue
            after = (values | kernel.outputs, ran | kernel.members & singles)
            if cost + price < costs.get(after, float("inf")):
                costs[after] = cost + price
                came[after] = (place, kernel)
                heappush(heap, (cost + price, after))
    return None


def _path(came: Mapping[Place, tuple[Place, Kernel]], place: Place) -> tuple[Kernel, ...]:
    kernels = []
    while place in came:
        place, kernel = came[place]
        kernels.append(kernel)
    return tuple(reversed(kernels))
