"""`schedule_budget=`: choosing ends in time, says so, and computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

RNG = np.random.default_rng(8)
CHAIN = "y[i] = A[i,j] * B[j,k] * x[k]"
A: Any
B: Any
A, B = (sp.csr_array(RNG.random((70, 70)) * (RNG.random((70, 70)) < 0.1)) for _ in range(2))
X = RNG.random(70)


def test_results_are_the_same_without_any_time() -> None:
    expected = A @ (B @ X)
    np.testing.assert_allclose(tp.evaluate(CHAIN, A=A, B=B, x=X, schedule_budget=0), expected)
    found = tp.einsum("ij,jk,k->i", A, B, X, schedule_budget=0)
    np.testing.assert_allclose(found, expected)
    kernel = tp.compile(CHAIN, A=tp.CSR, B=tp.CSR, x=tp.dense(1), schedule_budget=0)
    np.testing.assert_allclose(kernel(A=A, B=B, x=X), expected)
    assert "budget    of 0 s ran out before all contraction orders" in kernel.explain()


def test_explain_says_which_searches_ended_early() -> None:
    told = tp.explain(CHAIN, A=A, B=B, x=X, schedule_budget=0)
    lines = [line for line in told.splitlines() if line.startswith("budget")]
    every = "before all contraction orders of 3 operands were compared"
    assert f"budget    of 0 s ran out {every}" in lines
    assert "with protocols" not in told


def test_explain_says_nothing_where_there_was_time() -> None:
    told = tp.explain(CHAIN, A=A, B=B, x=X, schedule_budget=60.0)
    assert not [line for line in told.splitlines() if line.startswith("budget")]
    assert "with protocols" in told


def test_calls_with_other_budgets_are_planned_apart() -> None:
    told = [tp.explain(CHAIN, A=A, B=B, x=X, schedule_budget=s) for s in (0, 60, 0)]
    assert ["budget  " in text for text in told] == [True, False, True]


def test_the_search_for_other_schedules_has_a_budget_of_its_own() -> None:
    """With none for it, the plan told is the one that a call without a budget runs."""
    plans = [tp.explain(CHAIN, A=A, B=B, x=X, frontier_budget=s) for s in (0, 60)]
    assert ["with protocols" in told for told in plans] == [False, True]
    assert "kernel" in plans[0]
    assert not [line for line in plans[0].splitlines() if line.startswith("budget")]
    with pytest.raises(tp.ScheduleError, match="frontier_budget to be a number of seconds"):
        tp.explain(CHAIN, A=A, B=B, x=X, frontier_budget=-1)


CALLS: tuple[Callable[[Any], Any], ...] = (
    lambda seconds: tp.evaluate(CHAIN, A=A, B=B, x=X, schedule_budget=seconds),
    lambda seconds: tp.explain(CHAIN, A=A, B=B, x=X, schedule_budget=seconds),
    lambda seconds: tp.einsum("ij,jk,k->i", A, B, X, schedule_budget=seconds),
    lambda seconds: tp.compile("y[i] = x[i]", x=tp.dense(1), schedule_budget=seconds),
    lambda seconds: tp.frontier("y[i] = x[i]", schedule_budget=seconds),
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("long", [10**400, float("inf"), np.float64(60.0)])
def test_a_budget_may_be_longer_than_any_search(call: Callable[[Any], Any], long: Any) -> None:
    call(long)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wrong", [-1, float("nan"), "1", True])
def test_a_budget_is_a_number_of_seconds(call: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(tp.ScheduleError, match="schedule_budget to be a number of seconds") as told:
        call(wrong)
    assert repr(wrong) in str(told.value)
    assert told.value.hint == "leave it out to search to the end"


def test_an_einsum_is_explained_as_it_is_called() -> None:
    matrix, x = sp.random_array((9, 9), density=0.3, format="csr", rng=0), np.ones(9)
    told = tp.explain("ij,jk,k->i", matrix, matrix, x)
    assert "in pairs about" in told and told.splitlines()[-1].strip().startswith("none is")
    assert "in pairs" not in tp.explain("ij,jk,k->i", matrix, matrix, x, optimize=False)
    assert "kernel " in tp.explain("ij,jk->ik", np.ones((1, 3)), np.ones((3, 3)))
    with pytest.raises(tp.TacoError, match="by name or as a mapping"):
        tp.explain("y[i] = A[i,j] * x[j]", matrix, x)
