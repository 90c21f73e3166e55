"""Exact dependences: against every pair of instances, and by name for known nests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from polyhedral.errors import BudgetExceededError, NestError
from polyhedral.model import Access, Nest, nest, statement
from polyhedral.nests.dependence import Dependence, Kind, dependences, value_flow
from tests.polyhedral.brute_force import Instance, conflicting, place, written
from tests.polyhedral.random_nests import PARAMETERS, nests

GEMM = nest(
    statement("Z", "i in 0..N, j in 0..M", "C[i,j] =", (0, 0, 0)),
    statement("S", "i in 0..N, j in 0..M, k in 0..K", "C[i,j] +=; A[i,k]; B[k,j]", (0, 0, 1, 0)),
)
SEIDEL = nest(statement("S", "t in 0..T, i in 1..N-1", "A[i] =; A[i-1]; A[i+1]"))
Key = tuple[Kind, str, str, str, bool]


def kind(source: Access, sink: Access) -> Kind:
    if source.writes and sink.writes:
        return Kind.OUTPUT
    return Kind.FLOW if source.writes else Kind.ANTI


def by_hand(made: Nest) -> dict[Key, list[tuple[int, ...]]]:
    """The distances that occur, by kind, statements, array and whether updates commute."""
    found: dict[Key, list[tuple[int, ...]]] = {}
    order = written(made, PARAMETERS)
    for position, first in enumerate(order):
        for second in order[position + 1 :]:
            for one, other in conflicting(first, second, PARAMETERS):
                key = (kind(one, other), first[0].name, second[0].name, one.array)
                distances = found.setdefault((*key, one.commutes(other)), [])
                distances.append(difference(first, second))
    return found


def difference(first: Instance, second: Instance) -> tuple[int, ...]:
    same = first[0].name == second[0].name
    shared = len(first[0].loops) if same else first[0].shared_loops(second[0])
    return tuple(second[1][name] - first[1][name] for name in first[0].variables[:shared])


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(nests())
def test_distances_are_those_of_all_pairs(made: Nest) -> None:
    note(str(made))
    expected = by_hand(made)
    grouped: dict[Key, list[Dependence]] = {}
    for each in dependences(made):
        key = (each.kind, each.source, each.sink, each.array, each.commutes)
        grouped.setdefault(key, []).append(each)
    assert set(grouped) == set(expected)
    for key, group in grouped.items():
        columns = list(zip(*expected[key], strict=True))
        for at, column in enumerate(columns):
            assert min(low(each, at) for each in group) == min(column)
            assert max(high(each, at) for each in group) == max(column)


def low(dependence: Dependence, at: int) -> int:
    bound = dependence.distances[at].low
    assert bound is not None
    return bound


def high(dependence: Dependence, at: int) -> int:
    bound = dependence.distances[at].high
    assert bound is not None
    return bound


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(nests())
def test_values_come_from_the_last_writer(made: Nest) -> None:
    note(str(made))
    expected = set()
    last: dict[Any, Instance] = {}
    for instance in written(made, PARAMETERS):
        spots = [(a, (a.array, place(a, instance, PARAMETERS))) for a in instance[0].accesses]
        for access, spot in spots:
            if access.reads and spot in last:
                expected.add((last[spot][0].name, instance[0].name, access.array))
        last |= {spot: instance for access, spot in spots if access.writes}
    assert {(each.source, each.sink, each.array) for each in value_flow(made)} == expected


def test_a_matrix_product() -> None:
    assert [str(each) for each in dependences(GEMM)] == [
        "output dependence Z -> S on C (0, 0)",
        "output dependence S -> S on C (0, 0, <) (reduction)",
    ]
    assert [str(each) for each in value_flow(GEMM)] == [
        "flow dependence S -> S on C (0, 0, 1)",
        "flow dependence Z -> S on C (0, 0)",
    ]


def test_a_stencil() -> None:
    assert [str(each) for each in dependences(SEIDEL)] == [
        "output dependence S -> S on A (<, 0)",
        "flow dependence S -> S on A (<=, 1)",
        "flow dependence S -> S on A (<, -1)",
        "anti dependence S -> S on A (<, -1)",
        "anti dependence S -> S on A (<=, 1)",
    ]


def test_an_array_has_one_number_of_subscripts() -> None:
    with pytest.raises(NestError, match=r"found A\[i\] and A\[i, 0\]"):
        dependences(nest(statement("S", "i in 0..N", "A[i] =; A[i,0]")))


@pytest.mark.parametrize("budget", [1, 10, 100, 1000])
def test_a_small_budget_is_an_error_of_its_own(budget: int) -> None:
    with pytest.raises(BudgetExceededError, match=f"within {budget} operations"):
        dependences(SEIDEL, budget)
