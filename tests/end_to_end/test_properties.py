"""Random programs give what the oracle gives: any expression, shape, format, pattern and dtype.

Each example compiles a kernel, so there are few by default; `--examples 2000` searches for longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck
from hypothesis import strategies as st

import taco_py as tp
from tests.corpus.formats import to_dense
from tests.corpus.programs import (
    DTYPES,
    SIGNED,
    WRAPPING,
    Program,
    messy,
    programs,
    whole_numbers,
)


@pytest.fixture
def search(request: pytest.FixtureRequest) -> Callable[[Any, Callable[[Any], None]], None]:
    """Run a check on as many examples of a strategy as the command line asks for."""
    count = request.config.getoption("--examples")
    settings = hypothesis.settings(
        max_examples=count, deadline=None, suppress_health_check=list(HealthCheck)
    )

    def run(strategy: Any, check: Callable[[Any], None]) -> None:
        settings(hypothesis.given(strategy)(check))()

    return run


def agrees(program: Program) -> None:
    before = {name: snapshot(operand) for name, operand in program.stored.items()}
    result = to_dense(program.run())
    expected = program.expected()
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    if "/" in program.text and expected.dtype.kind in "fc":
        same_quotients(result, expected)
    else:
        np.testing.assert_array_equal(result, expected)
    assert {name: snapshot(operand) for name, operand in program.stored.items()} == before


def same_quotients(result: Any, expected: Any) -> None:
    """Equal up to rounding; of complex numbers, C and NumPy need not agree which part is not
    finite.
    """
    if expected.dtype.kind == "c":
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(result), finite)
        result, expected = np.where(finite, result, 0), np.where(finite, expected, 0)
    digits = np.finfo(expected.dtype).precision - 2
    np.testing.assert_allclose(result, expected, rtol=10.0**-digits, atol=10.0**-digits)


def snapshot(operand: Any) -> list[bytes]:
    """The bytes of every array of an operand."""
    if isinstance(operand, tp.Tensor):
        coordinates, values = operand.to_coo()
        return [coordinates.tobytes(), values.tobytes()]
    if sp.issparse(operand):
        names = ("data", "indices", "indptr", "coords")
        return [np.asarray(getattr(operand, n)).tobytes() for n in names if hasattr(operand, n)]
    return [np.asarray(operand).tobytes()]


def test_float_programs(search: Any) -> None:
    search(programs(), agrees)


def test_programs_of_signed_dtypes(search: Any) -> None:
    search(programs(dtypes=SIGNED), agrees)


def test_programs_of_all_dtypes(search: Any) -> None:
    search(programs(dtypes=DTYPES), agrees)


def test_programs_that_wrap_around(search: Any) -> None:
    search(programs(dtypes=WRAPPING, extreme=True), agrees)


def test_deep_programs(search: Any) -> None:
    search(programs(depth=5), agrees)


# A few kernels, each on many random operands: nothing is compiled anew, so this searches far more
# data.
KERNELS = (
    ("y[i] = A[i,j] * x[j]", {"A": ("i", "j"), "x": ("j",)}),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": ("i", "k"), "B": ("k", "j")}),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": ("i", "j"), "B": ("i", "j")}),
    ("R[i,j] = T[i,j,k] * x[k]", {"T": ("i", "j", "k"), "x": ("k",)}),
    ("s = A[i,j] * B[i,j]", {"A": ("i", "j"), "B": ("i", "j")}),
)


@st.composite
def data_for_kernels(draw: Any) -> Program:
    text, indices = draw(st.sampled_from(KERNELS))
    sizes = {index: draw(st.sampled_from((0, 1, 2, 7, 40))) for index in "ijk"}
    arrays, stored, forms = {}, {}, {}
    for place, (name, letters) in enumerate(indices.items()):
        random = np.random.default_rng(draw(st.integers(0, 1000)) + 10_000 * place)
        shape = tuple(sizes[letter] for letter in letters)
        pattern = draw(st.sampled_from(("zero", "full", "half", "few", "one row")))
        forms[name] = {1: "dense", 2: "CSR", 3: "COO"}[len(shape)]
        arrays[name] = whole_numbers(random, shape, "float64", pattern)
        stored[name] = messy(random, arrays[name], forms[name])
    return Program(text, arrays, stored, forms, None)


def test_many_operands_for_few_kernels(search: Any, request: pytest.FixtureRequest) -> None:
    for _ in range(3):
        search(data_for_kernels(), agrees)


# Two ways to write one computation.
EQUAL = (
    ("y[i] = A[i,j] * x[j] + B[i,j] * x[j]", "y[i] = (A[i,j] + B[i,j]) * x[j]"),
    ("C[i,j] = A[i,j] - B[i,j]", "C[i,j] = A[i,j] + (-B[i,j])"),
    ("y[i] = A[i,j] * x[j]", "y[i] = sum(j, x[j] * A[i,j])"),
    ("s = A[i,j] * B[i,j]", "s = sum(j, sum(i, B[i,j] * A[i,j]))"),
    ("C[i,j] = 2 * A[i,j]", "C[i,j] = A[i,j] + A[i,j]"),
)


@pytest.mark.parametrize(("one", "other"), EQUAL)
@pytest.mark.parametrize("form", ["CSR", "CSC", "COO", "ss"])
def test_equal_expressions_give_equal_results(one: str, other: str, form: str) -> None:
    random = np.random.default_rng(5)
    arrays = {name: whole_numbers(random, (5, 6), "float64", "half") for name in "AB"}
    stored = {name: messy(random, array, form) for name, array in arrays.items()}
    stored["x"] = whole_numbers(random, (6,), "float64", "full")

    def result(text: str) -> Any:
        used = {name: operand for name, operand in stored.items() if f"{name}[" in text}
        return to_dense(tp.evaluate(text, used))

    np.testing.assert_array_equal(result(one), result(other))
