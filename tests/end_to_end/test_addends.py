"""Sums of full and sparse terms give what NumPy gives: any format, dtype, stride, thread count."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st

import taco_py as tp
from tests.corpus.formats import store, to_dense

TEXTS = (
    "C[i,j] = A[i,j] + D[i,j]",
    "C[i,j] = A[i,j] - D[i,j]",
    "C[i,j] = D[i,j] - A[i,j]",
    "C[i,j] = 2 * A[i,j] + D[i,j]",
    "C[i,j] = A[i,j] + B[i,j] + D[i,j]",
    "C[i,j] = A[i,j] - (B[i,j] - D[i,j])",
    "C[i,j] = D[i,j] + x[i] * A[i,j]",
    "C[i,j] = D[i,j] + A[i,j] * B[i,j]",
    "C[i,j] = x[j] - A[i,j] + B[i,j] * D[i,j]",
    "C[i,j] = (A[i,j] + D[i,j]) * x[j] + B[i,j]",
    "C[i,j] = D[i,j] + sum(k, A[i,k] * B[k,j]) + B[i,j]",
    "C[i,j] = D[i,j] + A[j,i]",
)
FORMATS = ("CSR", "CSC", "COO", "ss", "sd", "uc", "ss:1,0")
DTYPES = ("float64", "float32", "int64", "int8", "uint16", "complex128")
SIZE = 7


@st.composite
def sums(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any], int]:
    """A text, dense arrays, the same as they are stored, and a number of threads."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    text = draw(st.sampled_from(TEXTS))
    arrays: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    for name in "ABDx":
        if f"{name}[" not in text:
            continue
        dtype = draw(st.sampled_from(DTYPES))
        shape = (SIZE,) if name == "x" else (SIZE, SIZE)
        values = random.integers(0, 5, shape).astype(dtype)
        if name in "AB":
            share = draw(st.sampled_from((0.0, 0.2, 1.0)))
            values = np.where(random.random(shape) < share, values, 0).astype(dtype)
            stored[name] = store(values, draw(st.sampled_from(FORMATS)))
        else:
            stored[name] = strided(values, draw(st.sampled_from(("C", "F", "gaps", "back"))))
        arrays[name] = values
    return text, arrays, stored, draw(st.sampled_from((1, 2)))


def strided(values: Any, how: str) -> Any:
    """The same values, elsewhere in memory."""
    if how == "F":
        return np.asfortranarray(values)
    if how == "back":
        return values[::-1].copy()[::-1]
    if how == "gaps":
        wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    return values


def test_sums(request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--examples")
    settings = hypothesis.settings(
        max_examples=count, deadline=None, suppress_health_check=list(HealthCheck)
    )

    def agrees(given: tuple[str, dict[str, Any], dict[str, Any], int]) -> None:
        text, arrays, stored, threads = given
        found = to_dense(tp.evaluate(text, stored, threads=threads, format="dd"))
        expected = tp.evaluate_dense(text, arrays)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)

    settings(hypothesis.given(sums())(agrees))()


def test_sums_of_three_modes() -> None:
    random = np.random.default_rng(2)
    full = random.random((5, 6, 7))
    some = np.where(random.random(full.shape) < 0.1, full, 0)
    for form in ("sss", "dss", "dds", "ssd", "uqq", "COO", "sss:1,2,0"):
        for order in ("C", "F"):
            found = tp.evaluate(
                "C[i,j,k] = A[i,j,k] - D[i,j,k]",
                A=store(some, form),
                D=np.asarray(full, order=order),
            )
            np.testing.assert_array_equal(to_dense(found), some - full)
