"""Where expressions have a value, by what tensors store: asked of the oracle, which keeps count."""

from __future__ import annotations

import doctest
from itertools import product

import numpy as np
import pytest

from taco_py.language.formats import COO, CSC, CSF, CSR, DCSR, Format, dense
from taco_py.language.legal import stored
from taco_py.language.legal.absent import is_everywhere, restricts
from taco_py.language.legal.stored import all_full, count_lists, is_full, is_full_problem, is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.oracle import evaluate_dense
from taco_py.language.problem import TensorType
from tests.problems import assignment, problem

FORMATS = (dense(0), dense(1), dense(2), CSR, CSC, DCSR, COO(2), CSF(3), Format.parse("dsd"))
# A and B are sparse and store nothing here; x and y are full.
EXPRESSIONS = (
    "x[i]", "A[i]", "-A[i]", "A[i] * x[i]", "x[i] * A[i]", "A[i] / x[i]", "x[i] / A[i]",
    "x[i] + y[i]", "A[i] + x[i]", "x[i] - A[i]", "A[i] + B[i]", "A[i] - B[i]", "A[i] * B[i]",
    "(A[i] + x[i]) * y[i]", "(A[i] + x[i]) * B[i]", "(A[i] + B[i]) * x[i]", "(A[i] + 1) / x[i]",
    "A[i] * x[i] + B[i] * y[i]", "A[i] * 2", "x[i] * 2", "x[i] * 0", "2 / A[i]",
    "where(A[i] > 0, x[i], 0)", "where(A[i] < 0, x[i], y[i])", "where(x[i] > 0, A[i], B[i])",
    "where(A[i] > 0, 0, B[i])", "where(A[i], B[i] + x[i], 0)", "where(x[i] > 0, A[i], y[i])",
    "(A[i] / B[i]) * x[i]", "x[i] / (A[i] + y[i])", "-(x[i] + A[i]) * 3",
)  # fmt: skip
SIZE = 4


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_formats_are_full_where_no_level_leaves_coordinates_out(form: Format) -> None:
    assert is_full(form) == (count_lists(form) == 0) == (not is_sparse(form))
    assert all_full([TensorType(form, "float64"), TensorType(dense(1), "int8")]) == is_full(form)


def test_a_problem_is_full_where_its_result_and_all_operands_are() -> None:
    text = "C[i,j] = A[i,j] + B[i,j]"
    for left, right, result in product(("dense", "CSR"), repeat=3):
        known = problem(text, {"A": left, "B": right}, result)
        assert is_full_problem(known) == ({left, right, result} == {"dense"})


def value(text: str, number: float) -> np.ndarray:  # type: ignore[type-arg]
    """An expression where A and B store nothing and all else is a number."""
    parsed = assignment(f"r[i] = {text}")
    names = {access.tensor for access in accesses(parsed.value)}
    arrays = {name: np.full(SIZE, 0.0 if name in "AB" else number) for name in names}
    places = {name: np.zeros(SIZE, bool) for name in names if name in "AB"}
    return evaluate_dense(parsed, arrays, stored=places)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_what_is_everywhere_has_a_value_where_sparse_operands_store_nothing(text: str) -> None:
    expr = assignment(f"r[i] = {text}").value
    present = value(f"({text}) / 0", 1.0) != 0  # what is absent is 0 even over 0
    assert bool(present.all()) == is_everywhere(expr, lambda name: name not in "AB")
    assert present.all() or not present.any()


@pytest.mark.parametrize("number", [1.0, np.inf, np.nan])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_what_an_access_restricts_is_zero_without_it(text: str, number: float) -> None:
    expr = assignment(f"r[i] = {text}").value
    if restricts(expr, Access("A", ("i",))):
        assert not value(text, number).any()


def test_products_are_restricted_by_factors_and_quotients_by_dividends() -> None:
    a = Access("A", ("i",))
    restricted = {text for text in EXPRESSIONS if restricts(assignment(f"r[i] = {text}").value, a)}
    assert {"A[i]", "-A[i]", "A[i] * x[i]", "A[i] / x[i]", "A[i] * B[i]"} <= restricted
    assert restricted.isdisjoint({"x[i] / A[i]", "A[i] + x[i]", "A[i] + B[i]", "2 / A[i]"})


def test_the_docstrings_are_true() -> None:
    tried = doctest.testmod(stored)
    assert tried.attempted > 0 and tried.failed == 0
