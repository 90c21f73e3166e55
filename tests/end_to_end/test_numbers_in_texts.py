"""Numbers of a text beside infinities, NaN and zeros: stored elements follow IEEE arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

INF, NAN = np.inf, np.nan
X = np.array([[1.0, INF, NAN, 0.0], [-2.0, 0.0, -INF, 0.0]])

TEXTS: dict[str, str] = {
    "0 * x[i,j]": "0 * x", "x[i,j] * 0": "x * 0", "0 / x[i,j]": "0 / x", "x[i,j] / 0": "x / 0",
    "x[i,j] * (1 - 1)": "x * 0", "0 * x[i,j] + 1": "0 * x + 1", "x[i,j] + 0": "x + 0",
    "x[i,j] + inf": "x + np.inf", "x[i,j] - inf": "x - np.inf", "inf * x[i,j]": "x * np.inf",
    "x[i,j] * 0 == 0": "x * 0 == 0", "x[i,j] * -0.0": "x * -0.0", "-0.0 * x[i,j]": "x * -0.0",
    "where(x[i,j] > 0, 0.0, -0.0)": "np.where(x > 0, 0.0, -0.0)",
    "0 * x[i,j] * x[i,j]": "0 * x * x",
    "x[i,j] * 0 // 1": "x * 0 // 1", "0 % x[i,j]": "0 % x", "x[i,j]**0 * 0": "x**0 * 0",
}  # fmt: skip
"""What NumPy writes so."""


def _expected(text: str) -> Any:
    with np.errstate(all="ignore"):
        return eval(text, {"x": X, "np": np})


def _as_array(found: Any) -> Any:
    if isinstance(found, tp.Tensor):
        return found.to_numpy()
    return found.toarray() if sp.issparse(found) else np.asarray(found)


@pytest.mark.parametrize("text", TEXTS)
def test_of_dense_operands(text: str) -> None:
    expected = _expected(TEXTS[text])
    for found in (tp.evaluate(f"y[i,j] = {text}", x=X), tp.evaluate_dense(f"y[i,j] = {text}", x=X)):
        np.testing.assert_array_equal(found, expected)
        known = ~np.isnan(expected.astype(float))
        signs = np.signbit(np.asarray(found, float)), np.signbit(expected.astype(float))
        assert np.array_equal(signs[0][known], signs[1][known])


@pytest.mark.parametrize("form", ["ds", "ss", "sd"])
@pytest.mark.parametrize("text", TEXTS)
def test_what_a_sparse_operand_stores_is_computed_and_what_it_does_not_is_zero(
    text: str, form: str
) -> None:
    sparse = tp.tensor(X, format=form)
    places = tp.evaluate_dense("y[i,j] = stored(x[i,j])", x=sparse)
    found = _as_array(tp.evaluate(f"y[i,j] = {text}", x=sparse))
    np.testing.assert_array_equal(found, tp.evaluate_dense(f"y[i,j] = {text}", x=sparse))
    np.testing.assert_array_equal(found[places], _expected(TEXTS[text])[places])


def test_what_is_absent_is_zero_over_anything() -> None:
    sparse, d = sp.csr_array(X), np.array([INF, NAN, 0.0, INF])
    found = tp.evaluate("y[i,j] = A[i,j] * d[j]", A=sparse, d=d)
    assert found.nnz == sparse.nnz
    assert tp.evaluate("y[i,j] = 0 * A[i,j]", A=sparse).nnz == sparse.nnz
    assert (tp.evaluate("y[i,j] = A[i,j] * inf", A=sparse).toarray()[X == 0] == 0).all()


def test_a_number_beside_a_number() -> None:
    assert np.isnan(tp.evaluate("c = 0 * g", g=INF))
    assert tp.evaluate("c = 0 * g", g=2.0) == 0
