"""Plans: what they decide, how they explain it, and that a nest run by them is in order."""

from __future__ import annotations

import pytest

from polyhedral.dependence import dependences
from polyhedral.legality import check_order
from polyhedral.model import nest, statement
from polyhedral.plan import Question, plan_permutable, plan_tiles
from polyhedral.schedule import original
from polyhedral.tile_size import Cache

L2 = Cache(1 << 20)
GEMM = nest(statement("S", "i in 0..N, j in 0..N, k in 0..N", "C[i,j] +=; A[i,k]; B[k,j]"))
SEIDEL = nest(statement("S", "t in 0..T, i in 1..N-1", "A[i] =; A[i-1]; A[i+1]"))
CUBE = tuple((name, 1000) for name in "ijk")


def test_a_plan_says_why() -> None:
    plan = plan_tiles(Question(GEMM, ("i", "j", "k"), L2))
    assert str(plan) == (
        """\
tile i, j, k by 80, 512, 144; j innermost
  permutable: no dependence goes backwards along i, j, k
  innermost: j, for the scores i -44, j 18, k -6
  reuse: i 1, j 1, k 2
  footprint: C: T_i * T_j; A: T_i * T_k; B: T_k * T_j
  tau = 76: 1026688 of 1048576 bytes"""
    )
    assert str(plan.schedule(GEMM)) == "S -> [0, i/80, j/512, k/144, i, k, j, 0]"
    assert check_order(GEMM, plan.schedule(GEMM), dependences(GEMM))


def test_traffic_is_predicted_where_extents_are_known() -> None:
    tiled = plan_tiles(Question(GEMM, ("i", "j", "k"), L2, CUBE))
    assert tiled.traffic is not None
    assert 8 * 3e6 < tiled.traffic < 8 * 2e7  # each array at least once, far from 1e9 accesses
    assert f"traffic: {round(tiled.traffic)} bytes" in str(tiled)


def test_traffic_into_each_cache() -> None:
    caches = (1 << 15, 1 << 20, 1 << 25)
    plan = plan_tiles(Question(GEMM, ("i", "j", "k"), L2, CUBE, caches=caches))
    first, second, third = plan.levels
    assert third >= 3 * 8e6  # each array once at least; all fit, so no more than that in lines
    assert third < 1.1 * 3 * 8e6 < second < 8 * 2e7 < first
    assert f"into cache 1 {first:.2g} bytes, into cache 2 {second:.2g}, into cache 3" in str(plan)


def test_no_tiles_where_the_operands_fit() -> None:
    small = tuple((name, 100) for name in "ijk")
    plan = plan_tiles(Question(GEMM, ("i", "j", "k"), L2, small))
    assert not plan.tiles
    assert "used again: C, A, B, 256800 bytes, within the 1048576 of the cache" in str(plan)
    assert str(plan.schedule(GEMM)) == "S -> [0, i, k, j, 0]"


def test_a_band_that_is_not_permutable_stays_as_it_is() -> None:
    plan = plan_tiles(Question(SEIDEL, ("t", "i"), L2))
    assert not plan.tiles
    assert "not permutable: illegal: flow dependence S -> S on A (<, -1)" in str(plan)
    assert plan.schedule(SEIDEL) == original(SEIDEL)


def test_loops_with_something_between_them_are_no_band() -> None:
    made = nest(
        statement("Z", "i in 0..N", "y[i] =", (0, 0)),
        statement("S", "i in 0..N, j in 0..N", "y[i] +=; A[i,j]; x[j]", (0, 1, 0)),
    )
    plan = plan_tiles(Question(made, ("i", "j"), L2))
    assert "no band: Expected" in str(plan)
    assert plan.schedule(made) == original(made)


@pytest.mark.parametrize("budget", [1, 50, 500, 1200])
def test_a_small_budget_leaves_the_loops_and_says_so(budget: int) -> None:
    plan = plan_tiles(Question(GEMM, ("i", "j", "k"), L2), budget)
    assert not plan.tiles
    assert f"within {budget} operations" in str(plan)
    assert plan.schedule(GEMM) == original(GEMM)


def test_a_known_band_needs_no_isl() -> None:
    question = Question(GEMM, ("i", "j", "k"), L2)
    assert plan_permutable(question, "ijk").sizes == plan_tiles(question).sizes


def test_element_sizes_count() -> None:
    floats = Question(GEMM, ("i", "j", "k"), L2, (), (("A", 4), ("B", 4), ("C", 4)))
    single, double = plan_tiles(floats), plan_tiles(Question(GEMM, ("i", "j", "k"), L2))
    assert dict(single.sizes)["k"] > dict(double.sizes)["k"]
