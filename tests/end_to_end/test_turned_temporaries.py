"""Products that are made in another order of modes than their readers want, at sizes where that is
chosen: each conversion is read as it was made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.prepare import prepare
from taco_py.calls.statements.read_text import parsed
from taco_py.planner.ir.verify import verify
from tests.corpus.formats import to_dense

N = 80
TEXTS = (
    "D[i,j] = sum(k, C[i,k] * Z[j,k]) / E[i]",
    "D[i,j] = sum(k, C[i,k] * Z[k,j]) / E[i]",
    "D[j,i] = sum(k, C[i,k] * Z[j,k]) / E[i]",
    "D[i,j] = sum(k, C[i,k] * Z[j,k])**2",
    "D[i,j] = E[i] / sum(k, C[i,k] * Z[j,k])",
    "D[i,j] = 1 / (1 + C[i,k] * Z[j,k])",
    "D[i,j] = Q[i,j] / sum(k, C[k,i] * Z[k,j])",
    "D[i,r] = (Q[i,j] + C[i,k] * Z[j,k]) * F[j,r]",
    "D[i,r] = (Q[i,j] - sum(k, C[i,k] * Z[j,k])) / E[i] * F[j,r]",
    "D[i,j] = (C[i,k] - Z[j,k])**2",
    "D[i,j] = sum(k, (C[i,k] - Z[j,k])**2) / E[i]",
    "y[i] = (C[i,k] * Z[j,k] - Q[i,j])**2",
    "D[i,j,l] = sum(k, P[i,k,l] * Z[j,k]) / E[i]",
)


def operands_of(text: str, form: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    every: dict[str, Any] = {name: rng.random((N, N)) for name in "CQ"}
    every |= {"E": rng.random(N) + 1, "F": rng.random((N, 8)), "P": rng.random((N, N, 5))}
    every["Z"] = sp.random_array((N, N), density=0.06, rng=rng, format=form)
    return {name: value for name, value in every.items() if f"{name}[" in text}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("text", TEXTS)
def test_temporaries_are_read_as_they_are_stored(text: str, form: str) -> None:
    operands = operands_of(text, form)
    verify(prepare(parsed(text), operands, CallOptions()).plan.program)
    expected = tp.evaluate_dense(text, operands)
    for _ in range(2):  # planned, and by the short way
        np.testing.assert_allclose(to_dense(tp.evaluate(text, operands)), expected, rtol=1e-9)
    out = np.zeros(expected.shape)
    assert tp.evaluate(text, operands, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-9)
