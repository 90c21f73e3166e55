"""Random problems of saved bytes, and the programs compared with brute force on them.

python -m tests.graph.random_partitions 300      compare on 300 problems of each kind
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from math import isclose
from random import Random

from taco_py.graph.orchestrate.candidate_kernels import Candidates, Kernel
from taco_py.graph.orchestrate.convexity import contract
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.orchestrate.execution_states import execution_states
from taco_py.graph.orchestrate.partition.choose_partition import choose_partition
from taco_py.graph.orchestrate.partition.edge_program import solve_by_cuts
from taco_py.graph.orchestrate.partition.fusible_parts import _parts, solve_by_parts
from taco_py.graph.orchestrate.partition.traffic_problem import Partition, TrafficProblem
from taco_py.language.diagnostics.errors import ScheduleError
from tests.graph.random_dags import check_runs, random_dag
from tests.graph.traffic_program import solve_program

WITHIN = 0.01
"""The share by which a partition that is said to be optimal may be below the whole program's."""


def random_problem(random: Random, least: int, most: int, extras: bool = True) -> TrafficProblem:
    """Draw a problem: chains, wide ones and dense ones, of few or many sets that are apart.

    extras  whether there are larger sets, pairs that are together, and paths around
    """
    size = random.randint(least, most)
    reach, share = random.choice((2, 4, size)), random.choice((0.1, 0.3, 0.5))
    edges = {}
    for p in range(size):
        near = range(max(0, p - reach), p)
        for q in random.sample(near, min(len(near), random.choice((0, 1, 1, 2, 2, 3)))):
            edges[q, p] = float(random.choice((0, 1, 2, 8, 8, 64, 100)))
    apart = {1 << i | 1 << j for i, j in edges if random.random() < share}
    heavy = [p for p in range(size) if random.random() < 0.2]
    apart |= {1 << i | 1 << j for i in heavy for j in heavy if i < j}
    together, around = [], []
    if extras and size > 2:
        apart |= {_mask(random, size, 3) for _ in range(random.randrange(3))}
        pairs = [tuple(sorted(random.sample(range(size), 2))) for _ in range(2)]
        together = [(i, j) for i, j in pairs[: random.choice((0, 0, 1))]]
        around = [(i, j) for i, j in pairs[1 : random.choice((1, 1, 2))]]
    return TrafficProblem(
        size,
        tuple((i, j, weight) for (i, j), weight in sorted(edges.items())),
        tuple(sorted(apart)),
        tuple(together),
        tuple(around),
    )


def _mask(random: Random, size: int, count: int) -> int:
    return sum(1 << p for p in random.sample(range(size), count))


def partitions(size: int) -> Iterator[tuple[int, ...]]:
    """Yield all partitions of so many primitives."""
    if size == 0:
        yield ()
        return
    own = 1 << size - 1
    for groups in partitions(size - 1):
        yield (*groups, own)
        for n, group in enumerate(groups):
            yield (*groups[:n], group | own, *groups[n + 1 :])


def can_run(problem: TrafficProblem, groups: tuple[int, ...]) -> bool:
    """Check a partition without the compiler's own code; a path around is a primitive outside."""
    place = {p: n for n, group in enumerate(groups) for p in range(problem.size) if group >> p & 1}
    if any(place[i] != place[j] for i, j in problem.required_pairs):
        return False
    if any(each & group == each for each in problem.conflicts for group in groups):
        return False
    pairs = {(place[i], place[j]) for i, j, _ in problem.edges if place[i] != place[j]}
    for n, (i, j) in enumerate(problem.paths, len(groups)):
        pairs |= {(place[i], n), (n, place[j])}
    left = {end for pair in pairs for end in pair}
    while left:
        first = {n for n in left if not any(end == n and start in left for start, end in pairs)}
        if not first:
            return False
        left -= first
    return True


def brute_force(problem: TrafficProblem) -> float | None:
    """Return the most bytes that any partition saves, None where none is allowed."""
    saved = [problem.saved(g) for g in partitions(problem.size) if can_run(problem, g)]
    return max(saved, default=None)


