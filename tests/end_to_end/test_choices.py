"""Choices, `where(c, a, b)`: which elements of results are stored, and in which loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import store, to_dense

# What is stored, of the patterns of A and B.
PATTERNS: dict[str, str] = {
    "where(A[i,j] > 0, x[j], 0)": "A",
    "where(stored(A[i,j]), x[j], 0)": "A",
    "where(A[i,j] > x[j], A[i,j], 0)": "A",
    "where(i > j, A[i,j], 0)": "A",
    "where(x[j] > 0, 0, A[i,j])": "A",
    "where(not A[i,j], 0, x[j])": "A",
    "where(A[i,j] > 0, B[i,j], 0)": "A & B",
    "where(A[i,j] > 0, exp(B[i,j]), 0)": "A",
    "where(A[i,j] > 0, 0, B[i,j])": "B",
    "where(A[i,j] < B[i,j], A[i,j], B[i,j])": "A | B",
    "where(x[j] > 0, A[i,j], B[i,j])": "A | B",
    "where(A[i,j] > 0, x[j], B[i,j])": "A | B",
    "where(x[j] > 0, where(A[i,j] > 0, x[i], 0), B[i,j])": "A | B",
}


def operands(text: str, size: int, count: int) -> dict[str, Any]:
    """Random operands of a text: sparse A and B, and a vector x, of halves of either sign."""
    random = np.random.default_rng(5)

    def sparse() -> sp.csr_array:
        rows, columns = random.integers(size, size=(2, count))
        values = random.choice([-1.0, -0.5, 0.5, 1.0], count)
        found = sp.coo_array((values, (rows, columns)), (size, size)).tocsr()
        found.sum_duplicates()
        found.data[found.data == 0] = 2
        return found

    every = {"A": sparse(), "B": sparse(), "x": random.choice([-1.0, 0.5, 1.0], size)}
    return {name: value for name, value in every.items() if f"{name}[" in text}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["CSR", "CSC", "COO", "ss", "sd"])
@pytest.mark.parametrize("text", PATTERNS)
def test_values_are_those_of_the_oracle(text: str, form: str) -> None:
    given = operands(text, 9, 25)
    stored = {n: v if v.ndim == 1 else store(v.toarray(), form) for n, v in given.items()}
    found = tp.evaluate(f"y[i,j] = {text}", stored)
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(f"y[i,j] = {text}", stored))


@pytest.mark.parametrize(("text", "pattern"), PATTERNS.items())
def test_results_store_what_operands_do(text: str, pattern: str) -> None:
    """Of 10^10 elements: a dense result would have no room."""
    given = operands(text, 100_000, 300)
    found = tp.evaluate(f"y[i,j] = {text}", given)
    places = {name: set(zip(*sp.coo_array(given[name]).coords, strict=True)) for name in given}
    assert set(zip(*sp.coo_array(found).coords, strict=True)) == eval(pattern, places)
    assert "result    dense" not in tp.explain(f"y[i,j] = {text}", given)


def test_sums_visit_the_condition_alone() -> None:
    given = operands("A[ x[", 100_000, 300)
    told = tp.explain("s[i] = sum(j, where(A[i,j] > 0, x[j], 0))", given)
    assert "j: A2\n" in told


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exp(A[i,j])", "it is 1.0 where nothing is stored"),
        ("A[i,j] < 1", "it is True where nothing is stored"),
        ("A[i,j] + x[j]", "operands without a fill value"),
        ("where(A[i,j] > 0, A[i,j], x[j])", "operands without a fill value"),
    ],
)
def test_explain_says_why_a_result_is_dense(text: str, reason: str) -> None:
    told = tp.explain(f"y[i,j] = {text}", operands(text, 9, 25))
    assert f"result    dense, for {reason}" in told
