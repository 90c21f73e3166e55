"""Legality against brute force: every pair of instances that touch one element, in both orders."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from polyhedral.affine import variable
from polyhedral.band_schedule import Schedule, original, permute, rearrange
from polyhedral.errors import ScheduleError
from polyhedral.model import Nest, nest, statement
from polyhedral.nests.dependence import Kind, dependences
from polyhedral.nests.tile import strip_mine, tile
from polyhedral.nests.tile_legality import (
    Answer,
    check_band,
    check_order,
    check_parallel,
    check_reduction,
)
from tests.polyhedral.brute_force import execute, new_key, pairs, written
from tests.polyhedral.random_nests import PARAMETERS, changes, nests

GEMM = nest(
    statement("Z", "i in 0..N, j in 0..M", "C[i,j] =", (0, 0, 0)),
    statement("S", "i in 0..N, j in 0..M, k in 0..K", "C[i,j] +=; A[i,k]; B[k,j]", (0, 0, 1, 0)),
)
SEIDEL = nest(statement("S", "t in 0..T, i in 1..N-1", "A[i] =; A[i-1]; A[i+1]"))
SKEWED = {"i": variable("i") + variable("t")}

random = settings(
    max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def scheduled(data: Any) -> tuple[Nest, Schedule]:
    made = data.draw(nests())
    change = data.draw(changes(made))
    schedule = rearrange(made, change.loops, change.rows)
    note(f"{made}\n{schedule}")
    return made, schedule


@random
@given(st.data())
def test_an_order_is_legal_exactly_when_every_pair_stays_in_order(data: Any) -> None:
    made, schedule = scheduled(data)
    kept = all(
        commutes or new_key(schedule, first) < new_key(schedule, second)
        for first, second, commutes in pairs(made, PARAMETERS)
    )
    assert check_order(made, schedule, dependences(made)).answer is (
        Answer.LEGAL if kept else Answer.ILLEGAL
    )


@random
@given(st.data())
def test_a_legal_order_computes_the_same(data: Any) -> None:
    made, schedule = scheduled(data)
    if check_order(made, schedule, dependences(made)):
        before = written(made, PARAMETERS)
        after = sorted(before, key=lambda instance: new_key(schedule, instance))
        assert execute(after, PARAMETERS) == execute(before, PARAMETERS)


@random
@given(st.data())
def test_a_loop_is_parallel_exactly_when_no_pair_crosses_its_iterations(data: Any) -> None:
    made, schedule = scheduled(data)
    loop = data.draw(st.sampled_from(sorted({r.name for _, rows in schedule.rows for r in rows})))
    if not loop:
        return
    place, found = schedule.position(loop), dependences(made)

    def crosses(first: Any, second: Any) -> bool:
        one, other = new_key(schedule, first), new_key(schedule, second)
        inside = all(schedule.of(each[0].name)[place].name == loop for each in (first, second))
        return inside and one[:place] == other[:place] and one[place] != other[place]

    crossing = [c for first, second, c in pairs(made, PARAMETERS) if crosses(first, second)]
    assert bool(check_parallel(made, schedule, loop, found)) == (not crossing)
    assert bool(check_reduction(made, schedule, loop, found)) == all(crossing)


@random
@given(st.data())
def test_every_tiling_of_a_permutable_band_is_legal(data: Any) -> None:
    made = data.draw(nests())
    change = data.draw(changes(made))
    found = dependences(made)
    if check_band(made, permute(made, change.loops), change.loops, found):
        points = data.draw(st.permutations(change.loops))
        sizes = {name: data.draw(st.integers(1, 3)) for name in change.loops}
        assert check_order(made, tile(made, change.loops, sizes, points=points), found)


def test_the_written_order_is_legal() -> None:
    for made in (GEMM, SEIDEL):
        assert check_order(made, original(made), dependences(made))


def test_strip_mining_is_always_legal() -> None:
    assert check_order(SEIDEL, strip_mine(SEIDEL, "i", 4), dependences(SEIDEL))


def test_a_violation_names_the_dependence_and_two_instances() -> None:
    verdict = check_order(SEIDEL, tile(SEIDEL, "ti", {"t": 8, "i": 32}), dependences(SEIDEL))
    assert verdict.answer is Answer.ILLEGAL
    assert verdict.violation is not None
    assert verdict.violation.dependence.kind is Kind.FLOW
    source, sink = dict(verdict.violation.source), dict(verdict.violation.sink)
    assert source["t"] < sink["t"]
    assert source["i"] == sink["i"] + 1
    assert "flow dependence S -> S on A (<, -1): S(t=" in str(verdict)
    assert "must stay before S(t=" in str(verdict)


def test_skewing_makes_a_stencil_tileable() -> None:
    skewed = tile(SEIDEL, "ti", {"t": 8, "i": 32}, planes=SKEWED)
    assert check_order(SEIDEL, skewed, dependences(SEIDEL))


def test_a_reduction_may_be_reordered_but_is_no_parallel_loop() -> None:
    plain, found = original(GEMM), dependences(GEMM)
    assert check_parallel(GEMM, plain, "i", found)
    assert check_reduction(GEMM, plain, "k", found)
    refused = check_parallel(GEMM, plain, "k", found)
    assert refused.answer is Answer.ILLEGAL
    assert "output dependence S -> S on C (0, 0, <) (reduction)" in refused.reason


def test_an_update_that_is_not_declared_keeps_its_order() -> None:
    made = nest(statement("S", "i in 0..N, j in 0..M", "y[i] -="))
    assert not check_order(made, rearrange_backwards(made), dependences(made))


def rearrange_backwards(made: Nest) -> Schedule:
    (name, rows), *_ = original(made).rows
    flipped = tuple(row if row.name != "j" else type(row)("j", variable("j") * -1) for row in rows)
    return Schedule(((name, flipped),))


def test_a_small_budget_answers_unknown() -> None:
    verdict = check_order(SEIDEL, original(SEIDEL), dependences(SEIDEL), budget=40)
    assert verdict.answer is Answer.UNKNOWN
    assert not verdict
    assert "within 40 operations" in verdict.reason


def test_a_band_has_nothing_between_its_loops() -> None:
    with pytest.raises(ScheduleError, match="neighbouring loops, found i, j"):
        check_band(GEMM, original(GEMM), ("i", "j"), dependences(GEMM))