def by_states(problem: TrafficProblem, most: int = 400) -> float | None:
    """Return the most bytes that a chain of execution states saves; None where they are many.

    A partition that can run is a chain of states, of which each group is a difference.
    """
    states = execution_states(problem.dag, problem.dag.all, most)
    if len(states) > most:
        return None
    best = {0: 0.0}
    for state in sorted(states, key=int.bit_count):
        for before in list(best):
            group = state & ~before
            if before & ~state or not group or any(not a & ~group for a in problem.conflicts):
                continue
            best[state] = max(best.get(state, 0.0), best[before] + problem.saved((group,)))
    return best[problem.dag.all]


Solve = Callable[[TrafficProblem, float], Partition]


def compare(problem: TrafficProblem, solve: Solve) -> Partition | None:
    """Check that a program finds what brute force finds, and refuses what has no partition."""
    best = brute_force(problem)
    try:
        found = solve(problem, 120.0)
    except ScheduleError:
        assert best is None, problem
        return None
    assert best is not None and can_run(problem, found.groups), (problem, found)
    assert isclose(problem.saved(found.groups), found.saved), (problem, found)
    assert found.optimal and isclose(found.saved, best, abs_tol=1e-9), (problem, found, best)
    return found


def compare_parts(problem: TrafficProblem) -> Partition:
    """Check a solution by parts against the whole program, and both against states."""
    whole, parts = solve_by_cuts(problem, 120.0), solve_by_parts(problem, 120.0)
    assert whole.optimal and can_run(problem, whole.groups) and can_run(problem, parts.groups)
    states = by_states(problem)
    assert states is None or isclose(states, whole.saved, abs_tol=1e-9), (problem, whole, states)
    assert parts.saved <= whole.saved * (1 + 1e-9) <= parts.bound * (1 + 1e-8) + 1e-9
    if parts.optimal:
        assert parts.saved >= whole.saved * (1 - WITHIN), (problem, whole, parts)
    return parts


def check_chosen(random: Random, most: int) -> int:
    """Check on a random graph with random prices that chosen kernels can run; count them."""
    dag = random_dag(random, most)
    seed = random.getrandbits(32)

    def price(kernel: Kernel) -> float:
        own = Random(f"{seed} {kernel.members}").random()
        return float("inf") if own < 0.15 and kernel.members.bit_count() > 1 else 1.0

    traffic = [float(random.choice((1, 8, 8, 100))) for _ in range(dag.size)]
    choice = choose_partition(dag, Candidates((), (), 0, ()), price, traffic=traffic)
    check_runs(dag, choice)
    groups = [kernel.members for kernel in choice.kernels]
    assert contract(dag, groups) is not None and sum(groups) == dag.live
    assert choice.cost == len(groups) and not choice.recomputed
    heavy = dag.flagged("heavy")
    assert all(len([*bits(group & heavy)]) < 2 for group in groups)
    return len(groups)


def main(count: int) -> None:
    for name, solve in (("published", solve_program), ("by edges", solve_by_cuts)):
        start, none, slowest = time.perf_counter(), 0, 0.0
        for seed in range(count):
            problem = random_problem(Random(seed), 1, 7)
            begun = time.perf_counter()
            none += compare(problem, solve) is None
            slowest = max(slowest, time.perf_counter() - begun)
        spent = time.perf_counter() - start
        print(
            f"{count} problems of up to 7: the program {name} = brute force, {none} have no "
            f"partition; slowest {slowest:.2f} s, all {spent:.0f} s",
            flush=True,
        )
    kernels = sum(check_chosen(Random(seed), 16) for seed in range(500))
    print(f"500 graphs of up to 16: contraction acyclic, {kernels} kernels", flush=True)
    several = optimal = equal = 0
    for seed in range(count):
        problem = random_problem(Random(seed), 8, 14, extras=False)
        found = compare_parts(problem)
        several += len(_parts(problem)) > 1
        optimal += found.optimal
        equal += isclose(found.saved, solve_by_cuts(problem).saved, abs_tol=1e-9)
    print(
        f"{count} problems of 8 to 14, {several} of several parts: by parts {optimal} said to be "
        f"optimal, all within {WITHIN:.0%} of the whole program; {equal} of all save as much"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
