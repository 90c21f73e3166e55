"""Quotients and negations of products under sums: done to one factor, so that all contract."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.printer import to_text
from taco_py.planner.algebra.divisors import as_factors, divide_last
from taco_py.planner.algebra.quotients import open_products
from tests.problems import assignment, plan, problem


def opened(text: str, **dtypes: str) -> str:
    """The right-hand side with its operations moved, operands of float64 or as in `dtypes`."""
    whole = assignment(text)
    known = {a.tensor: np.dtype(dtypes.get(a.tensor, "float64")) for a in accesses(whole)}
    return to_text(open_products(whole.value, known))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the factor with all of the divisor's indices and the fewest others
        ("y[i] = d[i] * d[j] / m * x[j]", "sum(j, d[i] / m * d[j] * x[j])"),
        ("y[i] = A[i,j] * B[j,k] / 2 * x[k]", "sum(k, sum(j, A[i,j] * B[j,k]) * (x[k] / 2))"),
        (
            "y[i] = A[i,j] / d[i] * A[j,k] / d[j] * x[k]",
            "sum(k, sum(j, A[i,j] / d[i] * (A[j,k] / d[j])) * x[k])",
        ),
        # each factor of a divisor whose indices no factor has
        (
            "y[i] = A[i,j] * B[j,k] / (d[i] * d[k]) * x[k]",
            "sum(k, sum(j, A[i,j] / d[i] * B[j,k]) * (x[k] / d[k]))",
        ),
        (
            "y[i] = A[i,j] * B[j,k] / (d[i] * d[k] * m) * x[k]",
            "sum(k, sum(j, A[i,j] / d[i] * B[j,k]) * (x[k] / d[k] / m))",
        ),
        # of one factor that has not the divisor's indices
        ("y[i] = sum(j, d[i] * (x[j] / d[i]))", "sum(j, d[i] / d[i] * x[j])"),
        # through sums
        (
            "y[i] = sum(k, sum(j, A[i,j] * B[j,k]) * x[k] / d[i])",
            "sum(k, sum(j, A[i,j] / d[i] * B[j,k]) * x[k])",
        ),
        # negations
        ("y[i] = -(A[i,j] * B[j,k]) * x[k]", "sum(k, sum(j, A[i,j] * B[j,k]) * -x[k])"),
        (
            "y[i] = -(A[i,j] * B[j,k] / d[j]) * x[k]",
            "sum(k, sum(j, A[i,j] / d[j] * B[j,k]) * -x[k])",
        ),
        # computed divisors
        (
            "y[i] = A[i,j] * B[j,k] / (1 + d[i]) * x[k]",
            "sum(k, sum(j, A[i,j] / (1 + d[i]) * B[j,k]) * x[k])",
        ),
    ],
)
def test_the_operation_is_done_to_one_factor(text: str, expected: str) -> None:
    assert opened(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = sum(j, A[i,j] * x[j]) / d[i]",  # nothing is summed around it
        "y[i] = sum(j, A[i,j] / d[i] * x[j])",  # the numerator is one factor
        "y[i] = sum(j, sum(k, u[j] * v[k] / D[j,k]) * A[i,j])",  # no factor has its indices
        "y[i] = sum(j, sum(k, u[j] * v[k] / (D[j,k] * d[j])) * A[i,j])",
        "y[i] = sum(k, sum(j, A[i,j] / (d[i] * d[j]) * x[k]))",  # one factor has
        "y[i] = sum(j, 2 / (A[i,j] * x[j]))",  # a divisor is no factor
        "y[i] = sum(j, (A[i,j] + B[i,j]) / d[i])",
    ],
)
def test_what_is_left_as_it_is_written(text: str) -> None:
    assert opened(text) == to_text(assignment(text).value)


def test_products_of_integers_are_not_opened() -> None:
    """They would not wrap in the quotient's type."""
    text = "y[i] = A[i,j] * B[j,k] / d[i] * x[k]"
    written = to_text(assignment(text).value)
    assert opened(text, A="int8", B="int8") == written
    assert opened(text, A="int8") == "sum(k, sum(j, A[i,j] / d[i] * B[j,k]) * x[k])"
    negated = "sum(k, -sum(j, A[i,j] * B[j,k]) * x[k])"
    assert opened("y[i] = -(A[i,j] * B[j,k]) * x[k]", A="int8", B="int8") == negated
    assert opened(text, **dict.fromkeys("ABdx", "int8")) == written


