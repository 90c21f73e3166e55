"""What loops cost inside others: found once for all orders in which a sparse result is stored."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import factorial

import pytest

from taco_py.compiler.concrete.terms import split_terms, sums_outside
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.order import orders, steps
from taco_py.compiler.order.orders import Ranked, best_order, order_cost
from taco_py.compiler.order.steps import Steps
from taco_py.planner.ir.goal import Request, statistics
from taco_py.planner.make import make_plan
from tests.problems import form, operands, problem

TEXT = "Z[i,r,s] = A[i,j,k] * B[j,r] * C[k,s]"
STORED = {"A": "sss", "B": "ss", "C": "ss"}


def test_formats_in_which_loops_cost_the_same_share_a_table() -> None:
    """Not dense operands in other orders, nor operands with a root of all rows."""
    (term,) = split_terms(problem(TEXT, STORED, "sss").assignment.value)
    effort = Effort()
    for stored, count in (("sss", 1), ("sss:2,1,0", 1), ("dss", 2), ("ddd", 3), ("ddd:0,2,1", 4)):
        known = problem(TEXT, {**STORED, "A": stored}, "sss")
        stats = statistics(known.assignment, operands(known))
        found = best_order(known, term, stats, effort)
        assert tables(effort) == count
        assert found == best_order(known, term, stats)


def tables(effort: Effort) -> int:
    return sum(isinstance(found, Steps) for found in effort.results.values())


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
    request = Request(known.result, any_order=True)
    make_plan(known.assignment, operands(known), request)
    assert 0 < tables(request.effort) <= 14
    assert sum(isinstance(found, Ranked) for found in request.effort.results.values()) <= 20


LARGE = {"a": 900, "b": 40, "c": 700, "d": 30, "e": 500}


@pytest.mark.parametrize("text", ("Z[a,e] = A[a,b,c] * B[c,d] * C[d,e,b]", "Z[e] = A[a,b] * D[e]"))
def test_some_sets_of_loops_cost_what_they_cost_among_all(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operands that fill caches, one that leaps, and what comes from neither near nor far."""
    whole = problem(text, {"A": "CSF" if "c" in text else "CSR", "B": "CSR"})
    known = statistics(whole.assignment, operands(whole, LARGE, {"B": 50}))
    (term,) = split_terms(whole.assignment.value)
    every = Steps(whole, term, known)
    assert every.lattice.full
    monkeypatch.setattr(steps, "EVERY_SET_LOOPS", 1)
    monkeypatch.setattr(steps, "NEAR_ORDER_LOOPS", 2)
    for around in ((), tuple(reversed(every.indices))):
        some = Steps(whole, term, known, around)
        for order in list(permutations(every.indices))[::5]:
            for place, index in enumerate(order):
                before = order[:place]
                one = every.step(every.bits_of(before), index)
                assert some.step(some.bits_of(before), index) == pytest.approx(one)
                assert some.count(some.bits_of(before)) == pytest.approx(
                    every.count(every.bits_of(before))
                )


def test_the_least_that_is_left_is_that_of_the_best_order() -> None:
    whole = problem("Z[a,e] = A[a,b,c] * B[c,d] * C[d,e,b]", {"A": "CSF", "B": "CSR"})
    known = statistics(whole.assignment, operands(whole, LARGE))
    (term,) = split_terms(whole.assignment.value)
    found = Steps(whole, term, known)
    for begin in ((), ("a",), ("d", "b")):
        rest = [index for index in found.indices if index not in begin]
        least = min(found.nest(begin, order) for order in permutations(rest))
        place = found.lattice.place[found.bits_of(begin)]
        assert found.least[place] == pytest.approx(least)


