"""What loops cost inside others: found once for all orders in which a sparse result is stored."""

from __future__ import annotations

from dataclasses import replace

from taco_py.autoschedule.effort import Effort
from taco_py.autoschedule.orders import best_order
from taco_py.autoschedule.steps import Steps
from taco_py.concrete.terms import split_terms
from taco_py.plan.arranged import arranged
from taco_py.plan.make import make_plan
from taco_py.plan.request import Request, statistics
from tests.problems import form, operands, problem

TEXT = "Z[i,r,s] = A[i,j,k] * B[j,r] * C[k,s]"
STORED = {"A": "sss", "B": "ss", "C": "ss"}


def tables(effort: Effort) -> int:
    return sum(isinstance(found, Steps) for found in effort.known.values())


def test_sparse_results_share_what_loops_cost_and_dense_ones_do_not() -> None:
    known = problem(TEXT, STORED, "sss")
    (term,) = split_terms(known.assignment.value)
    stats, effort = statistics(known.assignment, operands(known)), Effort()
    for stored, count in (("sss", 1), ("sss:2,1,0", 1), ("ddd", 2), ("ddd:2,1,0", 3)):
        stored_so = replace(known, result=replace(known.result, format=form(stored, 3)))
        found = best_order(stored_so, term, stats, effort)
        assert tables(effort) == count
        assert found == best_order(stored_so, term, stats)


def test_a_plan_makes_few_tables() -> None:
    """However many orders the result's modes could be stored in."""
    known = problem(TEXT, STORED, "sss")
    request = Request(known.result)
    chosen = arranged(known.assignment, operands(known), request)
    make_plan(known.assignment, operands(known), chosen)
    assert 0 < tables(request.effort) <= 14
    assert len(request.effort.known) <= 34
