"""Where the shorter operand leaps through the longer one without being told to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

RNG = np.random.default_rng(3)
LONG = sp.random_array((20, 3000), density=0.2, rng=RNG, format="csr")
SHORT = sp.random_array((20, 3000), density=0.002, rng=RNG, format="csr")
MIDDLE = sp.random_array((20, 3000), density=0.05, rng=RNG, format="csr")
X = RNG.random(3000)

LEAPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("C[i,j] = A[i,j] * B[i,j]", {"A": SHORT, "B": LONG}),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": LONG, "B": SHORT}),
    ("y[i] = A[i,j] * B[i,j] * x[j]", {"A": SHORT, "B": LONG, "x": X}),
    ("C[i,j] = A[i,j] * B[i,j] * D[i,j]", {"A": SHORT, "B": LONG, "D": MIDDLE}),
)
WALKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("C[i,j] = A[i,j] * B[i,j]", {"A": MIDDLE, "B": LONG}),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": SHORT, "B": LONG}),
    ("y[i] = A[i,j] * x[j]", {"A": SHORT, "x": X}),
)


def tensors(operands: dict[str, Any]) -> dict[str, Any]:
    return {n: tp.tensor(v) if sp.issparse(v) else v for n, v in operands.items()}


@pytest.mark.parametrize(("text", "operands"), LEAPS)
def test_the_longer_operand_is_searched(text: str, operands: dict[str, Any]) -> None:
    assert "gallop" in tp.explain(text, operands)
    for given in (operands, tensors(operands)):
        for threads in (1, 2):
            found = tp.evaluate(text, given, threads=threads)
            found = found.to_numpy() if isinstance(found, tp.Tensor) else found
            found = found.toarray() if sp.issparse(found) else found
            np.testing.assert_allclose(found, tp.evaluate_dense(text, operands))


@pytest.mark.parametrize(("text", "operands"), WALKS)
def test_other_loops_walk_all_their_operands(text: str, operands: dict[str, Any]) -> None:
    assert "gallop" not in tp.explain(text, operands)


def test_a_schedule_says_otherwise() -> None:
    text, operands = LEAPS[0]
    assert "gallop" not in tp.explain(text, operands, schedule="mergeby(j,TwoFinger)")
    assert "gallop" in tp.explain(text, operands, schedule="serial()")
    assert "gallop" not in tp.compile(text, A=tp.CSR, B=tp.CSR, C=tp.CSR).source


def test_temporaries_leap_too() -> None:
    text = "y[i] = sum(k, A[i,k] * B[i,k]) * sum(k, A[i,k] * D[i,k]) + z[i]"
    operands = {"A": SHORT, "B": LONG, "D": MIDDLE, "z": X[:20]}
    np.testing.assert_allclose(tp.evaluate(text, operands), tp.evaluate_dense(text, operands))
    assert "gallop" in tp.explain(text, operands)
