"""What need not be in the program: kernels that a cheaper one replaces, or dearer than any answer.

Before → after, with prices, where both make {2}:

    {0} → {1, 2} → 2  5 s,  · → {0, 1, 2} → 2  4 s   →   the second alone: it reads less, costs less

`cheapest_derivations` is a first answer: each value by the kernel that is cheapest with all that it
reads (Knuth 1977, a generalization of Dijkstra's algorithm). It can run, its cost bounds the
optimum from above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby

from taco_py.graph.orchestrate.candidate_kernels import Kernel
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.orchestrate.kernel_choice import run_order, without_idle

Prices = Mapping[Kernel, float]


def cheapest_derivations(prices: Prices, goal: int, available: int) -> tuple[Kernel, ...] | None:
    """Choose for each value its cheapest kernel, counting the kernels of its inputs; None without
    one.

    What two values read is counted twice, so this is no optimum.
    """
    readers: dict[int, list[Kernel]] = {}
    missing = {}
    heap: list[tuple[float, int, Kernel]] = []
    for number, kernel in enumerate(prices):
        missing[kernel] = kernel.inputs & ~available
        for t in bits(missing[kernel]):
            readers.setdefault(t, []).append(kernel)
        if not missing[kernel]:
            heappush(heap, (prices[kernel], number, kernel))
    numbers = {kernel: number for number, kernel in enumerate(prices)}
    costs = dict.fromkeys(bits(available), 0.0)
    makers: list[Kernel] = []
    while heap:
        cost, _, kernel = heappop(heap)
        new = [t for t in bits(kernel.outputs) if t not in costs]
        if new:
            makers.append(kernel)
        for t in new:
            costs[t] = cost
            for reader in readers.get(t, ()):
                missing[reader] &= ~(1 << t)
                if not missing[reader]:
                    total = prices[reader] + sum(costs[r] for r in bits(reader.inputs))
                    heappush(heap, (total, numbers[reader], reader))
    if any(t not in costs for t in bits(goal)):
        return None
    order, _ = run_order(makers, available)
    return without_idle(order, goal, available)


def without_dominated(prices: Prices, most: float, values: int, merge: bool) -> dict[Kernel, float]:
    """Leave out kernels dearer than `most`, and kernels that a cheaper one with no more inputs
    replaces.

    merge  whether kernels with other members may replace a kernel: where recomputation is allowed
    """
    undominated: dict[Kernel, float] = {}
    by_outputs = sorted(prices, key=lambda kernel: (kernel.outputs, prices[kernel]))
    for _, group in groupby(by_outputs, key=lambda kernel: kernel.outputs):
        best: list[int] = []
        for kernel in group:
            if prices[kernel] > most:
                break
            reads = kernel.inputs & ~values
            if merge and any(other & ~reads == 0 for other in best):
                continue
            best.append(reads)
            undominated[kernel] = prices[kernel]
    return undominated


def cost_of(kernels: Sequence[Kernel], prices: Prices) -> float:
    """Return the sum of the prices of kernels."""
    return sum(prices[kernel] for kernel in kernels)
