"""Entries with equal coordinates are one element, in every reduction and update."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

TEXTS = (
    "s = max(i, j, A[i,j])",
    "s = max(i, j, 2 * A[i,j])",
    "s = prod(i, j, A[i,j] + 1)",
    "s = any(i, j, A[i,j] > 3)",
    "s = all(j, i, A[i,j] < 4)",
    "s = count(i, j, A[i,j])",
    "s = max(i, j, A[i,j]) + sum(i, j, A[i,j])",
    "y[i] = max(j, A[i,j])",
    "y[j] = min(i, -A[i,j])",
    "y[i] = prod(j, A[i,j] + 1)",
    "y[i] = argmax(j, A[i,j])",
    "y[i] = var(j, A[i,j])",
    "y[i] max= A[i,j]",
    "y[i] min= -A[i,j]",
    "y[i] *= A[i,j] + 1",
    "y[i] |= A[i,j]",
    "y[i] ^= A[i,j]",
)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("dtype", ["float64", "uint16", "int8"])
@pytest.mark.parametrize("text", TEXTS)
def test_they_are_added_up_first(text: str, dtype: str) -> None:
    values, start = np.array([2, 1, 2, 3, 1]).astype(dtype), np.ones(4, dtype)
    coo = sp.coo_array((values, ([0, 1, 0, 3, 3], [0, 1, 0, 2, 2])), shape=(4, 5))
    indptr, columns = np.array([0, 2, 3, 3, 5]), np.array([0, 0, 1, 2, 2])
    csr = sp.csr_array((values[[0, 2, 1, 3, 4]], columns, indptr), shape=(4, 5))
    given = {"y": start} if "y[i] " in text and "= " in text and " = " not in text else {}
    try:
        wanted = tp.evaluate_dense(text, A=coo.toarray(), **given)
    except tp.OperandTypeError:
        return  # bits of floating numbers
    for stored in (coo, csr):
        found = to_dense(tp.evaluate(text, A=stored, **given))
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        np.testing.assert_allclose(tp.evaluate_dense(text, A=stored, **given), wanted, rtol=1e-6)
