"""Sums in products: where they are multiplied out, where they are left, and that numbers agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.names import Names
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.printer import to_text
from taco_py.planner.algebra.distribution import Rules
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.index_sizes import Sizes
from taco_py.planner.make import Options, make_plan
from taco_py.planner.rules.forms.multiply_out import Forms, cheapest_form
from tests.machines import planned_for
from tests.problems import assignment, operands, plan, problem

ALLOWED: dict[str, Any] = {"allow": ("cancellation",)}
"""Digits may cancel, so that differences are multiplied out where that is far cheaper."""

FLOAT = np.dtype("float64")

FORMS = (
    (
        "y[i] = (A[i,j] * B[j,k] + C[i,k]) * x[k]",
        "y[i] = sum(k, sum(j, A[i,j] * B[j,k]) * x[k]) + sum(k, C[i,k] * x[k])",
    ),
    ("y[i] = (A[i,j] + B[i,j]) * x[j]", "y[i] = sum(j, A[i,j] * x[j]) + sum(j, B[i,j] * x[j])"),
    (
        "y[i] = b[i] + x[j] * (A[i,j] + B[i,j]) / z[i]",
        "y[i] = b[i] + (sum(j, x[j] * A[i,j]) + sum(j, x[j] * B[i,j])) / z[i]",
    ),
    (
        "s = (x[i] + y[i]) * (A[i,j] + B[i,j])",
        "s = sum(i, x[i] * sum(j, A[i,j])) + sum(i, x[i] * sum(j, B[i,j])) "
        "+ (sum(i, y[i] * sum(j, A[i,j])) + sum(i, y[i] * sum(j, B[i,j])))",
    ),
    # inside what is not linear in it, as far as it is
    (
        "y[i] = z[i] / (1 + (A[i,j] + B[i,j]) * x[j])",
        "y[i] = z[i] / (1 + (sum(j, A[i,j] * x[j]) + sum(j, B[i,j] * x[j])))",
    ),
    ("y[i] = -(-A[i,j] - B[i,j]) * x[j]", "y[i] = sum(j, A[i,j] * x[j]) + sum(j, B[i,j] * x[j])"),
    ("y[i] = (A[i,j] + 1) * x[j]", "y[i] = sum(j, A[i,j] * x[j]) + sum(j, 1 * x[j])"),
    # what has not the index of a sum is added up as often as that has coordinates
    ("y[i] = sum(j, A[i,j] + b[i])", "y[i] = sum(j, A[i,j]) + size_j * b[i]"),
    ("y[i] = sum(j, (A[i,j] + b[i]) * 2)", "y[i] = sum(j, A[i,j] * 2) + size_j * (b[i] * 2)"),
    (
        "s = sum(i, sum(j, A[i,j] + x[j] + 1))",
        "s = sum(i, j, A[i,j]) + size_i * sum(j, x[j]) + size_i * (size_j * 1)",
    ),
    (
        "y[k] = sum(i, b[k] * sum(j, (A[i,j] + x[j]) * z[j]))",
        "y[k] = sum(i, b[k] * sum(j, A[i,j] * z[j])) + size_i * (b[k] * sum(j, x[j] * z[j]))",
    ),
    (
        "y[i] = (A[i,j] + b[i]) * (A[i,j] + b[i])",
        "y[i] = sum(j, A[i,j] * A[i,j]) + sum(j, A[i,j] * b[i]) "
        "+ (sum(j, b[i] * A[i,j]) + size_j * (b[i] * b[i]))",
    ),
)


def out(text: str, dtype: np.dtype[Any] = FLOAT) -> str:
    """The form with everything multiplied out that may be."""
    return to_text(form_of(text, dict.fromkeys("ABCbxyz", dtype)).best)


def form_of(text: str, dtypes: dict[str, np.dtype[Any]]) -> Forms:
    """The form where the longest is the cheapest."""

    known = problem(text, dtypes={name: dtype.name for name, dtype in dtypes.items()})
    sizes = Sizes.of(known.assignment, operands(known), Names(dtypes))
    rules = Rules(sizes, lambda _: 1.0)
    return cheapest_form(known.assignment, rules, lambda f: -len(to_text(f)), Effort(), True)


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_what_they_become(text: str, expected: str) -> None:
    assert out(text) == expected


KEPT = (
    "y[i] = (A[i,j] - B[i,j]) * x[j]",  # cancels
    "y[i] = (A[i,j] + -2 * B[i,j]) * x[j]",
    "y[i] = (A[i,j] + 1 - B[i,j]) * x[j]",
    "y[i] = x[i] * (b[i] + z[i])",  # nothing is summed
    "y[i] = (1 - x) * b[i] * sum(j, A[i,j])",  # numbers
    "y[i] = sum(j, A[i,j] + B[i,j])",  # one loop for both
    "y[i] = sum(j, A[i,j] - b[i])",
)


@pytest.mark.parametrize("text", KEPT)
def test_what_is_never_multiplied_out(text: str) -> None:
    assert out(text) == to_text(assignment(text))


def test_differences_of_integers_are_exact() -> None:
    text = "y[i] = (A[i,j] - B[i,j]) * x[j]"
    expected = "y[i] = sum(j, A[i,j] * x[j]) - sum(j, B[i,j] * x[j])"
    assert out(text, np.dtype("int32")) == expected


MIXED: tuple[dict[str, str], ...] = (
    {"A": "int8", "B": "int8", "x": "float64"},  # A + B wraps
    {"A": "float32", "B": "float32", "x": "float64"},  # A + B is rounded
    {"A": "float64", "B": "float32", "x": "float32"},  # B * x would be rounded
    {"A": "int64", "B": "int64", "x": "int64", "z": "float64"},  # wraps before it is divided
)


@pytest.mark.parametrize("dtypes", MIXED)
def test_parts_of_another_type_are_left(dtypes: dict[str, str]) -> None:
    known = {name: np.dtype(dtype) for name, dtype in dtypes.items()}
    text = "y[i] = (A[i,j] + B[i,j]) * x[j]" + (" / z[i]" if "z" in dtypes else "")
    assert form_of(text, known).other is None


@pytest.mark.parametrize("text", ["(B[l,i] + C[j,i]) * 300", "-2 * (B[l,i] + C[j,i])"])
def test_numbers_that_a_part_alone_has_no_room_for(text: str) -> None:
    known = {"B": np.dtype("u1"), "C": np.dtype("i4")}
    assert form_of(f"z[l] = {text}", known).other is None
    b, c = np.arange(12, dtype="u1").reshape(3, 4), np.ones((5, 4), "i4")
    expected = tp.evaluate_dense(f"z[l] = {text}", B=b, C=c)
    np.testing.assert_array_equal(tp.evaluate(f"z[l] = {text}", B=b, C=c), expected)


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = sum(j, -1 * (A[i,j] + d[j]))",
        "y[i] = sum(j, (A[i,j] + d[j]) * 1000)",
        "y[i] = d[i] * (-1 * (A[i,j] + d[i]))",
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_numbers_beside_a_part_that_has_no_room_for_them(text: str, dtype: str) -> None:
    matrix = sp.random_array((100, 100), density=0.05, format="csr", rng=np.random.default_rng(1))
    given_ = {"A": matrix, "d": np.arange(100).astype(dtype)}
    np.testing.assert_allclose(
        tp.evaluate(text, given_, **ALLOWED), tp.evaluate_dense(text, given_)
    )


# ---------------------------------------------------------------- plans


CHAIN = "y[i] = (A[i,j] * B[j,k] + C[i,k]) * x[k]"
CSRS = dict.fromkeys("ABC", "CSR")


def test_the_price_of_the_whole_plan_decides() -> None:
    known = problem(CHAIN, CSRS)
    made = plan(known)
    assert to_text(made.kernels[-1].problem.assignment) == (
        "y[i] = sum(j, A[i,j] * T[j]) + sum(k, C[i,k] * x[k])"
    )
    assert all(len(order) <= 2 for kernel in made.kernels for order in kernel.schedule.orders)
    (told,) = made.forms
    assert re.fullmatch(
        r"y: sums in products are multiplied out, about \S+ operations, as it is written \S+", told
    )
    assert made.rewritten


def test_what_costs_as_much_is_left_and_told() -> None:
    made = plan(problem("C[i,k] = (A[i,j] + B[i,j]) * D[j,k]", {"A": "CSR", "B": "CSR"}))
    assert len(made.kernels[-1].schedule.orders) == 1
    assert re.search(r"are left, about \S+ operations, multiplied out \S+", made.forms[0])
    assert not made.rewritten


def test_what_is_told_is_of_the_operands_as_large_as_they_are() -> None:
    (told,) = plan(problem(CHAIN, CSRS), dict.fromkeys("ijk", 4), dict.fromkeys("ABC", 4.0)).forms
    assert told.endswith("; planned for sizes of 64 and more")
    costs = re.findall(r"\d[\d.e+]*", told.partition(";")[0])
    assert len(costs) == 2
    assert all(float(cost) < 1000 for cost in costs)


def test_forms_are_compared_while_there_is_time() -> None:
    known = problem(CHAIN, CSRS)
    request = Request(known.result, effort=Effort(0.0))
    made = make_plan(known.assignment, operands(known), request, Options())
    assert not made.rewritten
    assert any("before all sums that may be were multiplied out" in cut for cut in made.cuts)


def test_differences_are_left_and_told() -> None:
    made = plan(problem("y[i] = (A[i,j] - B[i,j]) * x[j]", {"A": "CSR", "B": "CSR"}))
    (told,) = made.forms
    assert "A[i,j] - B[i,j] is not multiplied out: differences keep digits" in told


LEFT = (
    ("Y[i,c] = (A[i,j] - D[i,j]) * V[j,c]", 1e5, "and no form compared takes 3 times fewer"),
    (f"y[i] = {' * '.join(['(A[i,j] - m[j])'] * 4)}", 5e3, "and it would be a sum of more than 8"),
)


@pytest.mark.parametrize(("text", "nnz", "why"), LEFT)
def test_why_sparse_and_full_terms_are_left(text: str, nnz: float, why: str) -> None:
    dtype = "complex128" if "V" in text else "float64"  # no product of these in tiles
    known = problem(text, {"A": "CSR"}, dtypes=dict.fromkeys("ADVm", dtype))
    given_ = operands(known, nnz={"A": nnz})
    for seconds, reason in ((None, why), (0.0, "and no time was left to compare")):
        request = Request(known.result, effort=Effort(seconds), **ALLOWED)
        (told,) = make_plan(known.assignment, given_, request, Options()).forms
        assert f"differences keep digits that those of products lose, {reason}" in told


RANK_ONE = (
    "Y[i,c] = (A[i,j] - 0.1 * d[i] * d[j]) * V[j,c]",
    "Y[i,c] = (A[i,j] - d[j]) * V[j,c]",
    "s = d[i] * (A[i,j] - d[i] * d[j]) * d[j]",
    "y[i] = d[i] + (A[i,j] - B[i,j] - d[i] * d[j]) * d[j]",
    "Y[i,c] = (A[i,j] - d[i] * d[j]) * V[j,c] + (B[i,j] - d[i]) * V[j,c]",
)


@pytest.mark.parametrize("text", RANK_ONE)
def test_a_full_part_of_a_difference_is_never_formed(text: str) -> None:
    made = plan(problem(text, dict.fromkeys("AB", "CSR")))
    assert made.rewritten
    assert "also a difference, most of whose elements have nothing to cancel" in made.forms[-1]
    deep = 2 if "V" in text else 1  # loops of what is not sparse
    for kernel in made.kernels:
        stored = {name for name, type in kernel.problem.operands if not type.format.is_dense}
        terms = split_terms(kernel.problem.assignment.value)
        for term, order in zip(terms, kernel.schedule.orders, strict=True):
            assert len(order) <= deep or stored.intersection(a.tensor for a in accesses(term.body))


@pytest.mark.parametrize("text", RANK_ONE)
@pytest.mark.parametrize("stored", ["csr", "csc", "coo"])
def test_differences_multiplied_out_are_those_of_the_text(text: str, stored: str) -> None:

    rng = np.random.default_rng(2)
    known: dict[str, Any] = {
        name: sp.random_array((300, 300), density=0.01, format=stored, rng=rng) for name in "AB"
    }
    known |= {"d": rng.random(300), "V": rng.random((300, 3))}
    known["A"].data[::7] = 0.0
    used = {name: x for name, x in known.items() if f"{name}[" in text}
    if stored == "csr":  # copies of lists, which are sorted, count as well
        assert "also a difference" in tp.explain(text, used, frontier_budget=0, **ALLOWED)
    found, expected = tp.evaluate(text, used, **ALLOWED), tp.evaluate_dense(text, used)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


SHIFTED = (
    "v[j] = (A[i,j] + m[j]) * (A[i,j] + m[j])",
    "C[j,k] = (A[i,j] + m[j]) * (A[i,k] + m[k])",
    "s = (A[i,j] + c) * (A[i,j] + c)",
    "v[j] = sum(i, A[i,j] + m[j])",
    "y[i] = (A[i,j] + c) * (sum(k, (B[j,k] + m[j]) * m[k]) + c)",
)


@pytest.mark.parametrize("text", SHIFTED)
def test_what_has_not_the_index_of_a_sum_takes_no_loop_over_it(text: str) -> None:
    rng = np.random.default_rng(3)
    every: dict[str, Any] = {"m": rng.random(120), "c": 0.5}
    for name, rows in (("A", 800), ("B", 120)):
        every[name] = sp.random_array((rows, 120), density=0.01, format="csr", rng=rng)
    known = {name: every[name] for name in every if re.search(rf"\b{name}\b", text)}
    told = tp.explain(text, known, frontier_budget=0, **ALLOWED)
    assert re.search(r"^size      size_[ij] from [AB], of its mode [01]$", told, re.MULTILINE)
    assert "kernel    " + text not in told
    expected = tp.evaluate_dense(text, known)
    for _ in range(2):
        np.testing.assert_allclose(tp.evaluate(text, known, **ALLOWED), expected, rtol=1e-9)
    more = {**known, "A": sp.vstack([known["A"], known["A"][:-7]], format="csr")}
    expected = tp.evaluate_dense(text, more)
    np.testing.assert_allclose(tp.evaluate(text, more, **ALLOWED), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "v[j] = (A[i,j] - m[j]) * (A[i,j] - m[j])",
        "v[j] = sum(i, (A[i,j] - m[j]) * (A[i,j] - m[j])) / n",
    ],
)
def test_the_variance_of_a_full_column_keeps_its_digits(text: str) -> None:
    """Where all cancels: most of the matrix is sparse, but not that column."""
    matrix = sp.random_array((2000, 400), density=0.005, format="lil", rng=np.random.default_rng(4))
    matrix[:, [7]] = np.ones((2000, 1))
    matrix[:, [9]] = np.full((2000, 1), 1e5)
    a = matrix.tocsr()
    known = {"A": a, "m": np.asarray(a.mean(axis=0)).ravel(), "n": 2000.0}
    found = tp.evaluate(text, {name: known[name] for name in known if name in text})
    assert found.min() >= 0.0
    assert found[[7, 9]].max() <= 1e-15


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("y[i] = (d[i] * d[j] - x[i] * x[j]) * b[j]", 1e4),  # full ones cancel
        ("y[i] = (A[i,j] - B[i,j]) * d[j]", 1e4),  # sparse ones cancel
        ("y[i] = (A[i,j] - d[i] * d[j]) * b[j]", 4e5),  # too many have a counterpart
    ],
)
def test_differences_that_cancel_are_left(text: str, entries: float) -> None:
    made = plan(problem(text, dict.fromkeys("AB", "CSR")), None, dict.fromkeys("AB", entries))
    assert not made.rewritten
    assert "is not multiplied out: differences keep digits" in made.forms[0]


@pytest.mark.parametrize(
    "text",
    [
        "v[j] = (A[i,j] - m[j]) * w[i] / n",
        "v[j] = (A[i,j] - m[j]) * w[i] / d[j]",
        "v[j] = w[i] * (A[i,j] - m[j]) / sum(k, w[k]) + m[j]",
        "v[j] = m[j] / sum(k, m[j] * w[k])",
        "Y[j,f] = sum(i, m[j] * U[i,f]) / n",
    ],
)
def test_what_is_divided_takes_no_loops_over_all_elements(text: str) -> None:
    rng = np.random.default_rng(0)
    matrix = sp.random_array((2000, 1000), density=0.002, format="csr", rng=rng)
    every = {"A": matrix, "m": rng.random(1000), "w": rng.random(2000), "n": 2000.0}
    every |= {"d": rng.random(1000) + 1.0, "U": rng.random((2000, 4))}
    given_ = {name: every[name] for name in every if re.search(rf"\b{name}\b", text)}
    told = tp.explain(text, given_, frontier_budget=0, **ALLOWED)
    *firsts, last = re.findall(r"^(?:kernel|  computes) .*", told, re.MULTILINE)
    assert "sum(" not in last and not any(re.search(r"= m\b", line) for line in firsts)
    expected = tp.evaluate_dense(text, given_)
    np.testing.assert_allclose(tp.evaluate(text, given_, **ALLOWED), expected, 1e-9, 1e-12)


def test_full_parts_that_cancel_stay_together() -> None:
    rng = np.random.default_rng(5)
    known = {"A": sp.random_array((2000, 400), density=0.005, format="csr", rng=rng)}
    known |= {name: rng.random(400) for name in "mgx"}
    text = "y[i] = (A[i,j] - m[j] + g[j]) * x[j]"
    told = tp.explain(text, known, frontier_budget=0, **ALLOWED)
    assert "also a difference" in told
    assert re.search(
        r"^kernel .* sum\(\w, \(-A\[\w\] \+ B\[\w\]\) \* C\[\w\]\)$", told, re.MULTILINE
    )
    expected = (known["A"].toarray() - known["m"] + known["g"]) @ known["x"]
    np.testing.assert_allclose(tp.evaluate(text, known, **ALLOWED), expected)


CENTRED = (
    (
        "Y[i,c] = (A[i,j] - m[j] - r[i] + g) * V[j,c]",
        "Y[i,c] = sum(j, A[i,j] * V[j,c]) + T_1[c] - r[i] * T[c]",
    ),
    (
        "Y[j,c] = (g + A[i,j] - r[i] - m[j]) * U[i,c]",
        "Y[j,c] = sum(i, A[i,j] * U[i,c]) + T_1[c] - m[j] * T[c]",
    ),
)


@pytest.mark.parametrize(("text", "last"), CENTRED)
def test_full_parts_come_apart_where_each_has_an_index_of_its_own(text: str, last: str) -> None:
    """Doubly centred data has no loop over all elements: a column's mean is not a row's."""
    made = plan(problem(text, {"A": "CSR"}))
    assert to_text(made.kernels[-1].problem.assignment) == last
    rng = np.random.default_rng(7)
    every: dict[str, Any] = {
        "A": sp.random_array((2000, 500), density=0.01, format="csr", rng=rng),
        "V": rng.random((500, 3)),
        "U": rng.random((2000, 3)),
    }
    every |= {"m": rng.random(500), "x": rng.random(500), "r": rng.random(2000), "g": 0.3}
    known = {name: every[name] for name in every if re.search(rf"\b{name}\b", text)}
    found = tp.evaluate(text, known, **ALLOWED)
    np.testing.assert_allclose(found, tp.evaluate_dense(text, known), 1e-9, 1e-9)


@pytest.mark.parametrize(
    ("text", "together"),
    [
        (
            "y[i] = (A[i,j] - m[j] - r[i] + r[i] * m[j] + g) * x[j]",
            "sum(j, (r[i] * m[j] - m[j] + g - r[i]) * x[j])",
        ),
        (
            "y[i] = (A[i,j] - (m[j] - m[j] * g) - (r[i] - g)) * x[j]",
            "sum(j, (-m[j] + m[j] * g - r[i] + g) * x[j])",
        ),
        ("y[i] = (A[i,j] + (m[j] - r[i])) * x[j]", "sum(j, (m[j] - r[i]) * x[j])"),
    ],
)
def test_full_parts_that_may_be_nearly_equal_stay_together(text: str, together: str) -> None:
    made = plan(problem(text, {"A": "CSR"}))
    assert together in to_text(made.kernels[-1].problem.assignment)
    assert "also a difference, most of whose elements have nothing to cancel" in made.forms[0]


def test_sparse_parts_that_cancel_stay_together() -> None:
    made = plan(
        problem("y[i] = (A[i,j] - d[i] * d[j] - B[i,j]) * x[j]", dict.fromkeys("AB", "CSR"))
    )
    assert "(A[i,j] - B[i,j]) * x[j]" in to_text(made.kernels[-1].problem.assignment)


@pytest.mark.parametrize("schedule", ["reorder(i,k,j)", "parallelize(i)"])
def test_a_schedule_about_loops_is_about_those_of_the_text(schedule: str) -> None:
    made = plan(problem(CHAIN, CSRS), options=Options(schedule=Schedule.parse(schedule)))
    assert not made.rewritten


def test_a_schedule_about_nothing_leaves_the_choice() -> None:
    made = plan(problem(CHAIN, CSRS), options=Options(schedule=Schedule()))
    assert made.rewritten


def test_a_low_rank_part_is_never_formed() -> None:
    made = plan(problem("y[i] = (A[i,j] + u[i] * v[j]) * x[j]", {"A": "CSR"}))
    assert made.rewritten
    assert sum(order == ("i", "j") for k in made.kernels for order in k.schedule.orders) == 1


# ---------------------------------------------------------------- results


@pytest.fixture
def always() -> Iterator[None]:
    """Whatever it costs."""
    with planned_for(detour_gain=0.0):
        yield


TEXTS = (
    "y[i] = (A[i,j] * B[j,k] + C[i,k]) * x[k]",
    "y[i] = (A[i,j] + B[i,j]) * x[j]",
    "y[i] = x[i] + (A[i,j] + x[j]) * (B[i,j] + C[i,j])",
    "D[i,k] = (A[i,j] + B[i,j]) * C[j,k]",
    "D[i,k] = (A[i,j] * B[j,k] + C[i,k]) * A[i,k]",
    "s = (A[i,j] + B[i,j]) * (A[i,j] + C[i,j])",
    "y[i] = (A[i,j] - B[i,j]) * x[j] - (B[i,j] + 2) * x[j]",
    "y[i] = (A[i,j] + sum(k, B[i,k] * (C[k,j] + A[k,j]))) * x[j]",
    "v[j] = (A[i,j] + x[j]) * (B[i,j] + x[j])",
    "v[j] = sum(i, A[i,j] + x[j] + 1) + x[j]",
    "D[j,k] = (A[i,j] - x[j]) * (B[i,k] - x[k])",
    "y[i] = (A[i,j] + x[i]) * (sum(k, (B[j,k] + x[j]) * x[k]) + x[i])",
)
DTYPES = ("int8", "uint8", "int64", "float32", "float64", "complex64", "bool")
STORED = ("dd", "ds", "ds:1,0", "ss", "uq")


@pytest.mark.usefixtures("always")
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_results_are_those_of_the_text(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    dtype = data.draw(st.sampled_from(DTYPES if " - " not in text else DTYPES[:-1]))
    if dtype == "bool" and " 2" in text:
        dtype = "int8"
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    arrays: dict[str, Any] = {}
    for name in "ABC":
        entries = rng.integers(0, 5, (6, 6)) * (rng.random((6, 6)) < 0.5)
        arrays[name] = entries.astype(dtype)
    arrays["x"] = rng.integers(1, 5, 6).astype(dtype)
    read = {name: array for name, array in arrays.items() if name in text.partition(" = ")[2]}
    stored = {
        name: tp.tensor(array, format=data.draw(st.sampled_from(STORED)))
        if array.ndim == 2
        else array
        for name, array in read.items()
    }
    found = tp.evaluate(text, stored, **ALLOWED)
    expected = tp.evaluate_dense(text, read)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_is_fastest_by_hand_is_what_runs() -> None:
    """explain() says so of the kernels that ran."""
    rng = np.random.default_rng(1)

    given_: dict[str, Any] = {
        name: sp.random_array((300, 300), density=0.02, format="csr", rng=rng) for name in "ABC"
    }
    given_["x"] = rng.random(300)
    told = tp.explain(CHAIN, given_, frontier_budget=0, **ALLOWED)
    assert "sums      y: sums in products are multiplied out, about" in told
    A, B, C, x = (given_[name] for name in "ABCx")
    np.testing.assert_allclose(tp.evaluate(CHAIN, given_, **ALLOWED), A @ (B @ x) + C @ x)
    kernel = tp.compile(CHAIN, **dict.fromkeys("ABC", tp.CSR), x=tp.dense(1))
    again = tp.compile(
        CHAIN, **dict.fromkeys("ABC", tp.CSR), x=tp.dense(1), schedule=kernel.schedule
    )
    assert again.source == kernel.source


TWICE = (
    "y[k] = (A[i,k] + m[k]) * (sum(j, A[i,j] * x[j]) + s)",
    "y[k] = (A[i,k] - m[k]) * (sum(j, A[i,j] * x[j]) - s)",
    "y[k] = (A[i,k] + m[k]) * sum(j, (A[i,j] + m[j]) * x[j])",
    "y[k] = (A[i,k] - m[k]) * sum(j, (A[i,j] - m[j]) * x[j])",
    "y[k] = (A[i,k] + m[k]) * (A[i,j] + m[j]) * x[j]",
    "y[k] = x[j] * (A[i,j] - m[j]) * (A[i,k] - m[k])",
    "y[k] = (A[i,k] - m[k]) * (A[i,j] - m[j]) * x[j]",
)


@pytest.mark.parametrize("divided", ["", " / n", " / d[k]", " / (d[k] * n * n)"])
@pytest.mark.parametrize("text", TWICE)
def test_two_factors_of_sparse_and_full_terms_take_no_loops_over_all_elements(
    text: str, divided: str
) -> None:
    """Centred sparse data: the inner sum first, and that of the full term once for all rows."""
    made = plan(problem(text + divided, {"A": "CSR"}))
    (told,) = (form for form in made.forms if "are multiplied out, about" in form)
    mine, written = map(float, re.findall(r"[\d.]+e[+-]\d+", told))
    assert 8 * mine < written
    assert not any(form.startswith("A[") for form in made.forms)


@pytest.mark.parametrize("beside", ["", " / n", " - k[b]", " * q[b]"])
def test_what_is_left_of_a_difference_goes_over_entries(beside: str) -> None:
    """Cross-covariance: `sum(i, m[a] * (Z[i,b] - k[b]))` has no loop over all elements of Z."""
    rng = np.random.default_rng(0)
    X, Z = (sp.random_array((2000, n), density=0.01, format="csr", rng=rng) for n in (90, 70))
    text = f"C[a,b] = (X[i,a] - m[a]) * (Z[i,b] - k[b]){beside}"
    known = {"X": X, "Z": Z, "m": X.mean(0), "k": Z.mean(0), "n": 2000.0, "q": rng.random(70)}
    known = {name: known[name] for name in known if re.search(rf"\b{name}\b", text)}
    told = tp.explain(text, known, frontier_budget=0, **ALLOWED)
    assert "over entries alone, with what is between them counted" in told
    assert "also a difference" in told
    assert not re.search(r"^kernel .* sum\(\w, \(?\w+\[\w,\w\] - ", told, re.MULTILINE)
    (whole,) = (line for line in told.splitlines() if "operations, as it is written" in line)
    mine, written = map(float, re.findall(r"[\d.]+e[+-]\d+", whole))
    assert 50 * mine < written
    np.testing.assert_allclose(
        tp.evaluate(text, known, **ALLOWED), tp.evaluate_dense(text, known), 1e-9, 1e-9
    )


@pytest.mark.parametrize(
    "text",
    [
        "s = (X[i,a] - m[a]) * V[a,f] * (X[i,b] - m[b]) * V[b,f]",
        "s = sum(i, f, (X[i,a] - m[a]) * V[a,f] * (X[i,b] - m[b]) * V[b,f]) / n",
        "q[f] = (X[i,a] - m[a]) * V[a,f] * (X[i,b] - m[b]) * V[b,f]",
    ],
)
def test_sums_that_are_moved_into_a_factor_take_no_loops_of_their_own(text: str) -> None:
    """What is left of one difference beside the other, `sum(i, (X V - m V) * m[b])`, is summed
    where nothing else has its index, and what is in it is computed first as well."""
    rng = np.random.default_rng(0)
    matrix = sp.random_array((2000, 500), density=0.01, format="csr", rng=rng)
    every = {"X": matrix, "m": rng.random(500), "V": rng.random((500, 8)), "n": 2000.0}
    given_ = {name: every[name] for name in every if re.search(rf"\b{name}\b", text)}
    apart = {**ALLOWED, "forbid": ("fuse_epilogue",)}  # which makes elements where they are read
    told = tp.explain(text, given_, frontier_budget=0, **apart)
    assert "sums in products are multiplied out" in told
    assert not re.search(r"^kernel .*sum\([^)]*sum\(", told, re.MULTILINE)
    squares = ((matrix.toarray() - every["m"]) @ every["V"]) ** 2
    expected = squares.sum(0) if text.startswith("q") else squares.sum()
    found = tp.evaluate(text, given_, **ALLOWED)
    np.testing.assert_allclose(found, expected / 2000 if "n" in given_ else expected, rtol=1e-9)


SQUARED = (
    "s = v[a] * (X[i,a] - m[a]) * (X[i,b] - m[b]) * v[b]",
    "s = v[a] * (X[i,a] - m[a]) * (X[i,b] - m[b]) * v[b] / n",
    "s = (X[i,a] - m[a]) * V[a,f] * (X[i,b] - m[b]) * V[b,f]",
    "s = v[a] * (X[i,a] + m[a]) * (X[i,b] + m[b]) * v[b]",
)


@pytest.mark.parametrize("text", SQUARED)
def test_sums_that_are_equal_are_multiplied_out_by_themselves(text: str) -> None:
    """Squares of projections, `sum(i, (sum(a, X v) - sum(a, m v)) * (…))`: X is read
    once for each at most, for no term is left with both."""
    sizes = {"i": 20_000, "a": 1000, "b": 1000, "f": 8}
    made = plan(problem(text, {"X": "CSR"}), sizes, {"X": 300_000.0})
    types = [type for kernel in made.kernels for _, type in kernel.problem.operands]
    assert sum(not type.format.is_dense for type in types) <= 2
    assert all(len(all_indices(kernel.problem.assignment)) <= 3 for kernel in made.kernels)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("text", SQUARED)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
def test_numbers_of_sums_that_are_equal(text: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    matrix = sp.random_array(
        (40, 30), density=0.05, rng=rng, data_sampler=lambda size: rng.integers(1, 5, size)
    )
    every = {
        "X": matrix.astype(dtype).tocsr(),
        "V": rng.integers(0, 5, (30, 3)).astype(dtype),
        "n": 3.0,
    }
    every |= {name: rng.integers(-4, 5, 30).astype(dtype) for name in "mv"}
    given_ = {name: every[name] for name in every if re.search(rf"\b{name}\b", text)}
    found = tp.evaluate(text, given_, **ALLOWED)
    np.testing.assert_allclose(
        found, tp.evaluate_dense(text, given_), rtol=1e-5 if dtype == "float32" else 1e-12
    )


@pytest.mark.rotating(3)
@pytest.mark.parametrize("text", TWICE)
@pytest.mark.parametrize("n", [0, 1, 30])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_numbers_of_two_factors_of_sparse_and_full_terms(text: str, n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    matrix = rng.integers(0, 5, (n, n)) * (rng.random((n, n)) < 0.05)
    given = {
        "A": sp.csr_array(matrix.astype(dtype)),
        "m": rng.integers(1, 5, 2 * n).astype(dtype)[::2],
        "x": rng.integers(1, 5, n).astype(dtype)[::-1],
        "s": np.dtype(dtype).type(2),
    }
    used = {access.tensor for access in accesses(assignment(text))}
    known = {name: value for name, value in given.items() if name in used}
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(
        np.asarray(tp.evaluate(text, known, **ALLOWED)),
        tp.evaluate_dense(text, known),
        rtol=tolerance,
    )


@pytest.mark.parametrize("wide", ["int32", "float64"])
@pytest.mark.parametrize(
    "text",
    [
        "y[i] = (A[i,j] - -n[j]) * x[j]",
        "y[i] = (A[i,j] - (n[j] + p[j])) * x[j]",
        "y[i] = (A[i,j] + (n[j] - p[j])) * x[j] / w[i]",
        "y[i] = -(A[i,j] + (n[j] + p[j])) * x[j]",
        "v[j] = (A[i,j] + (n[j] + p[j])) * w[i]",
        "v[j] = sum(i, A[i,j] + (n[j] + p[j]))",
        "v[j] = sum(i, A[i,j] * x[j] - -n[j]) * sum(i, A[i,j])",
        "s = sum(i, j, A[i,j] - (n[j] + p[j]))",
        "v[j] = (A[i,j] - (n[j] + p[j])) * (A[i,j] - (n[j] + p[j]))",
    ],
)
def test_sums_inside_sums_wrap_in_their_own_type(text: str, wide: str) -> None:
    rng = np.random.default_rng(6)
    stored = (rng.random((200, 80)) < 0.05) * rng.integers(-100, 200, (200, 80))
    every: dict[str, Any] = {"A": sp.csr_array(stored.astype(wide))}
    every |= {name: rng.integers(1, 200, 80).astype("uint8") for name in "np"}
    every |= {"x": rng.integers(1, 9, 80).astype(wide), "w": rng.integers(1, 9, 200).astype(wide)}
    known = {name: every[name] for name in every if re.search(rf"\b{name}\b", text)}
    expected = tp.evaluate_dense(text, known)
    np.testing.assert_allclose(tp.evaluate(text, known, **ALLOWED), expected)


DIVIDED = (
    ("y[i] = (A[i,j] + m[j]) / s[j] * x[j]", ()),
    ("y[i] = x[i] + (A[i,j] - m[j]) / s[j] * x[j]", ("cancellation",)),
    ("Y[i,c] = V[i,c] + (A[i,j] - m[j]) / s[j] * V[j,c]", ("cancellation",)),
)


@pytest.mark.parametrize(("text", "allow"), DIVIDED)
@pytest.mark.parametrize("special", [None, 0.0, np.nan, np.inf])
def test_sums_move_through_divisors(
    text: str, allow: tuple[str, ...], special: float | None
) -> None:
    """Standardised columns times a vector takes the entries alone; zeros divide as in the text."""
    rng = np.random.default_rng(0)
    known: dict[str, Any] = {"m": rng.random(300), "s": rng.random(300) + 1, "x": rng.random(300)}
    known |= {"A": sp.random_array((300, 300), density=0.01, rng=rng, format="csr")}
    known |= {"V": rng.random((300, 4))}
    given_ = {name: known[name] for name in known if f"{name}[" in text}
    if special is not None:
        given_["s"][7] = special
        given_["m"][7] = 0.0
    told = tp.explain(text, given_, allow=allow, frontier_budget=0)
    assert "corrected(" in told
    found, expected = tp.evaluate(text, given_, allow=allow), tp.evaluate_dense(text, given_)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    *first, last = re.findall("^kernel    (.*)", told, re.MULTILINE)
    assert last.startswith(f"{text[: text.index(' =')]} = corrected(")
    assert not any(re.search(r"\(A\[\w,\w\] [+-]", each) for each in first)
