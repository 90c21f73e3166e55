"""Execution states, windows and candidates, compared with their definitions."""

from __future__ import annotations

from random import Random

import pytest

from taco_py.graph.orchestrate.candidate_kernels import (
    RULES,
    Kernel,
    Limits,
    find_candidates,
    make_kernel,
)
from taco_py.graph.orchestrate.convexity import is_convex
from taco_py.graph.orchestrate.dag import Dag, bits, dag_of_edges, make_dag, mask_of
from taco_py.graph.orchestrate.execution_states import (
    crossing,
    cut_points,
    depth_first,
    execution_states,
    windows,
)
from tests.graph.random_dags import random_dag


def is_state(dag: Dag, mask: int) -> bool:
    return not dag.reads(mask)


@pytest.mark.parametrize("seed", range(40))
def test_states_are_all_sets_that_hold_what_they_read(seed: int) -> None:
    dag = random_dag(Random(seed), 8)
    states = execution_states(dag, dag.all)
    assert len(states) == len(set(states))
    assert set(states) == {mask for mask in range(dag.all + 1) if is_state(dag, mask)}
    assert len(execution_states(dag, dag.all, most=3)) == min(len(states), 4)


def by_algorithm(dag: Dag, limits: Limits) -> set[Kernel]:
    """Korch's algorithm 1: the difference of each two states, with each set of outputs."""
    found = set()
    states = execution_states(dag)
    for small in states:
        for large in states:
            members = large & ~small
            if small & ~large or not members:
                continue
            for outputs in range(1, members + 1):
                if outputs & ~members or outputs.bit_count() > limits.outputs:
                    continue
                leads = outputs | mask_of(p for p in bits(members) if dag.descendants[p] & outputs)
                if leads == members and all(rule.keeps(dag, members, limits) for rule in RULES):
                    found.add(Kernel(members, dag.reads(members), outputs))
    return found


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("outputs", [1, 2])
def test_candidates_are_the_differences_of_two_states(seed: int, outputs: int) -> None:
    dag = random_dag(Random(seed), 7)
    limits = Limits(outputs=outputs, heavy=1 + seed % 2, primitives=2 + seed % 5)
    found = find_candidates(dag, limits)
    alone = {make_kernel(dag, 1 << p, 1 << p) for p in bits(dag.live)}
    assert set(found.kernels) == by_algorithm(dag, limits) | alone
    assert len(found.kernels) == len(set(found.kernels))
    assert found.states == len(execution_states(dag))
    assert all(is_convex(dag, kernel.members) for kernel in found.kernels)


def test_the_example_of_the_docstring() -> None:
    found = find_candidates(dag_of_edges(3, [(0, 1), (1, 2)]))
    sets = {(kernel.members, kernel.outputs) for kernel in found.kernels}
    assert sets == {(1, 1), (3, 2), (2, 2), (7, 4), (6, 4), (4, 4)}
    assert str(make_kernel(dag_of_edges(3, [(0, 1), (1, 2)]), 6)) == "0 → {1, 2} → 2"


def test_rules_count_what_they_leave_out() -> None:
    dag = make_dag([(~0,), (0,), (1,)], 0b100, flags={"heavy": 0b101, "alone": 0b010})
    found = find_candidates(dag)
    assert {kernel.members for kernel in found.kernels} == {1, 2, 4}
    assert dict(found.left)["alone"] > 0
    free = find_candidates(dag, Limits(heavy=2), rules=())
    assert 0b111 in {kernel.members for kernel in free.kernels}


def test_values_that_share_an_argument_hang_together() -> None:
    siblings = make_dag([(~0,), (~0,), (~1,)], 0b111)
    members = {k.members for k in find_candidates(siblings, Limits(outputs=2)).kernels}
    assert members == {0b001, 0b010, 0b100, 0b011}


def test_cut_points_are_where_all_paths_pass() -> None:
    diamond = dag_of_edges(5, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
    assert list(bits(cut_points(diamond))) == [0, 3, 4]
    residual = dag_of_edges(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
    assert list(bits(cut_points(residual))) == [0, 2, 3]


@pytest.mark.parametrize("seed", range(40))
def test_windows_lie_between_states_and_stay_small(seed: int) -> None:
    dag = random_dag(Random(seed), 30)
    found = windows(dag, 20)
    state = 0
    for window in found:
        assert window.states == len(execution_states(dag, window.members)) <= 20
        assert not window.members & state
        state |= window.members
        assert is_state(dag, state)
    assert state == dag.live
    order = depth_first(dag)
    assert sorted(order) == list(bits(dag.live))
    assert all(is_state(dag, mask_of(order[:n])) for n in range(len(order)))


def test_primitives_that_wait_for_nothing_do_not_multiply_states() -> None:
    """A chain of products, each with a weight that is transposed: 2ᵏ states without windows."""
    arguments: list[tuple[int, ...]] = [(~n,) for n in range(30)]
    arguments += [(~30, 0), *((29 + n, n) for n in range(1, 30))]
    dag = make_dag(arguments, 1 << 59)
    assert len(execution_states(dag, most=100_000)) > 100_000
    found = windows(dag, 500)
    assert len(found) > 1 and max(window.states for window in found) <= 500
    done = 0
    for window in found:
        done |= window.members
        assert crossing(dag, done).bit_count() == 1
