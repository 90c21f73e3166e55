"""The loop orders that the default adviser chooses, and when an operand must be copied."""

from __future__ import annotations

from itertools import count
from math import inf

import pytest

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.order.loop_costs import copying
from taco_py.compiler.order.orders import best_order, needs_copy, order_cost, ranked_orders
from taco_py.compiler.order.steps import Steps
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem
from taco_py.planner.ir.goal import statistics
from tests.problems import operands, problem

SPMV = "y[i] = A[i,j] * x[j]"
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
SDDMM = "D[i,j] = S[i,j] * U[i,k] * V[j,k]"
MTTKRP = "M[i,r] = sum(j, k, T[i,j,k] * B[j,r] * C[k,r])"

CHOICES: tuple[tuple[str, dict[str, str], str, str], ...] = (
    (SPMV, {"A": "CSR"}, "d", "ij"),
    (SPMV, {"A": "CSC"}, "d", "ji"),
    (SPMV, {"A": "CSC"}, "s", "ji"),
    (SPMV, {"A": "DCSR"}, "d", "ij"),
    (SPMV, {"A": "COO"}, "d", "ij"),
    (SPMV, {}, "d", "ij"),
    ("y[j] = A[i,j] * x[i]", {"A": "CSR"}, "d", "ij"),
    (PRODUCT, {"A": "CSR"}, "dd", "ikj"),
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", "ikj"),
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "dd", "ikj"),
    (PRODUCT, {"A": "CSC", "B": "CSC"}, "ds:1,0", "jki"),
    (PRODUCT, {"A": "CSC", "B": "CSC"}, "dd", "jki"),
    (PRODUCT, {"A": "CSR", "B": "CSC"}, "ds", "ikj"),
    (PRODUCT, {}, "dd", "ikj"),
    (SDDMM, {"S": "CSR"}, "ds", "ijk"),
    (SDDMM, {"S": "CSC"}, "ds:1,0", "jik"),
    (MTTKRP, {"T": "CSF"}, "dd", "ijkr"),
    ("A[i,j] = T[i,j,k] * x[k]", {"T": "CSF"}, "ss", "ijk"),
    ("C[j,i] = A[i,j]", {"A": "CSR"}, "ds:1,0", "ij"),
    ("r[i] = b[i] - A[i,j] * x[j]", {"A": "CSR"}, "d", "i ij"),
    # an inner sum's loop comes after those that it depends on
    ("y[i] = b[i] / (A[i,j] * x[j])", {"A": "CSR"}, "d", "ij"),
)
SMALL = {"r": 32}


def chosen(whole: Problem, sizes: dict[str, int]) -> str:
    known = statistics(whole.assignment, operands(whole, sizes))
    return " ".join(
        "".join(best_order(whole, term, known).order)
        for term in split_terms(whole.assignment.value)
    )


@pytest.mark.parametrize(("text", "formats", "result", "expected"), CHOICES)
def test_choice(text: str, formats: dict[str, str], result: str, expected: str) -> None:
    sizes = {"k": 32} if text == SDDMM else SMALL
    assert chosen(problem(text, formats, result), sizes) == expected


BLOCKED = (
    # (expression, formats, result, expected): a dense level has what others lead to
    ("Y[i,k] = A[i,j,k] * B[j,k]", {"A": "ssd", "B": "CSR"}, "ss", "ijk"),
    ("y[i] = A[i,j,k] * B[j,k]", {"A": "dsd", "B": "sd"}, "d", "ijk"),
    ("y[i] = A[i,j,k] * B[j,k]", {"A": "ssd", "B": "ss"}, "s", "ijk"),
    ("Y[i,l] = A[i,j,k] * C[l,j,k]", {"A": "ssd", "C": "ssd"}, "ss", "iljk"),
)


