"""Sums over the entries of a sparse operand, with the elements between them counted."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.names import Names
from taco_py.compiler.cost.effort import Effort
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.planner.algebra.distribution import Rules
from taco_py.planner.algebra.gaps import without_gaps
from taco_py.planner.ir.index_sizes import Sizes
from taco_py.planner.rules.forms.multiply_out import cheapest_form
from tests.problems import operands, problem

ALLOWED: dict[str, Any] = {"allow": ("cancellation",)}
"""Digits may cancel, so that differences are multiplied out where that is far cheaper."""

SQUARE = "(A[i,j] - m[j]) * (A[i,j] - m[j])"
VARIANCE = f"v[j] = {SQUARE}"

FORMS = (
    (
        VARIANCE,
        f"v[j] = sum(i, nonzero(A[i,j]) * ({SQUARE})) "
        "+ (size_i - sum(i, nonzero(A[i,j]))) * (-m[j] * -m[j])",
    ),
    (
        "s = sum(i, j, (A[i,j] - c) / d)",
        "s = sum(i, j, nonzero(A[i,j]) * ((A[i,j] - c) / d)) "
        "+ (size_i * size_j - sum(i, j, nonzero(A[i,j]))) * (-c / d)",
    ),
    (
        "s = m[j] - sum(i, k, (m[j] + A[i,j]) * B[j,k])",
        "s = sum(j, m[j]) - (sum(i, k, j, nonzero(A[i,j]) * ((m[j] + A[i,j]) * B[j,k])) "
        "+ sum(k, j, (size_i - sum(i, nonzero(A[i,j]))) * (m[j] * B[j,k])))",
    ),
    (
        "r[i] = (y[i] - A[i,j] * x[j]) * (A[i,j] * x[j] + y[i])",
        "r[i] = sum(j, nonzero(A[i,j]) * ((y[i] - A[i,j] * x[j]) * (A[i,j] * x[j] + y[i]))) "
        "+ (size_j - sum(j, nonzero(A[i,j]))) * (y[i] * y[i])",
    ),
    (
        "v[j] = sum(i, k, A[i,j] * z[k] - m[j])",
        "v[j] = sum(i, k, nonzero(A[i,j]) * (A[i,j] * z[k] - m[j])) "
        "+ (size_i - sum(i, nonzero(A[i,j]))) * size_k * -m[j]",
    ),
    (
        "v[j] = (A[i,j] - 1) * (1 - A[i,j])",
        "v[j] = sum(i, nonzero(A[i,j]) * ((A[i,j] - 1) * (1 - A[i,j]))) "
        "+ (size_i - sum(i, nonzero(A[i,j]))) * ((0 - 1) * (1 - 0))",
    ),
)


def form_of(text: str, dtypes: dict[str, str] | None = None, sized: bool = True) -> str:
    """The form over entries of A, which is sparse."""
    known = problem(text, {"A": "CSR"}, dtypes=dtypes)
    given_ = operands(known)
    sizes = Sizes.of(known.assignment, given_, Names(given_), sized)
    return to_text(without_gaps(known.assignment, sizes))


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_what_they_become(text: str, expected: str) -> None:
    assert form_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "v[j] = A[i,j] * (A[i,j] - m[j])",  # entries alone already
        "y[i] = (A[i,j] - m[j]) * (A[i,j] - m[j])",  # m has j
        "v[j] = (A[i,j] - m[j]) * (A[i,j] - m[j]) * w[i]",  # w has i
        "v[j] = m[j] / (A[i,j] - m[j])",  # it may be infinite
        "v[j] = sum(i, sum(k, A[i,k] * B[k,j]) - m[j])",
        "v[j] = (B[i,j] - m[j]) * (B[i,j] - m[j])",  # dense
    ],
)
def test_sums_that_are_left(text: str) -> None:
    assert "nonzero" not in form_of(text)


def test_types_in_which_elements_can_be_counted() -> None:
    single = dict.fromkeys("Am", "float32")
    assert "nonzero" in form_of(VARIANCE, single)
    assert "nonzero" not in form_of(VARIANCE, single, sized=False)
    assert "nonzero" in form_of(VARIANCE, sized=False)
    assert "nonzero" not in form_of(VARIANCE, dict.fromkeys("Am", "int32"))
    mixed = form_of(VARIANCE, {"A": "int8", "m": "float32"})
    assert "nonzero(A[i,j]) * 1 * (" in mixed
    assert "-m[j] * -m[j]" in mixed
    for narrow in ("int8", "bool"):
        assert "(0 - m[j]) * (0 - m[j])" in form_of(VARIANCE, {"m": narrow})


def test_nothing_is_multiplied_out_in_a_sum_over_entries() -> None:
    known = problem(f"v[j] = {SQUARE} + (C[j,k] + D[j,k]) * m[k]", {"A": "CSR"})
    given_ = operands(known)
    priced: list[str] = []

    def price(form: Assignment) -> float:
        priced.append(to_text(form))
        return 1.0 if "nonzero" in priced[-1] else 10.0

    sizes = Sizes.of(known.assignment, given_, Names(given_))
    forms = cheapest_form(known.assignment, Rules(sizes, lambda _: 1.0), price, Effort())
    assert forms.counts
    assert to_text(forms.best).count("nonzero") == 2
    assert not any("nonzero(A[i,j]) * (A[i,j] * A[i,j])" in text for text in priced)
    assert len([reason for reason in forms.reasons if reason.startswith("A[i,j] - m[j]")]) == 1


def sample(rows: int, columns: int, stored: str, dtype: str, seed: int) -> Any:
    """A sparse matrix with explicit zeros, and with duplicates where a list can have them."""
    rng = np.random.default_rng(seed)
    count = (rows * columns) // 4
    at = rng.integers(0, rows, count), rng.integers(0, columns, count)
    values = rng.integers(-3, 4, count).astype(dtype)
    if dtype.startswith("complex"):
        values = values * values.dtype.type(1 - 2j)
    return sp.coo_array((values, at), shape=(rows, columns)).asformat(stored)


@settings(max_examples=12)
@given(
    text=st.sampled_from(
        [
            VARIANCE,
            f"s = {SQUARE}",
            f"s = {SQUARE} / c",
            f"v[j] = m[j] - sum(i, {SQUARE}) / c",
            f"v[j] = {SQUARE} * (c + A[i,j]) - A[i,j]",
            "v[j] = sum(i, (A[i,j] - sum(k, A[k,j]) / c) * (A[i,j] - sum(k, A[k,j]) / c))",
            f"u[k] = sum(i, j, {SQUARE} * W[j,k])",
            "s = (A[i,j] - c) * (A[i,j] + c)",
            "v[j] = sum(i, k, A[i,j] * z[k] - m[j])",
            "r[i] = (y[i] - A[i,j] * m[j]) * (y[i] - A[i,j] * m[j]) / c",
            "s = y[i] * (c - A[i,j] * m[j]) * (A[i,j] - y[i])",
            "s = sum(j, k, (A[i,j] * z[k] - c) * (m[j] - A[i,j]))",
        ]
    ),
    shape=st.sampled_from([(0, 3), (1, 1), (60, 5), (300, 40)]),
    stored=st.sampled_from(["csr", "csc", "coo"]),
    dtypes=st.tuples(
        st.sampled_from(["int8", "float32", "float64", "complex64"]),
        st.sampled_from(["bool", "uint8", "float32", "float64", "complex128"]),
    ),
    seed=st.integers(0, 1000),
)
def test_they_agree_with_the_text(
    text: str, shape: tuple[int, int], stored: str, dtypes: tuple[str, str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    every: dict[str, Any] = {
        "A": sample(*shape, stored, dtypes[0], seed),
        "m": rng.integers(0, 3, shape[1]).astype(dtypes[1]),
        "c": np.array(2.5),
        "W": rng.random((shape[1], 3)),
        "z": rng.random(3),
        "y": rng.random(shape[0]),
    }
    known = {name: every[name] for name in every if re.search(rf"\b{name}\b", text)}
    expected = tp.evaluate_dense(text, known)
    found = tp.evaluate(text, known, **ALLOWED)
    assert found.dtype == expected.dtype
    rounding = 1e-4 if expected.dtype in (np.float32, np.complex64) else 1e-9
    np.testing.assert_allclose(found, expected, rounding, rounding * shape[0])


def test_variances_take_no_loops_over_all_elements() -> None:
    rng = np.random.default_rng(1)
    matrix = sp.random_array((3000, 200), density=0.01, format="csr", rng=rng)
    means = np.asarray(matrix.mean(axis=0)).ravel()
    told = tp.explain(VARIANCE, A=matrix, m=means, frontier_budget=0, **ALLOWED)
    assert "over entries alone, with what is between them counted" in told
    every = re.compile(r"^kernel .* sum\(\w, \(A\[", re.MULTILINE)
    assert not every.search(told)
    assert every.search(tp.explain(VARIANCE, A=matrix, m=means, schedule="reorder(i,j)"))
    for rows in (matrix, matrix[:2900]):  # the same plan, with another size and other counts
        expected = ((rows.toarray() - means) ** 2).sum(axis=0)
        np.testing.assert_allclose(
            tp.evaluate(VARIANCE, A=rows, m=means, **ALLOWED), expected, 1e-12
        )


SHARED = "(A[i,j] - m[j]) * (y[i] - c)"


@pytest.mark.parametrize(
    "text",
    [
        f"r[j] = sum(i, {SHARED}) * sum(i, {SHARED}) / sum(i, {SQUARE})",
        f"r[j] = sum(i, {SHARED}) * sum(i, {SHARED})"
        f" / (sum(i, {SQUARE}) * sum(i, (y[i] - c) * (y[i] - c)))",
        f"r[j] = sum(i, {SHARED.replace('-', '+')}) * sum(i, {SQUARE}) / sum(i, {SHARED})",
    ],
)
def test_variances_among_several_sums_are_counted(text: str) -> None:
    """Beside sums that are multiplied out, of which each alone leaves the others."""
    rng = np.random.default_rng(3)
    a = sp.random_array((3000, 200), density=0.01, format="csr", rng=rng)
    known = {"A": a, "m": a.mean(axis=0), "y": rng.random(3000), "c": 0.4}
    told = tp.explain(text, known, frontier_budget=0, **ALLOWED)
    assert "over entries alone, with what is between them counted" in told
    assert not re.search(r"^kernel .* sum\(\w, \(A\[\w,\w\]", told, re.MULTILINE)
    assert not re.search(r"^sums .*nonzero", told, re.MULTILINE)
    np.testing.assert_allclose(
        tp.evaluate(text, known, **ALLOWED), tp.evaluate_dense(text, known), 1e-8
    )


def test_what_is_not_a_number_stays() -> None:
    matrix = sp.random_array((500, 40), density=0.05, format="csr", rng=np.random.default_rng(2))
    matrix.data[7] = np.nan
    matrix.data[9] = np.inf
    means = np.ones(40)
    found = tp.evaluate(VARIANCE, A=matrix, m=means, **ALLOWED)
    np.testing.assert_allclose(found, ((matrix.toarray() - means) ** 2).sum(axis=0))