@pytest.mark.parametrize("text", ["-(b[i] / c[i] * c[i])", "-(c[i] * (b[i] / c[i]))"])
def test_booleans_are_not_negated(text: str) -> None:
    """Their quotient is real, and may be."""
    b = np.array([True, False, True])
    found = tp.evaluate(f"s = sum(i, {text})", b=b, c=np.ones(3, bool))
    assert found == tp.evaluate_dense(f"s = sum(i, {text})", b=b, c=np.ones(3, bool)) == -2.0


def test_a_divisor_is_not_taken_out_of_the_sum_over_its_index() -> None:
    text = "y[i] = sum(k, sum(j, A[i,j] * B[j,k] / d[j]) * x[k])"
    assert opened(text) == "sum(k, sum(j, A[i,j] / d[j] * B[j,k]) * x[k])"


LAST = (
    ("y[i] = sum(j, x[j] * x[j] / d[i])", "sum(j, x[j] * x[j]) / d[i]"),
    ("y[i] = sum(j, (A[i,j] - x[j]) / d[i])", "sum(j, A[i,j] - x[j]) / d[i]"),
    ("y[i] = sum(j, x[j] / (d[i] * d[j]))", "sum(j, x[j] / d[j]) / d[i]"),
    ("y[i] = sum(j, x[j] * (d[j] / d[i]))", "sum(j, x[j] * d[j]) / d[i]"),
    ("y[i] = sum(j, x[j] / d[i] * (d[j] / m))", "sum(j, x[j] * d[j]) / d[i] / m"),
    ("s = sum(j, sum(k, x[j] * d[k] / d[j]))", "sum(j, sum(k, x[j] * d[k]) / d[j])"),
    ("y[i] = sum(j, -((A[i,j] - x[j]) / d[i]))", "-(sum(j, A[i,j] - x[j]) / d[i])"),
    # as it is written
    ("y[i] = sum(j, A[i,j] / d[i])", "sum(j, A[i,j] / d[i])"),  # 0 in an empty row, if d is 0 too
    ("y[i] = sum(j, x[j] / (d[i] + d[j]))", "sum(j, x[j] / (d[i] + d[j]))"),
    ("y[i] = sum(j, n[j] / d[i])", "sum(j, n[j] / d[i])"),  # integers would wrap
    ("y[i] = sum(j, n[j] * n[j] / d[i] * x[j])", "sum(j, n[j] * n[j] / d[i] * x[j])"),
    ("y[i] = sum(j, x[j] / (n[i] * n[j]))", "sum(j, x[j] / (n[i] * n[j]))"),
)


@pytest.mark.parametrize(("text", "expected"), LAST)
def test_what_is_divided_after_a_sum(text: str, expected: str) -> None:
    whole = assignment(text)
    known = {a.tensor: np.dtype("int8" if a.tensor == "n" else "float64") for a in accesses(whole)}
    assert to_text(divide_last(whole.value, known, lambda name: name != "A")) == expected


OWN = (
    ("y[j] = sum(i, x[j] / d[i])", "sum(i, x[j] * (1 / d[i]))"),
    ("y[j] = -sum(i, x[j] / (d[i] * x[j]))", "-sum(i, x[j] / x[j] * (1 / d[i]))"),
    ("y[j] = sum(i, sum(k, x[k] * x[j] / d[i]))", "sum(i, k, x[k] * x[j] * (1 / d[i]))"),
    ("s = sum(i, sum(j, 1 / (d[i] * d[j])))", "sum(i, j, 1 * (1 / d[i]) * (1 / d[j]))"),
    ("y[j] = sum(i, x[i] * (x[j] / d[i]))", "sum(i, x[i] * (x[j] * (1 / d[i])))"),
    ("y[j] = sum(i, x[j] / (d[i] + 1))", "sum(i, x[j] * (1 / (d[i] + 1)))"),
    # as it is written
    ("s = sum(i, 1 / d[i])", "sum(i, 1 / d[i])"),
    ("s = sum(i, m / d[i])", "sum(i, m / d[i])"),
    ("y[j] = sum(i, x[i] * x[j] / d[i])", "sum(i, x[i] * x[j] / d[i])"),
    ("y[j] = sum(i, x[j] / A[i,j])", "sum(i, x[j] / A[i,j])"),
    ("y[i] = sum(j, k, x[i] * x[k] / A[k,j])", "sum(j, k, x[i] * x[k] / A[k,j])"),  # sparse
    ("y[j] = sum(i, n[j] / n[i])", "sum(i, n[j] / n[i])"),  # of integers
)


