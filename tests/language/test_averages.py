"""Means, variances and the places of extrema, against NumPy's and the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

RNG = np.random.default_rng(5)
ENTRIES = sp.random_array((7, 5), density=0.4, format="csr", rng=RNG).toarray() * 8 - 3
MATRIX = np.where(ENTRIES == -3, 0, np.round(ENTRIES))
CASES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("s = mean(i, j, A[i,j])", np.mean),
    ("s = mean(A[i,j])", np.mean),
    ("y[i] = mean(j, A[i,j])", lambda a: a.mean(1)),
    ("y[j] = mean(A[i,j])", lambda a: a.mean(0)),
    ("y[i] = mean(j, A[i,j] > 0)", lambda a: (a > 0).mean(1)),
    ("s = var(A[i,j])", np.var),
    ("y[j] = var(i, A[i,j])", lambda a: a.var(0)),
    ("y[i] = argmax(j, A[i,j])", lambda a: a.argmax(1)),
    ("y[j] = argmax(i, A[i,j])", lambda a: a.argmax(0)),
    ("y[i] = argmin(j, A[i,j])", lambda a: a.argmin(1)),
    ("Z[i,j] = (A[i,j] - mean(k, A[k,j])) / sqrt(var(k, A[k,j]) + 1)",
     lambda a: (a - a.mean(0)) / np.sqrt(a.var(0) + 1)),
)  # fmt: skip


@pytest.mark.rotating(2)
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("form", ["dense", "csr", "csc", "coo"])
@pytest.mark.parametrize(("text", "numpys"), CASES)
def test_they_are_numpys(text: str, numpys: Callable[[Any], Any], form: str, dtype: str) -> None:
    array = MATRIX.astype(dtype)
    given = array if form == "dense" else sp.csr_array(array).asformat(form)
    found, expected = tp.evaluate(text, A=given), numpys(array)
    np.testing.assert_allclose(to_dense(found), expected, rtol=1e-5, atol=1e-6)
    if not text.startswith("Z"):
        assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(
        to_dense(tp.evaluate_dense(text, A=given)), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("text", ["y[i] = argmax(j, A[i,j])", "y[i] = argmin(j, A[i,j])"])
def test_a_nan_is_the_first_of_all(text: str) -> None:
    array = np.array([[1.0, np.nan, 3.0], [0.0, 0.0, np.nan], [2.0, 2.0, 1.0]])
    numpys = np.argmax if "max" in text else np.argmin
    np.testing.assert_array_equal(tp.evaluate(text, A=array), numpys(array, axis=1))


def test_places_are_over_one_index() -> None:
    with pytest.raises(tp.NotationError, match="one index to find the place"):
        tp.evaluate("s = argmax(i, j, A[i,j])", A=MATRIX)
