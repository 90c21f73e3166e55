"""The choice of kernels by the binary program: of a whole graph, or of one window after another.

    candidates → prices → first answers → fewest columns → program → kernels in order

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
from taco_py.graph.orchestrate.partition_search import search_partitions

MOST_COLUMNS = 6000
"""Kernels of a program that is solved as a whole."""


def orchestrate(
    dag: Dag,
    candidates: Candidates,
    price: Price,
    *,
    recompute: bool = True,
    seconds: float = 2.0,
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
    finite = {kernel: cost for kernel, cost in prices.costs.items() if is_finite(cost)}
    missing = unmade(finite, dag.outputs)
    if missing:
        raise refuse_unmade(dag, missing)
    goals = [(dag.live, dag.outputs, 0)]
    if len(finite) > most_columns:
        goals = _by_window(dag, candidates)
    columns = rounds = 0
    bound = 0.0
    kernels: list[Kernel] = []
    greedy = _merged(dag, candidates, finite)
    for number, (members, goal, available) in enumerate(goals):
        window_prices = {k: cost for k, cost in finite.items() if not k.members & ~members}
        left = seconds - (time.perf_counter() - start)
        share = left / (len(goals) - number)
        incumbent = greedy if len(goals) == 1 else None
        used, solution = _solve(dag, window_prices, goal, available, recompute, share, incumbent)
        kernels += solution.kernels
        columns, rounds = columns + used, rounds + solution.rounds
        bound += solution.bound
    if greedy is not None and cost_of(greedy, finite) < cost_of(kernels, finite):
        kernels = list(greedy)
    cost = cost_of(kernels, finite)
    statistics = ChoiceStatistics(
        "orchestrate" if len(goals) == 1 else f"orchestrate in {len(goals)} windows",
        dag.live.bit_count(),
        candidates.states,
        len(candidates.kernels),
        len(prices.costs),
        columns,
        rounds,
        max(0.0, cost - bound) / cost if cost > 0 else 0.0,
        time.perf_counter() - start,
    )
    return make_choice(dag, kernels, prices, statistics)


def _by_window(dag: Dag, candidates: Candidates) -> list[tuple[int, int, int]]:
    """Return for each window its primitives, the values to make, and the values that
    exist before.
    """
    goals, available = [], 0
    for window in candidates.windows:
        state = available | window.members
        goal = (crossing(dag, state) | dag.outputs) & window.members
        goals.append((window.members, goal, available))
        available = state
    return goals


def _solve(
    dag: Dag,
    prices: dict[Kernel, float],
    goal: int,
    values: int,
    recompute: bool,
    seconds: float,
    greedy: tuple[Kernel, ...] | None,
) -> tuple[int, Solution]:
    """Solve for one goal, from the cheapest answer that is known; return the columns too."""
    live = (goal | dag.before(goal)) & ~values
    first = cheapest_derivations(prices, goal, values) if recompute else _singletons(prices, live)
    priced = [(cost_of(answer, prices), answer) for answer in (first, greedy) if answer is not None]
    best, answer = min(priced, key=lambda pair: pair[0], default=(inf, ()))
    columns = without_dominated(prices, best * (1 + 1e-9), values, merge=recompute)
    solution = solve(
        columns,
        goal,
        answer,
        best,
        available=values,
        required=live,
        recompute=recompute,
        seconds=seconds,
    )
    if unmade(solution.kernels, goal, values):
        raise refuse_unmade(dag, unmade(prices, goal, values))
    return len(columns), solution


def _merged(
    dag: Dag, candidates: Candidates, prices: dict[Kernel, float]
) -> tuple[Kernel, ...] | None:
    """Return the greedy answer, which no other may be worse than; None where there is none."""
    if _singletons(prices, dag.live) is None:
        return None
    return search_partitions(dag, candidates, lambda k: prices.get(k, inf), width=1).kernels


def _singletons(prices: dict[Kernel, float], members: int) -> tuple[Kernel, ...] | None:
    """Return each primitive as a kernel, None where one has no finite price."""
    alone = {k.members: k for k in prices if k.members == k.outputs and k.members & members}
    kernels = [alone.get(1 << p) for p in bits(members)]
    finite = tuple(kernel for kernel in kernels if kernel is not None)
    return finite if len(finite) == len(kernels) else None
