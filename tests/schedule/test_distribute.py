"""Products multiplied out: the terms that this makes, results, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.schedule.apply import apply, apply_all
from taco_py.compiler.schedule.commands import Distribute
from taco_py.compiler.schedule.distribute import count_terms, multiplied
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.parser import parse_assignment, parse_expression
from taco_py.language.notation.printer import to_text
from tests.corpus.data import dense_result
from tests.problems import assignment

BOTH, SCALED = "y[i] = (A[i,j] - B[i,j]) * x[j]", "C[i,j] = b[i] + (A[i,j] + B[i,j]) / x[j]"
TERMS = (
    (BOTH, "(A(i,j)-B(i,j))*x(j)", "y[i] = sum(j, A[i,j] * x[j]) - sum(j, B[i,j] * x[j])"),
    (SCALED, "(A(i,j)+B(i,j))/x(j)", "C[i,j] = b[i] + (A[i,j] / x[j] + B[i,j] / x[j])"),
    (
        "s = (a[i] - b[i]) * -(c[i] - d[i])", "(a(i)-b(i))*-(c(i)-d(i))",
        "s = -sum(i, a[i] * c[i]) + sum(i, a[i] * d[i]) + sum(i, b[i] * c[i]) "
        "- sum(i, b[i] * d[i])",
    ),
    ("s = sum(i, a[i] + b[i])", "a(i)+b(i)", "s = sum(i, a[i]) + sum(i, b[i])"),
)  # fmt: skip


def loops_of(text: str) -> Loops:
    whole = assignment(text)
    return Loops(whole, textual_orders(whole))


@pytest.mark.parametrize(("text", "term", "expected"), TERMS)
def test_terms(text: str, term: str, expected: str) -> None:
    schedule = Schedule.parse(f"distribute({term})")
    assert Schedule.parse(str(schedule)) == schedule
    found = apply_all(loops_of(text), schedule)
    assert to_text(found.assignment) == expected
    assert found.orders == textual_orders(found.assignment)


SUMS = "*".join(f"(a{k}[i] + b{k}[i])" for k in range(40))
"""A product of forty sums, which has 2^40 terms."""


@pytest.mark.parametrize("term", [term for _, term, _ in TERMS])
def test_terms_are_counted_without_being_made(term: str) -> None:
    expr = parse_expression(term)
    assert count_terms(expr) == len(multiplied(expr)) > 1
    assert count_terms(parse_expression(SUMS)) == 2**40


RNG = np.random.default_rng(3)
ARRAYS: dict[str, Any] = {
    "A": RNG.integers(1, 5, (9, 7)) * (RNG.random((9, 7)) < 0.4) * 1.0,
    "B": RNG.integers(1, 5, (9, 7)) * (RNG.random((9, 7)) < 0.4) * 1.0,
    "x": RNG.integers(1, 3, 7) * 1.0,
    "b": RNG.integers(1, 5, 9) * 1.0,
}
RESULTS = (
    (BOTH, "distribute((A(i,j)-B(i,j))*x(j))", "d"),
    (BOTH, "distribute((A(i,j)-B(i,j))*x(j)), reorder(j,i), loopfuse(j)", "d"),
    (SCALED, "distribute((A(i,j)+B(i,j))/x(j)), reorder(j,i)", "dd"),
    ("C[i,j] = (A[i,j] + B[i,j]) * x[j]", "distribute((A(i,j)+B(i,j))*x(j))", "ds"),
    (
        "y[i] = (A[i,j] - B[i,j] * sum(k, b[k])) * x[j]",
        "distribute((A(i,j) - B(i,j) * sum(k, b(k))) * x(j))",
        "d",
    ),
    (
        "y[i] = (A[i,j] - B[i,j]) * sum(k, b[k]) * x[j]",
        "distribute((A(i,j) - B(i,j)) * sum(k, b(k)) * x(j))",
        "d",
    ),
)


@pytest.mark.parametrize(("text", "schedule", "result"), RESULTS)
def test_results(text: str, schedule: str, result: str) -> None:
    given: dict[str, Any] = {n: a for n, a in ARRAYS.items() if f"{n}[" in text.split("=")[1]}
    stored = {n: tp.tensor(a, format=tp.CSR) if n in "AB" else a for n, a in given.items()}
    found = tp.evaluate(text, stored, format=result, schedule=schedule)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
    np.testing.assert_allclose(found, dense_result(text, given))


REFUSED = (
    (BOTH, "distribute(A(i,j)*x(j))", "there is no sum in it"),
    (BOTH, "distribute((A(i,j)+B(i,j))*x(j))", "it is no term of"),
    (BOTH, "reorder(j,i), distribute((A(i,j)-B(i,j))*x(j))", "other commands have been applied"),
    (
        "y[i] = sum(j, (A[i,j] + b[i]) * b[i])",
        "distribute((A(i,j)+b(i))*b(i))",
        "b[i] * b[i] would be added up for each j, which it has not",
    ),
)


@pytest.mark.parametrize(("text", "schedule", "reason"), REFUSED)
def test_refused(text: str, schedule: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        apply_all(loops_of(text), Schedule.parse(schedule))
    assert reason in caught.value.message
    assert caught.value.hint


LONG = "y[i] = a[i] * (b[i] + c[i] + d[i]) * (b[i] + c[i] + d[i])" + " + e[i]" * 92
TOO_MANY = ((f"y[i] = {SUMS}", 2**40), (LONG, 101))


@pytest.mark.parametrize(("text", "count"), TOO_MANY, ids=("product", "sum"))
def test_more_terms_than_an_expression_can_have_are_refused(text: str, count: int) -> None:
    loops = loops_of(text)
    term = Distribute(split_terms(loops.assignment.value)[0].body)
    with pytest.raises(ScheduleError, match=f"would have {count} terms, and can have 100"):
        apply(loops, term)


def test_what_would_wrap_in_a_narrower_type_is_refused() -> None:
    """100 + 100 is -56 in 8 bits, but 2 * 100 + 2 * 100 is 400 in 64."""
    narrow = np.full((1, 1), 100, np.int8)
    wide = np.full(1, 2, np.int64)
    with pytest.raises(ScheduleError, match=r"A\[i,j\] \+ B\[i,j\] is computed in int8, and the"):
        tp.evaluate(
            "C[i,j] = (A[i,j] + B[i,j]) * x[j]",
            A=narrow,
            B=narrow,
            x=wide,
            schedule="distribute((A(i,j)+B(i,j))*x(j))",
        )


def test_it_is_among_the_moves_and_a_method() -> None:
    s = tp.schedule(BOTH, A=tp.CSR, B=tp.CSC, x=tp.dense(1))
    (move,) = [m for m in s.legal_moves() if isinstance(m, Distribute)]
    assert str(s.distribute("(A(i,j)-B(i,j))*x(j)")) == str(move)
    assert to_text(parse_assignment(BOTH).value) == to_text(move.expression)
    assert s.loops.orders == (("i", "j"), ("i", "j"))


def test_no_move_makes_more_terms_than_there_can_be() -> None:
    names = {f"{name}{k}": tp.dense(1) for k in range(40) for name in "ab"}
    moves = tp.schedule(f"y[i] = {SUMS}", **names).legal_moves()
    assert len(moves) > 5
    assert not [move for move in moves if isinstance(move, Distribute)]


@pytest.mark.parametrize("before", ["serial()", "reorder(i,j)", "split(i,a,b,2)"])
def test_distribute_comes_before_what_is_about_loops(before: str) -> None:
    s = tp.schedule("y[i] = (A[i,j] + B[i,j]) * x[j]", A=tp.CSR, B=tp.CSR, x=tp.dense(1))
    s.apply(before)
    offered = any("distribute" in str(move) for move in s.legal_moves())
    assert offered == (before == "serial()")
    if offered:
        s.distribute("(A(i,j) + B(i,j)) * x(j)")
        assert len(s.loops.orders) == 2
    else:
        with pytest.raises(tp.ScheduleError, match="distribute comes first"):
            s.distribute("(A(i,j) + B(i,j)) * x(j)")
