"""Partitions that leave the most bytes inside of kernels: programs, parts, notes, the strategy."""

from __future__ import annotations

import json
import time
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.orchestrate.candidate_kernels import Candidates, Kernel
from taco_py.graph.orchestrate.choosers import CHOOSERS, choose
from taco_py.graph.orchestrate.dag import dag_of_edges, make_dag
from taco_py.graph.orchestrate.partition.choose_partition import _best, choose_partition
from taco_py.graph.orchestrate.partition.edge_program import solve_by_cuts
from taco_py.graph.orchestrate.partition.fusible_parts import (
    part_of,
    paths_around,
    solve_by_parts,
)
from taco_py.graph.orchestrate.partition.solution_notes import NotedSolutions, note_key
from taco_py.graph.orchestrate.partition.traffic_problem import (
    Partition,
    TrafficProblem,
    forced_groups,
)
from taco_py.graph.selection.strategies import choose_regions
from taco_py.language.diagnostics.errors import OperandError, ScheduleError
from tests.graph.blocks import operands_of, walk_weights
from tests.graph.random_partitions import (
    check_chosen,
    compare,
    compare_parts,
    random_problem,
)
from tests.graph.traffic_program import solve_program


@pytest.mark.parametrize("part", range(4))
def test_the_published_program_finds_what_brute_force_finds(part: int) -> None:
    for seed in range(6 * part, 6 * part + 6):
        compare(random_problem(Random(seed), 1, 5), solve_program)


@pytest.mark.parametrize("part", range(4))
def test_the_program_by_edges_finds_what_brute_force_finds(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        compare(random_problem(Random(seed), 3, 7), solve_by_cuts)


def test_contraction_of_chosen_kernels_is_acyclic() -> None:
    for seed in range(20):
        check_chosen(Random(seed), 12)


def test_parts_are_within_a_hundredth_where_they_are_said_to_be_the_optimum() -> None:
    found = [compare_parts(random_problem(Random(seed), 8, 14, extras=False)) for seed in range(20)]
    assert sum(each.optimal for each in found) > 15


CHAIN = TrafficProblem(4, ((0, 1, 8.0), (1, 2, 8.0), (2, 3, 8.0)), conflicts=(0b0110,))


@pytest.mark.parametrize("solve", [solve_program, solve_by_cuts, solve_by_parts])
def test_a_partition_saves_the_bytes_inside_of_its_groups(solve: Any) -> None:
    assert solve(CHAIN, 10.0).groups == (0b0011, 0b1100)
    assert solve(CHAIN, 10.0).saved == 16


@pytest.mark.parametrize("solve", [solve_program, solve_by_cuts])
def test_groups_may_not_wait_for_each_other(solve: Any) -> None:
    """0 → 3 and 1 → 2 in two groups that read each other; the lighter edges are given up."""
    edges = ((0, 2, 9.0), (0, 3, 1.0), (1, 2, 1.0), (1, 3, 9.0))
    found = solve(TrafficProblem(4, edges, conflicts=(0b0011, 0b1100)), 10.0)
    assert found.optimal and found.saved == 9


@pytest.mark.parametrize("solve", [solve_program, solve_by_cuts, solve_by_parts])
def test_what_has_to_be_together_takes_what_lies_between(solve: Any) -> None:
    diamond = ((0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0))
    problem = TrafficProblem(
        5, (*diamond, (3, 4, 99.0)), conflicts=(0b10001,), required_pairs=((0, 3),)
    )
    assert forced_groups(problem) == (0b01111, 0b10000)
    assert solve(problem, 10.0).groups == (0b01111, 0b10000)
    wrong = TrafficProblem(5, problem.edges, conflicts=(0b00110,), required_pairs=((0, 3),))
    with pytest.raises(ScheduleError, match="0 and 3 together"):
        solve(wrong, 10.0)


def test_a_part_knows_what_waits_around_it() -> None:
    edges = ((0, 1, 8.0), (0, 2, 8.0), (1, 3, 8.0), (2, 4, 8.0), (3, 4, 8.0))
    dag = dag_of_edges(5, [edge[:2] for edge in edges])
    assert paths_around(dag, 0b11011, ()) == {(0, 4)}
    assert paths_around(dag, 0b01011, ()) == set()
    problem = TrafficProblem(5, edges, conflicts=(0b00101, 0b10100))
    own, names = part_of(problem, 0b11011, ())
    assert names == (0, 1, 3, 4) and own.paths == ((0, 3),)
    found = solve_by_parts(problem)
    assert found.optimal and found.saved == 16


def test_groups_around_a_part_may_cost_it_bytes_and_are_told() -> None:
    """Two chains that cross: fused, 1 → 2 waits for 4 → 5 and it for 1 → 2."""
    edges = ((0, 1, 9.0), (2, 3, 5.0), (0, 3, 1.0), (2, 1, 1.0))
    order = {0: 0, 2: 1, 1: 2, 3: 3}
    moved = tuple(sorted((order[i], order[j], w) for i, j, w in edges))
    apart = ((1 << 0 | 1 << 3), (1 << 1 | 1 << 2))
    problem = TrafficProblem(4, moved, apart)
    found = solve_by_parts(problem)
    assert found.saved == 9 and found.bound == 14 and not found.optimal
    assert solve_by_cuts(problem).saved == 9


def test_a_solution_after_no_time_is_one_with_its_gap() -> None:
    """Merging takes the edge of the most bytes first, which is not in the optimum."""
    edges = ((0, 1, 5.0), (1, 2, 6.0), (2, 3, 5.0))
    problem = TrafficProblem(4, edges, conflicts=(0b0101, 0b1010))
    best = solve_by_cuts(problem)
    assert best.rounds > 1 and best.groups == (0b0011, 0b1100) and best.optimal
    for solve in (solve_by_cuts, solve_by_parts):
        found = solve(problem, 0.0)
        assert found.groups == (0b0001, 0b0110, 0b1000) and not found.optimal
        assert found.saved == 6 and found.bound == 16


def test_solutions_are_noted_and_read_again() -> None:
    notes: dict[str, str] = {}
    solved: list[TrafficProblem] = []

    def solver(problem: TrafficProblem, seconds: float) -> Partition:
        solved.append(problem)
        return solve_by_cuts(problem, seconds)

    first = NotedSolutions(notes.get, notes.__setitem__, solver)(CHAIN, 10.0)
    assert [*notes] == [note_key(CHAIN)] and json.loads(notes[note_key(CHAIN)])["groups"] == [3, 12]
    later = NotedSolutions(notes.get, notes.__setitem__, solver)
    assert later(CHAIN, 10.0) == first and later.hits == 1 and len(solved) == 1
    other = TrafficProblem(4, CHAIN.edges)
    assert later(other, 10.0).groups == (0b1111,) and len(solved) == 2


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"groups": [15], "bound": 24, "rounds": 0, "seconds": 9}',
        '{"groups": [3, 6], "bound": 16, "rounds": 0, "seconds": 9}',
        '{"groups": [3], "bound": 16, "rounds": 0, "seconds": 9}',
        '{"groups": [1, 2, 12], "bound": 16, "rounds": 0, "seconds": 1}',
    ],
)
def test_notes_that_are_no_solution_are_as_none(text: str) -> None:
    notes = {note_key(CHAIN): text}
    assert NotedSolutions(notes.get, notes.__setitem__)(CHAIN, 5.0).groups == (0b0011, 0b1100)
    assert notes[note_key(CHAIN)] != text