@pytest.mark.parametrize(("text", "formats", "result", "expected"), BLOCKED)
def test_dense_levels_below_lists_are_not_walked(
    text: str, formats: dict[str, str], result: str, expected: str
) -> None:
    """Nor copied to lists, which costs more than all loops."""
    whole = problem(text, formats, result)
    sizes = dict.fromkeys("ijkl", 200)
    entries = {"A": 3000 * 200.0, "B": 4000.0, "C": 3000 * 200.0}
    known = statistics(whole.assignment, operands(whole, sizes, entries))
    (term,) = split_terms(whole.assignment.value)
    assert "".join(best_order(whole, term, known).order) == expected


@pytest.mark.parametrize("form", ["ssd", "sss"])
def test_merges_count_lists_alone(form: str) -> None:
    """A loop over k makes an iteration for each entry of B's rows that A leads to; it walks them
    together with A's entries where these have a list."""
    whole = problem("y[i] = A[i,j,k] * B[j,k]", {"A": form, "B": "CSR"}, "d")
    sizes = dict.fromkeys("ijk", 200)
    known = statistics(whole.assignment, operands(whole, sizes, {"A": 600_000.0, "B": 4000.0}))
    (term,) = split_terms(whole.assignment.value)
    steps = Steps(whole, term, known)
    around = steps.bits_of("ij")
    if form == "ssd":
        assert steps.count(around) == pytest.approx(3000)
        assert steps.step(around, "k") == pytest.approx(3000 * 20)
    else:
        assert steps.step(around, "k") > NOMINAL.loops.merge_steps * 600_000


def test_a_list_that_is_folded_is_appended_from() -> None:
    """Its copy stores each coordinate once, so that a result in its order needs no table."""
    text, sizes = "Y[i,j,l] = A[i,j,k] * B[k,l]", dict.fromkeys("ijkl", 200)
    costs = {}
    for form in ("COO", "CSF"):
        whole = problem(text, {"A": form, "B": "sd"}, "ssd")
        known = operands(whole, sizes, {"A": 100_000.0, "B": 20_000.0})
        (term,) = split_terms(whole.assignment.value)
        found = best_order(whole, term, statistics(whole.assignment, known))
        assert found.order == tuple("ijkl")
        costs[form] = found.cost
    call = NOMINAL.calls.distribution_seconds / NOMINAL.step_seconds
    copy = call + NOMINAL.copies.folded_entry_steps * 100_000
    assert costs["COO"] == pytest.approx(costs["CSF"] + copy)


def test_a_tiny_problem_gets_the_order_of_the_next_larger_ones() -> None:
    whole = problem(PRODUCT, {"A": "CSR", "B": "CSR"})
    assert chosen(whole, dict.fromkeys("ijk", 2)) == chosen(whole, {}) == "ikj"
    assert chosen(whole, dict.fromkeys("ijk", 0)) == "ikj"


@pytest.mark.parametrize(("block", "columns"), [(4, 32), (8, 32), (4, 128)])
def test_loops_over_blocks_are_inside_those_that_come_to_them(block: int, columns: int) -> None:
    """Outside, they would fetch the lines of all blocks for each place of a block."""
    whole = problem("C[i,a,j] = A[i,k,a,b] * X[k,b,j]", {"A": "dsdd"}, "ddd")
    sizes = {"i": 600, "k": 600, "a": block, "b": block, "j": columns}
    known = operands(whole, sizes, {"A": 10800.0 * block**2})
    (term,) = split_terms(whole.assignment.value)
    order = best_order(whole, term, statistics(whole.assignment, known)).order
    assert order[0] == "i"
    assert order[-1] == "j"


def test_every_order_is_a_permutation_of_all_indices() -> None:
    for text, formats, result, _ in CHOICES:
        whole = problem(text, formats, result)
        known = statistics(whole.assignment, operands(whole))
        for term in split_terms(whole.assignment.value):
            order = best_order(whole, term, known).order
            inside = {i for a in accesses(term.body) for i in a.indices}
            assert len(set(order)) == len(order)
            assert set(order) == inside | set(whole.assignment.target.indices)


