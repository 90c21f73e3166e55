"""Derivatives of extrema of computed values: each is passed to the places where NumPy finds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

ROWS, COLUMNS, DEPTH = 30, 300, 16
RNG = np.random.default_rng(5)
U, Y, B = (
    RNG.normal(size=(ROWS, DEPTH)),
    RNG.normal(size=(COLUMNS, DEPTH)),
    RNG.normal(size=COLUMNS),
)
A = sp.random_array((ROWS, COLUMNS), density=0.1, rng=RNG).tocsr()
D = A.toarray()
TEXTS = {
    "y[u] = max(i, U[u,k] * Y[i,k])": (U @ Y.T, lambda at: Y[at]),
    "y[u] = max(i, U[u,k] * Y[i,k] + B[i])": (U @ Y.T + B, lambda at: Y[at]),
    "y[u] = min(i, sum(k, (U[u,k] - Y[i,k])**2))": (
        -((U[:, None] - Y) ** 2).sum(2), lambda at: 2 * (U - Y[at])),
    "y[u] = max(i, A[u,i] * U[u,k] * Y[i,k])": (
        D * (U @ Y.T), lambda at: D[np.arange(ROWS), at][:, None] * Y[at]),
}  # fmt: skip
"""Values whose extremum a text takes, and the derivative of one by U from its place."""


def used(text: str) -> dict[str, Any]:
    operands = {"U": U, "Y": Y, "B": B, "A": A}
    return {name: each for name, each in operands.items() if f"{name}[" in text}


@pytest.mark.parametrize("text", TEXTS)
def test_the_cotangent_goes_to_the_place_of_the_extremum(text: str) -> None:
    values, derivative = TEXTS[text]
    found = derivative(values.argmax(1))
    cotangent = RNG.normal(size=ROWS)
    got = tp.vjp(text, used(text), wrt="U")(cotangent)
    np.testing.assert_allclose(got, cotangent[:, None] * found, rtol=1e-9)
    direction = RNG.normal(size=U.shape)
    got = tp.jvp(text, used(text), wrt="U")(U=direction)
    np.testing.assert_allclose(got, (direction * found).sum(1), rtol=1e-9, atol=1e-12)


def test_equal_values_share_the_cotangent() -> None:
    twice = np.concatenate([Y, Y])
    text = "y[u] = max(i, U[u,k] * Y[i,k])"
    got = tp.vjp(text, U=U, Y=twice, wrt="Y")(np.ones(ROWS))
    np.testing.assert_allclose(got[:COLUMNS], got[COLUMNS:])
    np.testing.assert_allclose(got.sum(0), U.sum(0))


def test_below_a_sparse_factor_nothing_dense_is_formed() -> None:
    n = 2000
    wide = sp.random_array((n, n), density=0.001, rng=RNG).tocsr()
    left, right = RNG.normal(size=(n, 3)), RNG.normal(size=(n, 3))
    for text in (
        "y[i] = max(j, A[i,j] * P[i,k] * Q[j,k])", "y[i] = A[i,j] * max(k, P[i,k] * Q[j,k])",
    ):  # fmt: skip
        pullback = tp.vjp(text, A=wide, P=left, Q=right, wrt=("A", "P"))
        memory = next(x for x in pullback.explain(np.ones(n)).splitlines() if x[:6] == "memory")
        assert " MB" not in memory or float(memory.split(" MB")[0].split()[-1]) < 8, memory
