"""Sums of full and sparse terms in a dense result: which are added in turn, and what that saves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.concrete.printer import to_text
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.make import make_plan
from taco_py.report.explanation.plan_schedule import graphs_of
from tests.asymptotic.counting import counted
from tests.asymptotic.exact_counts import Patterns
from tests.problems import operands, problem

RNG = np.random.default_rng(5)
A = sp.random_array((40, 30), density=0.2, rng=RNG, format="csr")
B = sp.random_array((40, 30), density=0.1, rng=RNG, format="csr")
D, X = RNG.random((40, 30)), RNG.random(40)
CSRS = {"A": "CSR", "B": "CSR"}
SUM = "C[i,j] = A[i,j] + D[i,j]"


def concrete(text: str, formats: dict[str, str], **dtypes: str) -> str:
    """The statement of the only kernel, in one line."""
    result = "d" * text.partition(" =")[0].count(",") + "d"
    known = problem(text, formats, result, dtypes or None)
    made = make_plan(known.assignment, operands(known), Request(known.result))
    (graph,) = graphs_of(made)
    lines = (line.strip() for line in to_text(graph.statement).splitlines())
    return "; ".join(line.replace("[i,j]", "").replace(" parallel", "") for line in lines)


IN_TURN = (
    (SUM, "forall i; forall j; C = D; forall j; C += A"),
    ("C[i,j] = D[i,j] - A[i,j]", "forall i; forall j; C = D; forall j; C += 0 - A"),
    ("C[i,j] = 2 * A[i,j] + 1", "forall i; forall j; C = 1; forall j; C += 2 * A"),
    ("C[i,j] = D[i,j] + x[i] * A[i,j]", "forall i; forall j; C = D; forall j; C += x[i] * A"),
    (
        "C[i,j] = A[i,j] + B[i,j] + D[i,j]",
        "forall i; forall j; C += A; forall j; C += B; forall j; C += D",
    ),
    (
        "C[i,j] = A[i,j] * B[i,j] + D[i,j]",
        "forall i; forall j; C = D; forall j; C += A * B",
    ),
    (
        "C[i,j] = D[i,j] + E[i,j] - A[i,j]",
        "forall i; forall j; C = D + E; forall j; C += 0 - A",
    ),
    (
        "C[i,j] = A[i,j] + D[i,j] * A[i,j] + D[i,j]",
        "forall i; forall j; C = D; forall j; C += A + D * A",
    ),
)


@pytest.mark.parametrize(("text", "expected"), IN_TURN)
def test_in_turn(text: str, expected: str) -> None:
    assert concrete(text, CSRS) == expected


WHOLE = (
    "C[i,j] = (A[i,j] + D[i,j]) * x[j]",  # a product of a sum
    "C[i,j] = D[i,j] / (A[i,j] + 1)",
    "C[i,j] = A[i,j] + B[i,j]",  # nothing is full
    "C[i,j] = D[i,j] + D[i,j] / (A[i,j] + 1)",  # both are
)


@pytest.mark.parametrize("text", WHOLE)
def test_one_loop(text: str) -> None:
    assert concrete(text, CSRS).count("forall j") == 1


def test_sums_of_other_types_stay_whole() -> None:
    text = "C[i,j] = (A[i,j] + D[i,j]) + E[i,j]"
    narrow = concrete(text, CSRS, A="int8", D="int8", E="int8")
    assert narrow == "forall i; forall j; C = D; forall j; C += A; forall j; C += E"
    known = problem(text, CSRS, "dd", {"A": "int8", "D": "int8", "E": "float64"})
    made = make_plan(known.assignment, operands(known), Request(known.result))
    kernel = made.steps[-1]
    assert isinstance(kernel, KernelStep)
    assert not kernel.in_turn  # what wraps is one term, with something everywhere


def test_rows_that_are_not_stored_are_copied_alone() -> None:
    expected = "forall i; forall j; C = D; forall j; C += A"
    assert concrete(SUM, {"A": "DCSR"}) == expected
    assert (
        concrete("y[i] = x[i] + d[i]", {"x": "s"})
        == "forall i; y[i] = d[i]; forall i; y[i] += x[i]"
    )


def test_loops_and_their_rounds() -> None:
    known = problem(SUM, CSRS, "dd")
    made = make_plan(known.assignment, operands(known), Request(known.result))
    (graph,) = graphs_of(made)
    stored = {(0, 1), (0, 3), (2, 0)}
    every = {(i, j) for i in range(3) for j in range(4)}
    rounds = counted(known, graph.statement, Patterns({"i": 3, "j": 4}, {"A": stored, "D": every}))
    assert rounds["i"] == 3
    assert rounds["j"] == 3 * 4 + len(stored)


def test_the_full_term_is_copied_in_vectors() -> None:
    kernel = tp.compile(SUM, A=A, D=D)
    assert kernel.source.count("#pragma omp simd") == 1
    assert kernel.source.count(" if (") == 1 + kernel.source.count("if (middle")
    told = tp.explain(SUM, A=A, D=D)
    assert "vector loop: j" in told
    assert "terms in turn, each in a loop over j: full ones all along, others at A2" in told
    assert "relies on   nothing but valid arrays" in told


def test_schedules_keep_their_loops() -> None:
    assert (
        "A[i,j] + D[i,j]\n"
        in tp.explain(SUM, A=A, D=D, schedule="reorder(i,j)").split("iterates")[0]
    )
    for schedule in ("reorder(i,j)", "parallelize(i)", "split(i,i0,i1,8)"):
        kernel = tp.compile(SUM, A=A, D=D, schedule=schedule)
        assert "C[i,j] = A[i,j] + D[i,j]\n */" in kernel.source
    kernel = tp.compile(SUM, A=A, D=D, schedule="serial()")
    assert "C[i,j] += A[i,j]" in kernel.source


def test_what_ran_can_be_asked_for() -> None:
    kernel = tp.compile(SUM, A=A, D=D)
    assert "fission(j)" in str(kernel.schedule)
    again = tp.compile(SUM, A=A, D=D, schedule=str(kernel.schedule))
    assert "C[i,j] += A[i,j]" in again.source
    np.testing.assert_array_equal(again(A=A, D=D), A.toarray() + D)


ROUNDED: tuple[tuple[str, Any], ...] = (
    ("C[i,j] = A[i,j] + B[i,j] + D[i,j]", lambda a, b, d: a + b + d),
    ("C[i,j] = A[i,j] + (B[i,j] + D[i,j])", lambda a, b, d: a + (b + d)),
    ("C[i,j] = D[i,j] - (A[i,j] - B[i,j])", lambda a, b, d: d - (a - b)),
    ("C[i,j] = (A[i,j] + D[i,j]) + (B[i,j] + D[i,j])", lambda a, b, d: (a + d) + (b + d)),
)


@pytest.mark.parametrize(("text", "function"), ROUNDED)
def test_rounded_as_written(text: str, function: Any) -> None:
    scale = 10.0 ** RNG.integers(-8, 8, (3, 40, 30))
    a, b = (sp.csr_array(m.toarray() * s) for m, s in zip((A, B), scale[:2], strict=True))
    d = D * scale[2]
    found = tp.evaluate(text, A=a, B=b, D=d)
    np.testing.assert_array_equal(found, function(a.toarray(), b.toarray(), d))


def test_threads_share_each_loop_of_a_vector() -> None:
    n = 50_000
    x = np.where(RNG.random(n) < 0.1, RNG.random(n), 0)
    d = RNG.random(n)
    text = "y[i] = x[i] + d[i]"
    kernel = tp.compile(text, x=tp.tensor(x, format="s"), d=d)
    assert kernel.source.count("forall i parallel") == 2
    for threads in (1, 2):
        found = tp.evaluate(text, x=tp.tensor(x, format="s"), d=d, threads=threads)
        np.testing.assert_array_equal(found, x + d)
