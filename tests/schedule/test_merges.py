"""Galloping: where it may be, what it reads, and that results are right."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError

RNG = np.random.default_rng(5)


def matrix(density: float) -> np.ndarray:
    return RNG.integers(1, 9, (17, 211)) * (RNG.random((17, 211)) < density)


FEW, SOME, MANY = matrix(0.01), matrix(0.2), matrix(0.9)


def stored(array: np.ndarray, form: tp.Format = tp.CSR) -> tp.Tensor:
    return tp.tensor(array, format=form)


@pytest.mark.parametrize("schedule", ["mergeby(j,Gallop)", "split(j,a,b,16), mergeby(b,Gallop)"])
@pytest.mark.parametrize("result", [tp.CSR, tp.dense(2)])
def test_galloping_intersects(schedule: str, result: tp.Format) -> None:
    found = tp.evaluate(
        "C[i,j] = A[i,j] * B[i,j] * D[i,j]",
        schedule=schedule,
        format=result,
        A=stored(FEW),
        B=stored(MANY),
        D=stored(SOME),
    )
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_array_equal(found, FEW * MANY * SOME)


def test_an_inner_product_gallops_through_both_matrices() -> None:
    operands = {"A": stored(SOME), "B": stored(np.ascontiguousarray(MANY.T), tp.CSC)}
    schedule = "reorder(i,j,k), mergeby(k,Gallop)"
    found = tp.evaluate("C[i,j] = A[i,k] * B[k,j]", schedule=schedule, **operands)
    np.testing.assert_array_equal(found.to_numpy(), SOME @ MANY.T)


def test_what_it_searches_for_stands_in_the_source() -> None:
    formats = {"A": tp.CSR, "B": tp.CSR, "C": tp.CSR}
    text = "C[i,j] = A[i,j] * B[i,j]"
    kernel = tp.compile(text, formats, schedule="mergeby(j,Gallop)")
    assert "taco_gallop_int32(" in kernel.source
    kernel = tp.compile(text, formats, schedule="mergeby(j,TwoFinger)")
    assert "taco_gallop_int32(" not in kernel.source


REFUSED = (
    ("C[i,j] = A[i,j] + B[i,j]", "mergeby(j,Gallop)", "comes to coordinates that one of them"),
    ("C[i,j] = A[i,j] * B[i,j]", "mergeby(i,Gallop)", "it walks no level that stores coordinates"),
    (
        "C[i,j] = A[i,j] * B[i,j]",
        "precompute(A(i,j),j,jw,w), mergeby(jw,Gallop)",
        "The loop jw cannot gallop: it walks A2 alone",
    ),
    ("C[i,j] = 2 * A[i,j]", "mergeby(j,Gallop)", "it walks A2 alone"),
)


@pytest.mark.parametrize(("text", "schedule", "reason"), REFUSED)
def test_refusals(text: str, schedule: str, reason: str) -> None:
    operands = {name: stored(SOME) for name in "AB" if name in text}
    with pytest.raises(ScheduleError) as caught:
        tp.evaluate(text, schedule=schedule, format=tp.CSR, **operands)
    assert reason in caught.value.message
    assert "cannot gallop" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("step", [7, 12, 40])
def test_operands_leap_in_the_loops_of_the_text(step: int) -> None:
    """Which others would be cheaper depends on how many entries they have."""
    a = sp.random_array((50, 50), density=0.07, format="csr", rng=np.random.default_rng(1))
    x = np.where(np.arange(50) % step == 0, 1.0, 0.0)
    text, sparse = "y[i] = A[i,j] * x[j]", tp.tensor(x, "s")
    schedule = tp.schedule(text, A=tp.CSR, x="s").mergeby("j", "gallop")
    np.testing.assert_allclose(
        tp.evaluate(text, A=a, x=sparse, schedule=schedule, format="d"), a @ x
    )
    assert "gallop" in tp.explain(text, A=a, x=sparse, schedule=schedule)


def test_strategies_are_named() -> None:
    assert str(Schedule.parse("mergeby( j, Gallop )")) == "mergeby(j,Gallop)"
    with pytest.raises(ScheduleError, match="the strategies are TwoFinger, Gallop"):
        Schedule.parse("mergeby(j,Fast)")
