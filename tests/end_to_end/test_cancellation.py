"""Differences keep their digits: as exact as the loops of the text, over data built to cancel.

Rows that are nearly equal, columns that are full and constant, and means far larger than what lies
around them: there the sums of products lose the digits that products of differences keep.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import taco_py as tp
from tests.corpus.formats import to_dense

TEXTS = (
    "D[i,j] = (X[i,k] - Y[j,k]) * (X[i,k] - Y[j,k])",
    "D[i,j] = (X[i,k] - Z[j,k])**2",
    "D[i,j] = sum(k, (Z[j,k] - X[i,k]) * (Z[j,k] - X[i,k]))",
    "D[i,j] = (X[i,k] - Y[j,k] - c[k])**2",
    "D[i,j] = (X[i,k] + M[j,k])**2",
    "D[i,j] = 0.5 * sum(k, (X[i,k] + M[j,k]) * (X[i,k] + M[j,k]))",
    "d[i] = (X[i,k] - Y[i,k])**2",
    "d[i] = (X[i,k] + M[i,k])**2",
    "v[k] = (X[i,k] + n[k]) * (X[i,k] + n[k])",
    "v[k] = w[i] * (X[i,k] + n[k]) * (X[i,k] + n[k])",
    "v[k] = (X[i,k] - c[k]) * (X[i,k] - c[k])",
    "v[k] = w[i] * (X[i,k] - c[k]) * (X[i,k] - c[k])",
    "C[k,l] = (X[i,k] - c[k]) * (X[i,l] - c[l])",
    "y[i] = (X[i,k] - c[k]) * x[k]",
    "y[i] = (X[i,k] - u[i] * c[k]) * x[k]",
    "s = (X[i,k] - c[k]) * w[i] * (X[i,k] - c[k])",
)
N, K = 24, 40
TIMES, ROUNDINGS = 10.0, 16.0
"""Times the loops' own error, or roundings of the result's type where these have hardly any."""


def operands_of(text: str, kind: str, seed: int, dtype: str) -> dict[str, Any]:
    """Operands whose differences cancel in one of several ways."""
    rng = np.random.default_rng(seed)
    every: dict[str, Any] = {}
    every["X"] = (rng.random((N, K)) < 0.1) * (1 + rng.random((N, K)))
    if kind == "constant columns":
        every["X"][:, ::3] = 1000.0 * (1 + rng.random(len(range(0, K, 3))))
    if kind == "large means":
        every["X"] = np.where(every["X"] != 0, 1e4 + every["X"], 0)
    every["Y"] = every["X"] * (1 + 1e-3 * rng.integers(0, 2, (N, K)))
    every["Z"], every["M"] = every["Y"].copy(), -every["Y"]
    every["c"] = every["X"].max(axis=0)
    every["n"] = -every["c"]
    every["u"], every["w"], every["x"] = np.ones(N), rng.random(N), rng.random(K)
    used = {name: value.astype(dtype) for name, value in every.items() if f"{name}[" in text}
    return used


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(TEXTS),
    st.sampled_from(("near rows", "constant columns", "large means")),
    st.sampled_from(("float32", "float64")),
    st.sampled_from((sp.csr_array, sp.csc_array, sp.coo_array)),
    st.integers(0, 2**31),
)
def test_differences_are_as_exact_as_in_the_loops_of_the_text(
    text: str, kind: str, dtype: str, make: Any, seed: int
) -> None:
    operands = operands_of(text, kind, seed, dtype)
    exact = _exact(text, operands)
    stored = {name: make(v) if name in "XY" else v for name, v in operands.items()}
    found = to_dense(tp.evaluate(text, stored)).astype(float)
    written = np.asarray(tp.evaluate_dense(text, operands)).astype(float)
    with np.errstate(all="ignore"):
        scale = np.where(exact == 0, 1.0, np.abs(exact))
        ours, theirs = (np.abs(each - exact) / scale for each in (found, written))
    bound = TIMES * np.maximum(theirs.max(), ROUNDINGS * np.finfo(dtype).eps)
    assert ours.max() <= bound, (ours.max(), theirs.max())


def _exact(text: str, operands: dict[str, Any]) -> Any:
    """The value with more digits than the operands' type has."""
    wide = {name: value.astype("float64") for name, value in operands.items()}
    return np.asarray(tp.evaluate_dense(text, wide)).astype(float)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dense", [False, True])
def test_distances_of_rows_to_themselves_are_zero(dtype: str, dense: bool) -> None:
    rng = np.random.default_rng(0)
    rows = ((rng.random((60, 500)) < 0.02) * 1000 * (1 + rng.random((60, 500)))).astype(dtype)
    other = rows if dense else sp.csr_array(rows)
    text = "D[i,j] = (X[i,k] - Y[j,k])**2"
    assert "corrected" in tp.explain(text, X=sp.csr_array(rows), Y=other, frontier_budget=0)
    found = tp.evaluate(text, X=sp.csr_array(rows), Y=other)
    assert not np.diag(found).any()
    assert (found >= 0).all()


def test_digits_may_cancel_where_that_is_allowed() -> None:
    rng = np.random.default_rng(0)
    matrix = sp.random_array((2000, 2000), density=0.002, rng=rng, format="csr")
    known = {"A": matrix, "d": rng.random(2000), "x": rng.random(2000)}
    text = "y[i] = (A[i,j] - d[i] * d[j]) * x[j]"
    told = tp.explain(text, known, frontier_budget=0)
    assert 'allow=("cancellation",)' in "\n".join(told.splitlines()[:9])
    allowed = tp.explain(text, known, frontier_budget=0, allow="cancellation")
    assert "multiply_out" in "\n".join(allowed.splitlines()[:8])
    found = tp.evaluate(text, known, allow=("cancellation",))
    np.testing.assert_allclose(found, tp.evaluate(text, known), rtol=1e-9)
    with pytest.raises(tp.OperandTypeError, match="cancellation"):
        tp.evaluate(text, known, allow="cancelation")
