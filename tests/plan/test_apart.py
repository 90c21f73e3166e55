"""Sums of one name inside one term: told apart wherever something is planned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.problem import Problem
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.ir.goal import Request
from taco_py.planner.make import make_plan
from taco_py.report.explanation.standing import report
from tests.problems import form, operands, problem

TWICE = (
    "Z = E[k] * (F[j,k] - G[j,k])",
    "Z = C[i,j] - E[k] * (F[j,i,k] - G[i,j,k])",
    "Z = x[q] * (sum(i, sum(k, A[i,k])) + sum(k, sum(i, B[k,i])))",
    "Z[i] = A[i,j] * sum(m, B[j,m]) * sum(m, C[m,j])",
)


def report_of(known: Problem, budget: float) -> str:
    """The report on the plan of a problem."""
    given, request = operands(known), Request(known.result)
    plan = make_plan(known.assignment, given, request)
    return report(known.assignment, given, request, plan, budget)


@pytest.mark.parametrize("text", TWICE)
def test_frontiers_and_their_estimates(text: str) -> None:
    found = tp.frontier(text, schedule_budget=0)
    assert any(candidate.estimate is not None for candidate in found)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("text", TWICE)
@pytest.mark.parametrize("stored", ("dense", "CSR"))
def test_where_the_chosen_schedule_stands(text: str, stored: str) -> None:
    known = problem(text, dict.fromkeys("AB", stored) if "A" in text else {})
    told = report_of(known, 60.0)
    assert "asymptotically better" in told


ROTATED = "Z[i,k] = S[i,k] * (sum(j, sum(m, F[m,j,i])) - sum(m, sum(j, G[i,j,m]))) + Q[i,k]"


def test_the_order_in_which_a_result_is_stored() -> None:
    known = problem(ROTATED, {"S": "ss", "Q": "ss:1,0"}, "ss")
    request = Request(replace(known.result, format=form("ss", 2)), any_order=True)
    given = operands(known, {"j": 2, "m": 2}, {"S": 10.0, "Q": 1e5})
    plan = make_plan(known.assignment, given, request)
    assert str(plan.result.format) == "ss:1,0"


def test_such_a_result_is_computed() -> None:
    rng = np.random.default_rng(0)
    one, other = (sp.random_array((3, 3), density=0.5, format="csr", rng=rng) for _ in range(2))
    first, second = rng.random((2, 3, 3, 3))
    stored = {"S": tp.tensor(one, format="ss"), "Q": tp.tensor(other, format="ss:1,0")}
    result = tp.evaluate(ROTATED, stored, F=first, G=second)
    inner = np.einsum("mji->i", first) - np.einsum("ijm->i", second)
    expected = one.toarray() * inner[:, None] + other.toarray()
    np.testing.assert_allclose(result.to_numpy(), expected)


@pytest.mark.parametrize("text", (*TWICE, "y[i] = b[i] + (c[i] - d[i])"))
def test_what_is_apart_is_left_as_it_is(text: str) -> None:
    known = problem(text, dtypes={"c": "uint8", "d": "uint8"})
    once = normal_form(known.assignment, operands(known))
    assert once != known.assignment
    assert normal_form(once, operands(known)) is once