def test_equal_parts_are_solved_once() -> None:
    arguments = [(~0,), *((p,) for p in range(15))]
    dag = make_dag(arguments, 1 << 15, flags={"alone": 0b1000_1000_1000_1000})
    solutions = NotedSolutions()
    choice = choose_partition(dag, Candidates((), (), 0, ()), lambda _: 1.0, solver=solutions)
    assert len(choice.kernels) == 8 and len(solutions.notes) == 1 and solutions.hits == 3
    assert "8 of 15 values stay in kernels" in str(choice.statistics)


def test_the_partition_is_a_chooser_of_the_table() -> None:
    dag = dag_of_edges(4, [(0, 1), (1, 2), (2, 3)])
    choice = choose("partition", dag, lambda k: inf if k.members & 0b0110 == 0b0110 else 1.0)
    assert [kernel.members for kernel in choice.kernels] == [0b0011, 0b1100]
    assert choice.statistics.gap == 0
    with pytest.raises(ScheduleError, match="makes 1 op"):
        choose("partition", dag, lambda k: inf if k.outputs == 0b0010 else 1.0)
    with pytest.raises(OperandError, match="bytes of 4 values, found 1"):
        choose_partition(dag, Candidates((), (), 0, ()), lambda _: 1.0, traffic=[8.0])
    assert "partition" in CHOOSERS


def test_what_parts_may_lose_is_looked_for_in_the_whole() -> None:
    """Of these parts, each solved with those before it, the groups save less than the whole's."""
    problem = random_problem(Random(3), 80, 80, extras=False)
    parts, whole = solve_by_parts(problem), solve_by_cuts(problem)
    assert not parts.optimal and parts.saved < whole.saved <= parts.bound
    found = _best(problem, solve_by_cuts, time.perf_counter() + 60.0)
    assert found.optimal and found.saved == whole.saved
    late = _best(problem, solve_by_cuts, time.perf_counter() - 1.0)
    assert problem.allows(late.groups) and late.saved <= whole.saved <= late.bound


def test_a_group_that_no_kernel_can_be_made_for_is_forbidden() -> None:
    dag = dag_of_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    asked = []

    def price(kernel: Kernel) -> float:
        asked.append(kernel.members)
        return inf if kernel.members & 0b00111 == 0b00111 else 1.0

    choice = choose_partition(
        dag, Candidates((), (), 0, ()), price, required_pairs=[(2, 3), (0, 2), (1, 2)]
    )
    assert [kernel.members for kernel in choice.kernels] == [0b00001, 0b11110]
    assert 0b11111 in asked


def mixed(A: Any, x: Any) -> Any:
    """A value on each side of what NumPy computes, and one past it."""
    S = np.sqrt(A * x[:, None])
    r = np.cumsum(S.sum(1))
    return S @ (r * x) + np.exp(r)


def test_the_strategy_weighs_values_by_their_bytes() -> None:
    rng = np.random.default_rng(0)
    A = sp.random_array((40, 40), density=0.1, rng=rng, format="csr")
    x = rng.random(40)
    fused = tp.fuse(mixed, optimize="partition")
    np.testing.assert_allclose(fused(A, x), mixed(A, x), rtol=1e-12)
    told = fused.graph(A, x).explain()
    assert "bytes stay in kernels" in told and "  partition    " in told
    graph = tp.fuse(walk_weights).graph(*operands_of("walk_weights", 60))
    chosen = choose_regions(graph.primitives, graph.operands, "partition")
    assert [each.strategy for each in chosen.alternatives] == ["none", "stages", "partition"]
    assert not chosen.recomputed and chosen.alternatives[-1].kernels == 2


def test_other_edges_are_refused() -> None:
    with pytest.raises(OperandError, match=r"found \(1, 0\)"):
        TrafficProblem(2, ((1, 0, 8.0),))
    with pytest.raises(OperandError, match="found nan"):
        TrafficProblem(2, ((0, 1, float("nan")),))
