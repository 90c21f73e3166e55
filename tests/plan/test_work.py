"""How much a kernel has to do at most, which decides whether threads are woken for it."""

from __future__ import annotations

import pytest

from taco_py.running.execute.work import Bound, bounds
from tests.problems import problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y[i,k] = A[i,j] * X[j,k]", [("A", "k")]),
        ("s = x[j] / A[i,j]", [("", "ji")]),
        ("y[i] = A[i,j] / x[j]", [("A", "")]),
        ("y[i] = A[i,j] * B[j,k] * x[k]", [("A", "k")]),
        ("y[i] = -A[i,j] + x[i]", [("A", ""), ("", "i")]),
        ("y[i] = (A[i,j] + B[i,j]) * x[j]", [("A", ""), ("B", "")]),
        ("y[i] = (A[i,j] - x[j]) * x[j]", [("", "ij")]),  # a difference with a full term
        ("y[i] = (A[i,j] - x[j]) * B[i,j]", [("B", "")]),
        ("y[i] = sum(j, A[i,j]) * sum(k, x[k])", [("A", ""), ("A", ""), ("", "ik")]),
        ("s = sum(i, x[i]) * sum(j, z[j])", [("", ""), ("", "i"), ("", "j")]),
        ("s = sum(i, x[i] * (z[i] + sum(j, A[i,j] * z[j])))", [("", "ij")]),
        ("s = sum(i, x[i] * (z[i] + sum(j, z[j])))", [("", "i"), ("", "j")]),
        ("s = sum(i, x[i] * z[i]) * sum(j, z[j])", [("", ""), ("", "i"), ("", "j")]),
        ("T[i,j] = A[i,j] * sum(k, U[i,k] * V[j,k])", [("A", ""), ("A", "k")]),
        ("T[i,j] = U[i,j] * sum(k, A[i,k] * V[j,k])", [("A", "j"), ("A", "j")]),
    ],
)
def test_what_bounds_the_iterations(text: str, expected: list[tuple[str, str]]) -> None:
    found = bounds(problem(text, {"A": "CSR", "B": "CSR"}))
    assert found == tuple(Bound(tensor, tuple(indices)) for tensor, indices in expected)