def test_long_products_are_searched_within_a_budget() -> None:
    text = "R[i,j,k,l] = T[i,a,b,c] * A[a,j] * B[b,k] * C[c,l] * D[i,j] * E[k,l]"
    whole = problem(text.replace(" = ", " = sum(a, b, c, ") + ")", {"T": "CSF"})
    known = statistics(whole.assignment, operands(whole, dict.fromkeys("ijklabc", 50)))
    (term,) = split_terms(whole.assignment.value)
    assert len(best_order(whole, term, known).order) == 7


COPIES = (
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", "ikj", ""),
    (PRODUCT, {"A": "CSC", "B": "CSR"}, "ds", "ikj", "A"),
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", "kij", "A"),
    # a list with duplicates is added up from anywhere, but not merged and not appended from; a
    # result of one mode is gathered from a row of numbers
    (SPMV, {"A": "COO"}, "d", "ij", ""),
    (SPMV, {"A": "COO"}, "s", "ij", ""),
    ("C[i,j] = A[i,j] * x[j]", {"A": "COO"}, "ss", "ij", "A"),
    (SPMV, {"A": "COO", "x": "s"}, "d", "ij", "A"),
    ("C[i,j] = 2 * A[i,j]", {"A": "COO"}, "COO", "ij", ""),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "COO", "B": "COO"}, "dd", "ij", ""),
)


@pytest.mark.parametrize(("text", "formats", "result", "order", "expected"), COPIES)
def test_needs_copy(
    text: str, formats: dict[str, str], result: str, order: str, expected: str
) -> None:
    whole = problem(text, formats, result)
    term = split_terms(whole.assignment.value)[0]
    copied = [a.tensor for a in accesses(term.body) if needs_copy(whole, term, a, tuple(order))]
    assert "".join(copied) == expected


SEARCHED = (
    *CHOICES,
    ("R[i,l,m] = A[i,j,k] * B[j,l,n] * C[k,m,n]", {"A": "CSF", "B": "CSF", "C": "CSF"}, "sss", ""),
    ("R[i,j,k] = T[i,j,k] * A[k,r] * B[j,r]", {"T": "COO", "A": "CSC"}, "sss:2,0,1", ""),
)


@pytest.mark.parametrize(("text", "formats", "result", "_"), SEARCHED)
def test_no_order_is_cheaper_than_the_one_found(
    text: str, formats: dict[str, str], result: str, _: str
) -> None:
    whole = problem(text, formats, result)
    known = statistics(whole.assignment, operands(whole, SMALL))
    for term in split_terms(whole.assignment.value):
        (cheapest,) = ranked_orders(whole, term, known, 1)  # looks at every order
        found = best_order(whole, term, known)
        assert found.cost == pytest.approx(cheapest.cost)
        assert order_cost(whole, term, known, found.order) == found.cost


def test_few_of_many_orders_are_looked_at() -> None:
    whole = problem("R[a,b,c,d,e,f,g,h,i] = A[a,b,c] * B[d,e,f] * C[g,h,i]", {"A": "CSF"})
    known = statistics(whole.assignment, operands(whole, dict.fromkeys("abcdefghi", 50)))
    (term,) = split_terms(whole.assignment.value)
    ticks = count()
    effort = Effort(inf, lambda: next(ticks))  # asked for each loop that is tried
    assert len(best_order(whole, term, known, effort).order) == 9
    assert next(ticks) < 1000
    assert not effort.cuts


def test_a_search_ends_when_its_time_is_over_and_says_so() -> None:
    whole = problem(PRODUCT, {"A": "CSR", "B": "CSC"}, "dd")
    known = statistics(whole.assignment, operands(whole, SMALL))
    (term,) = split_terms(whole.assignment.value)
    effort = Effort(0.0)
    found = best_order(whole, term, known, effort)
    assert sorted(found.order) == ["i", "j", "k"]
    assert order_cost(whole, term, known, found.order) == found.cost
    assert effort.notes == ("of 0 s ran out after 1 of 6 orders of i,j,k",)


