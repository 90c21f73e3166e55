"""The choice of kernels by the binary program: of a whole graph, or of one window after another.

    candidates → prices → fewest columns → program → kernels in order

All windows are one program where it stays small enough to solve. Else each window is one: the
values that are made in it and read after it are its goal, those made before are given.
"""

from __future__ import annotations

import time
from math import inf

from taco_py.graph.orchestrate.binary_program import Solution, solve
from taco_py.graph.orchestrate.candidate_kernels import Candidates, Kernel
from taco_py.graph.orchestrate.dag import Dag, bits
from taco_py.graph.orchestrate.execution_states import crossing
from taco_py.graph.orchestrate.fewest_columns import (
    cheapest_derivations,
    cost_of,
    without_dominated,
)
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

MOST_COLUMNS = 6000
"""Kernels of a program that is solved as a whole."""


def orchestrate(
    dag: Dag,
    candidates: Candidates,
    price: Price,
    *,
    recompute: bool = True,
    seconds: float = 10.0,
    most_columns: int = MOST_COLUMNS,
) -> Choice:
    """Choose the kernels whose prices have the least sum, by a binary linear program.

    recompute  whether several kernels may compute a primitive
    seconds    how long to look; after it the best answer that was found, with its gap

    Raises ScheduleError where no kernels with finite prices make the results.
    """
    prices = PriceList(dag, price, {})
    for kernel in candidates.kernels:
        prices.of(kernel)
    start = time.perf_counter()
    finite = {kernel: cost for kernel, cost in prices.known.items() if is_finite(cost)}
    missing = unmade(finite, dag.outputs)
    if missing:
        raise refuse_unmade(dag, missing)
    goals = [(dag.needed, dag.outputs, 0)]
    if len(finite) > most_columns:
        goals = _by_window(dag, candidates)
    columns = rounds = 0
    bound = 0.0
    chosen: list[Kernel] = []
    for members, goal, given in goals:
        own = {k: cost for k, cost in finite.items() if not k.members & ~members}
        left = seconds - (time.perf_counter() - start)
        used, solution = _solve(dag, own, goal, given, recompute, left)
        chosen += solution.kernels
        columns, rounds = columns + used, rounds + solution.rounds
        bound += solution.bound
    cost = cost_of(chosen, finite)
    statistics = ChoiceStatistics(
        "orchestrate" if len(goals) == 1 else f"orchestrate in {len(goals)} windows",
        dag.needed.bit_count(),
        candidates.states,
        len(candidates.kernels),
        len(prices.known),
        columns,
        rounds,
        max(0.0, cost - bound) / cost if cost > 0 else 0.0,
        time.perf_counter() - start,
    )
    return make_choice(dag, chosen, prices, statistics)


def _by_window(dag: Dag, candidates: Candidates) -> list[tuple[int, int, int]]:
    """Return for each window its primitives, the values to make and those that are given."""
    goals, done = [], 0
    for window in candidates.windows:
        state = done | window.members
        goal = (crossing(dag, state) | dag.outputs) & window.members
        goals.append((window.members, goal, done))
        done = state
    return goals


def _solve(
    dag: Dag, prices: dict[Kernel, float], goal: int, given: int, recompute: bool, seconds: float
) -> tuple[int, Solution]:
    """Solve for one goal; return the number of columns too."""
    needed = (goal | dag.before(goal)) & ~given
    if recompute:
        first = cheapest_derivations(prices, goal, given)
    else:
        first = _singletons(prices, needed)
    most = cost_of(first, prices) if first is not None else inf
    columns = without_dominated(prices, most * (1 + 1e-9), given, merge=recompute)
    solution = solve(
        columns, goal, first, given=given, needed=needed, recompute=recompute, seconds=seconds
    )
    if unmade(solution.kernels, goal, given):
        raise refuse_unmade(dag, unmade(prices, goal, given))
    return len(columns), solution


def _singletons(prices: dict[Kernel, float], members: int) -> tuple[Kernel, ...] | None:
    """Return each primitive as a kernel, None where one has no finite price."""
    alone = {k.members: k for k in prices if k.members == k.outputs and k.members & members}
    own = [alone.get(1 << p) for p in bits(members)]
    found = tuple(kernel for kernel in own if kernel is not None)
    return found if len(found) == len(own) else None
