"""The kernels that are chosen against the frontier of all schedules."""

from __future__ import annotations

import pytest

from taco_py.compiler.asymptotic.frontier_search import frontier
from taco_py.compiler.concrete.terms import reductions, split_terms
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem
from taco_py.planner.ir.goal import Request
from taco_py.planner.make import make_plan
from taco_py.report.explanation import standing as standing_of
from taco_py.report.explanation.standing import Nests, chosen_nests, report, verdict
from tests.corpus.expressions import CASES
from tests.problems import assignment, operands, problem

CLOSE = 0.6
"""The share of the work above which the schedule that is asymptotically better gains little."""


def nests_of(known: Problem, request: Request) -> Nests:
    """The kernels of the plan of a problem as one statement."""
    plan = make_plan(known.assignment, operands(known), request)
    assert plan.selection is not None
    nests = chosen_nests(plan.selection, request)
    assert nests is not None
    return nests


def report_of(known: Problem, budget: float) -> str:
    """The report on the plan of a problem."""
    given, request = operands(known), Request(known.result)
    plan = make_plan(known.assignment, given, request)
    return report(known.assignment, given, request, plan, budget)


def sparse(text: str) -> dict[str, str]:
    """Every matrix in CSR, every tensor of a higher order in CSF, vectors dense."""
    found = {a.tensor: len(a.indices) for a in accesses(assignment(text))}
    return {name: "CSR" if n == 2 else "CSF" for name, n in found.items() if n > 1}


def is_modelled(text: str) -> bool:
    """Whether the model of costs covers an expression, and its universe is small enough here.

    It knows nothing of an index that an access has twice, nor of sums inside terms.
    """
    parsed = assignment(text)
    every = (parsed.target, *accesses(parsed))
    if any(len(set(access.indices)) < len(access.indices) for access in every):
        return False
    few = len({i for access in every for i in access.indices}) < 5 and len(every) < 5
    few = few and sum(len(access.indices) for access in accesses(parsed)) <= 8
    inner = [r for term in split_terms(parsed.value) for r in reductions(term.body)]
    return few and not inner


MODELLED = tuple(case.text for case in CASES if is_modelled(case.text))


def test_most_expressions_are_modelled() -> None:
    assert len(MODELLED) > len(CASES) / 2


@pytest.mark.parametrize("text", MODELLED)
def test_no_schedule_is_asymptotically_and_clearly_better(text: str) -> None:
    known = problem(text, sparse(text))
    given, request = operands(known), Request(known.result)
    nests = nests_of(known, request)
    formats = {name: operand.type.format for name, operand in given.items()}
    found = frontier(known.assignment, formats, budget=60.0)
    assert found.complete
    standing = verdict(nests, known.assignment, given, found)
    assert standing is not None
    assert standing.below is None or standing.share > CLOSE, str(standing.below)


def test_pairs_are_taken_where_they_are_asymptotically_better() -> None:
    known = problem("D[i,l] = A[i,j] * B[j,k] * C[k,l]", dict.fromkeys("ABC", "CSR"))
    nests = nests_of(known, Request(known.result))
    assert len(nests.temporaries) == 1


def test_the_report_says_what_was_found_and_where_the_choice_stands() -> None:
    known = problem("C[i,j] = A[i,k] * B[k,j]", {"A": "CSR", "B": "CSR"})
    told = report_of(known, 5.0)
    for line in (
        "  candidates        6 loop nests of 1 groupings",
        "  after domination  12, of 1 different costs",
        "12 schedules: Σ over {(i,k,j) | A[i,k] ∧ B[k,j]}",
        "    none is asymptotically better",
    ):
        assert line in told.splitlines()
    assert "  estimated " in told
    assert "chosen, estimated " in told


def test_the_report_says_that_there_was_no_time() -> None:
    known = problem("C[i,j] = A[i,k] * B[k,j]", {"A": "CSR", "B": "CSR"})
    told = report_of(known, 0.0)
    assert "the budget ended before its cost was known" in told
    assert "asymptotically better" not in told


def test_loops_in_turn_are_told_from_the_frontiers() -> None:
    for text, in_turn in (
        ("r[i] = b[i] - A[i,j] * x[j]", True),
        ("C[i,j] = A[i,j] + B[i,j]", False),
    ):
        known = problem(text, {"A": "CSR"})
        told = report_of(known, 5.0)
        assert ("    a loop nest for each term, which none of those above has" in told) == in_turn


def test_estimates_are_told_apart_or_once() -> None:
    known = problem("C[i,j] = A[i,j] * B[i,j]", {"A": "CSR", "B": "CSR"})
    told = report_of(known, 5.0)
    ranges = [line.split()[1:-2] for line in told.splitlines() if line.startswith("  estimated")]
    assert ranges
    assert all(len(ends) in (1, 3) and ends[0] != ends[2:] for ends in ranges)


def test_what_cannot_be_compared_is_told() -> None:
    known = problem("y[i] = A[i,i]", {"A": "CSR"})
    told = report_of(known, 1.0)
    assert told == "schedules not compared: A has an index twice, take the diagonal first"


INSIDE = (
    "y[i] = sum(j, A[i,j]) / x[i]",
    "Z = A[a,b] * B[c,d]",
    "y[i] = A[i,j] * B[j,k] * x[k] / z[i]",
    "D[i,k] = C[i,k] * sum(j, A[i,j] * B[j,k]) / z[i]",
    "y[i] = (A[i,j] * B[j,k] + C[i,k]) * x[k]",
)


@pytest.mark.parametrize("text", INSIDE)
def test_kernels_with_sums_inside_their_terms_are_compared_too(text: str) -> None:
    known = problem(text, dict.fromkeys("AC", "CSR"))
    told = report_of(known, 60.0)
    (chosen,) = (line for line in told.splitlines() if line.startswith("chosen, estimated "))
    estimate = float(chosen.removeprefix("chosen, estimated ").partition(":")[0])
    best = min(
        float(line.split()[1]) for line in told.splitlines() if line.startswith("  estimated ")
    )
    assert 0 < estimate <= 1.1 * best
    last = told.splitlines()[-1].partition(" of the work")[0]
    assert last == "    none is asymptotically better" or float(last.split()[-1]) > CLOSE
    assert "inf" not in told


def test_loops_that_the_text_has_not_are_told() -> None:
    text = "y[i] = z[i] / (1 + (A[i,j] + B[i,j]) * x[j])"
    known = problem(text, dict.fromkeys("AB", "CSR"))
    told = report_of(known, 5.0)
    assert told.endswith(": not compared, for the text has no loops over j_1")


def test_a_report_without_time_says_that_not_all_were_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standing_of, "monotonic", lambda: 0.0)  # time for the chosen one
    known = problem("D[i,l] = A[i,j] * B[j,k] * C[k,l]", dict.fromkeys("ABC", "CSR"))
    told = report_of(known, 1e-9)
    assert "    none of those looked at is asymptotically better" in told.splitlines()
    assert "    none is asymptotically better" not in told.splitlines()