def test_a_search_is_made_once() -> None:
    whole = problem(PRODUCT, {"A": "CSR", "B": "CSR"}, "ds")
    known = statistics(whole.assignment, operands(whole))
    (term,) = split_terms(whole.assignment.value)
    effort = Effort()
    assert best_order(whole, term, known, effort) is best_order(whole, term, known, effort)
    other = statistics(whole.assignment, operands(whole, {"i": 7}))
    assert best_order(whole, term, other, effort) is not best_order(whole, term, known, effort)


def test_an_intersection_of_very_different_lengths_costs_less_than_walking_both() -> None:
    whole = problem("s = A[i,j] * B[i,j]", {"A": "CSR", "B": "CSR"})
    (term,) = split_terms(whole.assignment.value)
    sizes = {"i": 20, "j": 20_000}

    def cost(few: float) -> float:
        known = operands(whole, sizes, {"A": few, "B": 2e5})
        return order_cost(whole, term, statistics(whole.assignment, known), ("i", "j"))

    walked = NOMINAL.loops.merge_steps * (1e4 + 2e5)
    assert 0.9 * walked < cost(1.3e4) < 1.2 * walked
    assert cost(200.0) < 0.3 * NOMINAL.loops.merge_steps * 2e5


def test_a_coordinate_list_is_copied_in_its_own_order_for_less() -> None:
    """In another order its entries are counted, but for few entries a row, which are sorted."""
    whole = problem("C[i,j] = A[i,j] * B[i,j]", {"A": "COO", "B": "COO"}, "ss")
    (term,) = split_terms(whole.assignment.value)
    known = statistics(whole.assignment, operands(whole, None, {"A": 2e3, "B": 5e5}))
    kept, sorted_ = (order_cost(whole, term, known, order) for order in (("i", "j"), ("j", "i")))
    more = NOMINAL.copies.transposed_entry_steps - NOMINAL.copies.folded_entry_steps
    assert sorted_ - kept > 0.9 * more * (2e3 + 5e5)
    few = statistics(whole.assignment, operands(whole, None, {"A": 80.0, "B": 50.0}))
    kept, sorted_ = (order_cost(whole, term, few, order) for order in (("i", "j"), ("j", "i")))
    more = NOMINAL.copies.sorted_entry_steps - NOMINAL.copies.folded_entry_steps
    assert sorted_ - kept > 0.9 * more * (80 + 50)
    assert best_order(whole, term, known).order == ("i", "j")


def test_rows_between_lists_are_lines_of_their_own() -> None:
    """A slice of T meets few of each row's k, so that Y is met row by row, not from end to end: it
    is stored with r last, and lines come no more often than entries."""
    sizes, nnz = {"i": 400, "j": 300, "k": 200, "r": 8}, {"T": 200_000.0}
    text = "Y[j,k,r] = T[i,j,k] * A[i,r]"
    costs = {}
    for form in ("ddd", "ddd:0,2,1", "ddd:1,2,0", "ddd:2,0,1"):
        known = problem(text, {"T": "CSF"}, form)
        (term,) = split_terms(known.assignment.value)
        stats = statistics(known.assignment, operands(known, sizes, nnz))
        found = best_order(known, term, stats)
        costs[form] = found.cost
        if form == "ddd":
            assert found.order == tuple("ijkr")
    assert min(costs, key=lambda form: costs[form]) == "ddd"
    assert costs["ddd"] < 20 * nnz["T"]


BATCHED = "Y[b,i,f] = A[i,j] * Z[b,j,f]"