@pytest.mark.parametrize(("text", "expected"), OWN)
def test_divisors_that_are_factors_of_their_own(text: str, expected: str) -> None:
    whole = assignment(text)
    known = {a.tensor: np.dtype("int8" if a.tensor == "n" else "float64") for a in accesses(whole)}
    assert to_text(as_factors(whole.value, known, lambda name: name != "A")) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(text for text, _ in LAST[:5]),
        "y[i] = sum(j, -((A[i,j] - x[j]) / d[i]))",
        "y[i] = sum(j, -(x[j] / d[j] / d[i]))",
        "y[i] = sum(j, (A[i,j] - x[j]) * (A[i,j] - x[j]) / d[i])",
        "y[i] = sum(j, A[i,j] * A[i,j] / d[i] - 2 * A[i,j] * x[j] / d[i] + x[j] * x[j] / d[i])",
        "y[i] = sum(j, A[i,j] + x[j] / d[i])",
        "y[i] = sum(j, A[i,j] + x[j] * d[i])",
        "y[i] = d[i] * sum(j, x[j] / d[i])",
        "y[i] = sum(j, x[j] * (x[j] / d[i] + d[j]))",
        *(text for text, _ in (*OWN[:3], *OWN[4:6])),
        "y[j] = sum(i, (A[i,j] - x[j]) / d[i])",
        "y[i] = sum(j, (A[i,j] + x[i]) / (d[i] * d[j]))",
        "y[j] = sum(i, (A[i,j] - x[j]) * (A[i,j] - x[j]) / d[i])",
    ],
)
def test_a_divisor_of_its_own_takes_no_loops_over_all_elements(text: str) -> None:
    for kernel in plan(problem(text, {"A": "CSR"})).kernels:
        stored = {name for name, type in kernel.problem.operands if not type.format.is_dense}
        terms = split_terms(kernel.problem.assignment.value)
        for term, order in zip(terms, kernel.schedule.orders, strict=True):
            sparse = stored.intersection(access.tensor for access in accesses(term.body))
            assert len(order) <= 1 or sparse
    rng = np.random.default_rng(0)
    known: dict[str, Any] = {"x": rng.random(40), "d": rng.random(40) + 1, "m": np.array(3.0)}
    known["A"] = sp.random_array((40, 40), density=0.02, format="csr", rng=rng)
    read = {name: known[name] for name in {a.tensor for a in accesses(assignment(text).value)}}
    np.testing.assert_allclose(tp.evaluate(text, read), tp.evaluate_dense(text, read))


@pytest.mark.parametrize(
    "text",
    [
        "s = sum(i, sum(j, 1 / (d[i] * x[j])))",
        "s = sum(j, sum(i, x[j] * x[j] / d[i]))",
        "s = sum(i, sum(j, (A[i,j] - x[j]) * x[j] / (d[i] * d[j])))",
    ],
)
def test_sums_over_a_divisor_are_beside_those_over_what_it_divides(text: str) -> None:
    made = plan(problem(text, {"A": "CSR"}))
    values = [to_text(kernel.problem.assignment.value) for kernel in made.kernels]
    assert any(re.search(r"sum\((\w), 1 / \w\[\1\]\)", value) for value in values)
    rng = np.random.default_rng(0)
    known: dict[str, Any] = {"x": rng.random(40) + 1, "d": rng.random(30) + 1}
    if "A" in text:
        known["d"] = rng.random(40) + 1
        known["A"] = sp.random_array((40, 40), density=0.02, format="csr", rng=rng)
    np.testing.assert_allclose(tp.evaluate(text, known), tp.evaluate_dense(text, known))


CONTRACTED = (
    "y[i] = A[i,j] * B[j,k] / d[i] * x[k]",
    "y[i] = A[i,j] / d[i] * A[j,k] / d[j] * x[k]",
    "y[i] = A[i,j] * B[k,j] / d[j] * x[k]",
    "y[i] = A[i,j] * B[j,k] / (d[i] * d[k]) * x[k]",
    "y[i] = A[i,j] * B[j,k] / (d[i] * d[j] * d[k]) * x[k]",
    "y[i] = A[i,j] * B[j,k] * x[k] / (d[i] * d[k] * 3 * 2)",
    "y[i] = -(A[i,j] * B[j,k]) * x[k]",
    "y[i] = sum(k, sum(j, A[i,j] * B[j,k]) * x[k] / d[i])",
    "y[i] = x[i] - A[i,j] * B[j,k] / d[i] * x[k]",
)


