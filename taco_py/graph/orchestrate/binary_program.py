"""Orchestration as a binary linear program, solved by HiGHS (Hu et al. 2024, Korch, section 4).

For each kernel i a binary variable aᵢ: it runs.

    minimize  Σ cᵢ aᵢ                                       cᵢ the price of kernel i
    Σ aᵢ over kernels that write t  ≥  1                    for each result t
    Σ aᵢ over kernels that write t  ≥  Σ aⱼ over kernels that read t and write O
                                                            for each t, each set O that is written
    Σ aᵢ over kernels that hold p   ≥  1                    for each needed primitive p

The paper has a variable for each value, and a row for each kernel and what it reads. Two kernels
with the same outputs never pay: hence the sums of the third line, which are as strong and fewer.
The last line follows for whole numbers; for the fractions that the solver starts from it does not.
A primitive may be in several kernels: it is computed again. Without recomputation the last line is
an equation.

Kernels with several outputs may wait for each other. For a set S of these, where each waits for a
value of V that only S makes, a cut is added and the program solved again, until all can run:

    Σ aᵢ over S  ≤  |S| - 1 + Σ aⱼ over kernels j outside of S that write a value of V
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf

from codegen.records import dataclass
from taco_py.graph.orchestrate.candidate_kernels import Kernel
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.orchestrate.fewest_columns import Prices, cost_of
from taco_py.graph.orchestrate.kernel_choice import run_order, without_idle
from taco_py.graph.orchestrate.linear_rows import Row, minimize

SCALE = 1e4
"""What the first answer costs in the program's unit: HiGHS stops at an absolute gap of 1e-6."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Kernels in order, what the optimum costs at least, and how often a program was solved."""

    kernels: tuple[Kernel, ...]
    bound: float
    rounds: int


def solve(
    prices: Prices,
    goal: int,
    first: tuple[Kernel, ...] = (),
    best: float = inf,
    *,
    available: int = 0,
    required: int = 0,
    recompute: bool = True,
    seconds: float = 10.0,
) -> Solution:
    """Choose the cheapest kernels that can run and make the values of the goal; none where none do.

    first      an answer that is kept where the time is over before a better one is found
    best       what it costs, infinity where there is none
    available  values that exist before
    required   primitives that the goal is or depends on, and that are not given
    recompute  whether several kernels may compute a primitive
    """
    if not prices or not goal & ~available:
        return Solution((), 0.0, 0)
    kernels = tuple(prices)
    rows = [*_supply_rows(kernels, goal, available), *_computed(kernels, required, recompute)]
    unit = best if best < inf else max(prices.values(), default=0.0)
    scale = SCALE / unit if unit > 0 else 1.0
    costs = [prices[kernel] * scale for kernel in kernels]
    end = time.perf_counter() + seconds
    rounds, bound = 0, 0.0
    while (left := end - time.perf_counter()) > 0:
        rounds += 1
        minimum = minimize(costs, rows, left)
        bound = max(bound, minimum.bound / scale)
        if minimum.values is None:
            break
        order, stuck = run_order([kernels[n] for n in minimum.ones], available)
        if not stuck or not goal & ~_values(order, available):
            used = without_idle(order, goal, available)
            cost = cost_of(used, prices)
            if minimum.proven:
                return Solution(used, cost, rounds)
            return Solution(used if cost < best else first, min(bound, cost, best), rounds)
        rows += _cuts(kernels, order, stuck, available)
    return Solution(first, min(bound, best), rounds)


def _values(kernels: Sequence[Kernel], available: int) -> int:
    """Return the values that exist once all kernels ran."""
    for kernel in kernels:
        available |= kernel.outputs
    return available


def _supply_rows(kernels: Sequence[Kernel], goal: int, available: int) -> list[Row]:
    """Return the rows by which values that are read or asked for are made."""
    writers: dict[int, list[int]] = {}
    readers: dict[tuple[int, int], list[int]] = {}
    for n, kernel in enumerate(kernels):
        for t in bits(kernel.outputs):
            writers.setdefault(t, []).append(n)
        for t in bits(kernel.inputs & ~available):
            readers.setdefault((t, kernel.outputs), []).append(n)
    rows = [Row(_weights(writers.get(t, ()), ()), 1.0, inf) for t in bits(goal & ~available)]
    for (t, _), consumers in readers.items():
        rows.append(Row(_weights(writers.get(t, ()), consumers), 0.0, inf))
    return rows


def _weights(more: Sequence[int], less: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """Return the weights of variables in a row: 1, -1, and 0 for those in both."""
    shared = set(more) & set(less)
    return (
        *((n, 1.0) for n in more if n not in shared),
        *((n, -1.0) for n in less if n not in shared),
    )


def _computed(kernels: Sequence[Kernel], required: int, recompute: bool) -> list[Row]:
    """Return a row for each primitive: some kernel computes it, or exactly one does."""
    holders: dict[int, list[tuple[int, float]]] = {p: [] for p in bits(required)}
    for n, kernel in enumerate(kernels):
        for p in bits(kernel.members & required):
            holders[p].append((n, 1.0))
    most = inf if recompute else 1.0
    return [Row(tuple(parts), 1.0, most) for parts in holders.values()]


def _cuts(
    kernels: Sequence[Kernel], order: Sequence[Kernel], stuck: Sequence[Kernel], available: int
) -> list[Row]:
    """Return a cut for each smallest set of kernels that wait for values of each other alone."""
    existing = _values(order, available)
    waits = {kernel: next(bits(kernel.inputs & ~existing)) for kernel in stuck}
    closures = {frozenset(_closure(waits, kernel)) for kernel in stuck}
    small = [closure for closure in closures if not any(other < closure for other in closures)]
    rows = []
    for closure in sorted(small, key=lambda closure: sorted(k.members for k in closure)):
        values = 0
        for kernel in closure:
            values |= 1 << waits[kernel]
        weights = [
            (n, 1.0 if kernel in closure else -1.0)
            for n, kernel in enumerate(kernels)
            if kernel in closure or kernel.outputs & values
        ]
        rows.append(Row(tuple(weights), -inf, len(closure) - 1.0))
    return rows


def _closure(waits: dict[Kernel, int], kernel: Kernel) -> set[Kernel]:
    """Return a kernel, the stuck kernels that make its missing value, and so on."""
    members, waiting = {kernel}, [kernel]
    while waiting:
        value = waits[waiting.pop()]
        new = [other for other in waits if other.outputs >> value & 1 and other not in members]
        members.update(new)
        waiting += new
    return members