def test_plans_for_many_loops_are_bounded_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all 2^15 sets of 15 loops, but those near a good order."""
    known = problem(
        "Z[a,b,c,d] = A[a,e,f,g,h,i] * B[b,j,k,l,e,m] * C[c,d,n,o,f]",
        {"A": "CSF", "B": "CSF", "C": "CSF"},
    )
    sizes = dict.fromkeys("abcdefghijklmno", 5)
    sets = []
    monkeypatch.setattr(orders, "Steps", lambda *args: (sets.append(Steps(*args)), sets[-1])[1])
    (term,) = split_terms(known.assignment.value)
    effort = Effort()
    stats = statistics(known.assignment, operands(known, sizes))
    found = best_order(known, term, stats, effort)
    assert sorted(found.order) == list("abcdefghijklmno")
    assert order_cost(known, term, stats, found.order) == pytest.approx(found.cost)
    assert sum(len(each.lattice.sets) for each in sets) <= 2 * 9 * 128
    near = f"only orders near {','.join(found.order)} were compared, not all {factorial(15)} orders"
    assert [note.startswith(near) for note in effort.notes] == [True]
    assert found.cost <= order_cost(known, term, stats, tuple("abcdefghijklmno"))
    first = len(sets)
    sets.clear()  # the next search begins near the order that was found
    transposed = replace(known, result=replace(known.result, format=form("dddd:3,2,1,0", 4)))
    best_order(transposed, term, stats, effort)
    assert len(sets) < first


def test_a_list_below_a_full_mode_is_run_through_for_each_of_its_coordinates() -> None:
    """Loops p,a,e find T's dense mode a first, and then all of T's e for each p and a."""
    known = problem("G[p,q] = E[e,a,p] * T[e,a,q]", {"E": "CSF", "T": "ssd:0,2,1"}, "ss")
    (term,) = split_terms(known.assignment.value)
    sizes, elements = {"p": 40_000, "q": 40_000, "e": 80_000, "a": 3}, 80_000.0
    stats = statistics(
        known.assignment, operands(known, sizes, {"E": 3 * elements, "T": 9 * elements})
    )
    assert order_cost(known, term, stats, tuple("paeq")) > sizes["p"] * elements
    assert best_order(known, term, stats).order[0] == "e"


def test_lines_are_fetched_of_the_rows_that_store_something() -> None:
    """Loops over 40 000 rows of A, of which 100 have entries, read 100 rows of X at most."""
    known = problem("G[k,l] = X[i,k] * A[i,j] * Y[j,l]", {"A": "CSR"})
    known = replace(known, assignment=sums_outside(known.assignment))
    sizes = {"i": 40_000, "j": 40_000, "k": 16, "l": 16}
    (term,) = split_terms(known.assignment.value)
    stats = statistics(known.assignment, operands(known, sizes, {"A": 100.0}))
    loops = NOMINAL.loops
    rows, products = 40_000.0, 100.0 * 16 * 16
    lines = 2 * 100.0 * 2 * (loops.line_steps + loops.far_line_steps)
    most = rows + 100.0 * (1 + 16) + products * (loops.vector_steps + 0.1) + lines
    assert rows < order_cost(known, term, stats, ("i", "j", "k", "l")) < 1.1 * most


def test_merges_end_where_a_row_is_empty() -> None:
    """Rows of B are walked where A has entries: in 50 rows of 10 000."""
    known = problem("y[i] = A[i,j] * B[i,j]", {"A": "CSR", "B": "CSR"})
    sizes = {"i": 10_000, "j": 10_000}
    (term,) = split_terms(known.assignment.value)
    costs = []
    for entries in (50.0, 10_000.0):
        given = operands(known, sizes, {"A": entries, "B": 500_000.0})
        stats = statistics(known.assignment, given, NOMINAL.with_costs(gallop_ratio=1e9))
        costs.append(order_cost(known, term, stats, ("i", "j")))
    few, many = costs
    merge = NOMINAL.loops.merge_steps
    assert few < 1.2 * (10_000 + merge * 50 * (50 + 1))
    assert many > merge * 500_000


def test_a_row_workspace_costs_by_the_elements_that_are_met_first() -> None:
    """Each addition in a product of few entries, and few of those to a row that fills up."""
    known = problem("C[i,j] = A[i,k] * B[k,j]", {"A": "CSR", "B": "CSR"}, "ds")
    (term,) = split_terms(known.assignment.value)
    by_addition = []
    for size, row in ((20_000, 5.0), (300, 150.0)):
        given = operands(known, dict.fromkeys("ijk", size), dict.fromkeys("AB", size * row))
        stats = statistics(known.assignment, given)
        cost = order_cost(known, term, stats, ("i", "k", "j"))
        by_addition.append((cost - size * (1 + row)) / (size * row * row))
    first, again = by_addition
    assert first > 6.0 and again < 2.5