@pytest.mark.parametrize("text", CONTRACTED)
def test_no_product_of_two_matrices_is_made(text: str) -> None:
    made = plan(problem(text, dict.fromkeys("AB", "CSR")))
    assert all(k.problem.result.format.order == 1 for k in made.kernels)


def test_a_difference_of_a_sparse_term_and_a_quotient_is_multiplied_out() -> None:
    """The modularity matrix."""
    made = plan(problem("y[i] = (A[i,j] - d[i] * d[j] / m) * x[j]", {"A": "CSR"}))
    deep = [k for k in made.kernels if len({*k.problem.assignment.target.indices}) > 1]
    assert not deep
    assert any("are multiplied out" in form for form in made.forms)
    assert not any("is not multiplied out" in form for form in made.forms)


EVERY = (
    *CONTRACTED,
    "y[i] = (A[i,j] - d[i] * d[j] / m) * x[j]",
    "s = x[i] * (A[i,j] - d[i] * d[j] / (2 * m)) * x[j]",
    "y[i] = d[i] * d[j] / 2 * x[j]",
    "y[i] = A[i,j] * B[j,k] / (d[i] * d[k]) * x[k]",
    "y[i] = -(A[i,j] * -(B[j,k] / d[k])) / m * x[k]",
    "O[i,k] = A[i,j] * B[j,l] / d[l] * -(B[l,k] * x[k])",
    "y[i] = sum(k, sum(j, A[i,j] * B[j,k]) / sum(j, d[j]) * x[k])",
    "y[i] = A[i,j] * B[j,k] * m / m * x[k]",
)
DTYPES = ("float64", "float32", "complex128", "int64", "int32", "int8", "uint8")


@st.composite
def operands(draw: st.DrawFn) -> dict[str, Any]:
    """Square matrices and vectors of one size, with divisors that are not zero."""
    n = draw(st.sampled_from((0, 1, 2, 7, 40)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    form = draw(st.sampled_from(("csr", "csc", "coo", "dense")))
    step = draw(st.sampled_from((1, 2, -1)))

    def values(shape: tuple[int, ...], low: int) -> Any:
        return rng.integers(low, 4, shape).astype(draw(st.sampled_from(DTYPES)))

    def matrix() -> Any:
        found = values((n, n), 0) * (rng.random((n, n)) < 0.3)
        return found if form == "dense" else sp.coo_array(found).asformat(form)

    def vector() -> Any:
        return np.repeat(values((n,), 1), abs(step))[::step]

    return {"A": matrix(), "B": matrix(), "d": vector(), "x": vector(), "m": values((), 1)[()]}


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(EVERY), operands())
def test_numbers_are_those_of_numpy(text: str, given: dict[str, Any]) -> None:
    used = {a.tensor for a in accesses(assignment(text))}
    known = {name: value for name, value in given.items() if name in used}
    found = tp.evaluate(text, known)
    wanted = tp.evaluate_dense(text, known)
    found = found.toarray() if sp.issparse(found) else np.asarray(found)
    assert found.dtype == wanted.dtype
    narrow = any(value.dtype == np.float32 for value in known.values())
    np.testing.assert_allclose(found, wanted, rtol=1e-3 if narrow else 1e-10, atol=1e-10)


@pytest.mark.parametrize("text", CONTRACTED)
def test_what_is_not_stored_is_zero_beside_a_zero_divisor(text: str) -> None:
    """A graph's isolated nodes, of degree 0."""
    matrix = sp.csr_array(np.diag([1.0, 0.0, 2.0, 0.0]))
    d, x = np.array([1.0, 0.0, 2.0, 0.0]), np.ones(4)
    used = {a.tensor for a in accesses(assignment(text))}
    known = {k: v for k, v in {"A": matrix, "B": matrix, "d": d, "x": x}.items() if k in used}
    found, wanted = tp.evaluate(text, known), tp.evaluate_dense(text, known)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(np.asarray(found), wanted)