def test_rows_that_a_matrix_leads_to_again_and_again_are_kept() -> None:
    """A batch of Z stays near while A is read through; all batches do not."""
    known = problem(BATCHED, {"A": "CSR"}, "ddd")
    (term,) = split_terms(known.assignment.value)
    sizes = {"b": 64, "i": 800, "j": 800, "f": 16}
    stats = statistics(known.assignment, operands(known, sizes, {"A": 32_000.0}))
    assert best_order(known, term, stats).order == tuple("bijf")
    steps = Steps(known, term, stats)
    lines = 64 * (2 * 800 + 2 * 2 * 800)  # of each batch of Z once, and of Y, to and fro
    read = 64 * 32_000 * 12 / 64
    assert steps.step(steps.bits_of("b"), "i") < 1.5 * (lines + read)
    assert steps.step(0, "i") > 5 * (lines + read)


@pytest.mark.parametrize(("size", "row", "batches"), [(2708, 64, 32), (10_000, 16, 16)])
def test_what_the_far_caches_hold_costs_less_than_what_they_do_not(
    size: int, row: int, batches: int
) -> None:
    """A batch is beyond the near caches as all of them are, but not as far."""
    known = problem(BATCHED, {"A": "CSR"}, "ddd")
    (term,) = split_terms(known.assignment.value)
    sizes = {"b": batches, "i": size, "j": size, "f": row}
    stats = statistics(known.assignment, operands(known, sizes, {"A": 10.0 * size}))
    assert best_order(known, term, stats).order == tuple("bijf")
    inside, outside = (order_cost(known, term, stats, tuple(o)) for o in ("bijf", "ibjf"))
    met, all_ = (batches * size * n * row * 8 / NOMINAL.loops.line_bytes for n in (10, 1))
    assert outside - inside > 0.5 * NOMINAL.loops.far_line_steps * (met - all_)


@pytest.mark.parametrize(
    ("order", "each"),
    [
        ("bijf", NOMINAL.loops.held_row_steps),
        ("ibjf", NOMINAL.loops.held_row_steps),
        ("ijbf", NOMINAL.vector_scatter_steps),  # each batch has a row of its own
        ("bjif", NOMINAL.vector_scatter_steps),
        ("bifj", NOMINAL.loops.held_row_steps),
        ("ijfb", NOMINAL.loops.scatter_steps - 1.0),
        ("bjfi", NOMINAL.loops.scatter_steps - 1.0),
        ("bfji", NOMINAL.loops.scatter_steps - 1.0),
    ],
)
def test_what_is_added_to_a_row_in_registers_is_free(order: str, each: float) -> None:
    """That row is the result's innermost, and sums come right outside it; a sum that is innermost
    adds to a register."""
    known = problem(BATCHED, {"A": "CSR"}, "ddd")
    (term,) = split_terms(known.assignment.value)
    stats = statistics(known.assignment, operands(known, {"b": 4, "i": 100, "j": 100, "f": 16}))
    steps = Steps(known, term, stats)
    (matrix, _) = accesses(term.body)
    copied = copying(stats, matrix) if order.index("j") < order.index("i") else 0.0
    written = order_cost(known, term, stats, tuple(order)) - steps.nest((), order) - copied
    assert written == pytest.approx(each * steps.count(steps.every), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Y[i,q,s] = sum(j, k, T[i,j,k] * B[j,q] * C[k,s])", "sdd"),
        ("Y[k,q,s] = sum(i, j, T[i,j,k] * A[i,q] * B[j,s])", "ddd"),
    ],
)
def test_accumulations_along_a_row_cost_a_vectors_share(text: str, result: str) -> None:
    """A hundred of them for each entry."""
    sizes = {"i": 2000, "j": 1500, "k": 300, "q": 10, "s": 10}
    known = problem(text, {"T": "CSF"}, result)
    (term,) = split_terms(known.assignment.value)
    stats = statistics(known.assignment, operands(known, sizes, {"T": 200_000.0}))
    found = best_order(known, term, stats)
    assert found.order == tuple("ijkqs")
    assert found.cost < 0.7 * 100 * 200_000
