"""Truths in sums: what is of truths stays so, and what is added up are zeros and ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

A = np.array([[True, False, False], [True, True, True]])
B = np.array([[1.0, 2.0, 0.0], [np.inf, 0.0, 0.5]])
CASES: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("s = sum(i, j, ~A[i,j])", lambda a, b: (~a).sum()),
    ("y[i] = sum(j, ~A[i,j])", lambda a, b: (~a).sum(1)),
    ("s = max(~A[i,j])", lambda a, b: (~a).max()),
    ("y[i] = min(j, ~A[i,j])", lambda a, b: (~a).min(1)),
    ("y[i] = argmax(j, ~A[i,j])", lambda a, b: (~a).argmax(1)),
    ("R[i,j] = 2.5 * ~A[i,j]", lambda a, b: 2.5 * ~a),
    ("s = sum(i, j, ~A[i,j] % 7)", lambda a, b: (~a).sum()),
    ("s = sum(i, j, ~isfinite(B[i,j]))", lambda a, b: (~np.isfinite(b)).sum()),
    ("s = sum(i, j, ~(B[i,j] > 1))", lambda a, b: (~(b > 1)).sum()),
    ("s = max(i, prod(j, ~(B[i,j] > 2)))", lambda a, b: (~(b > 2)).prod(1).max()),
    ("s = sum(i, j, not A[i,j])", lambda a, b: (~a).sum()),
    ("y[i] = sum(j, not B[i,j])", lambda a, b: (b == 0).sum(1)),
    ("s = sum(i, j, A[i,j] and B[i,j])", lambda a, b: (a & (b != 0)).sum()),
    ("s = sum(i, j, not (A[i,j] or B[i,j] > 1))", lambda a, b: (~(a | (b > 1))).sum()),
    ("s = sum(i, j, A[i,j] == (B[i,j] > 1))", lambda a, b: (a == (b > 1)).sum()),
    ("s = sum(i, j, isfinite(A[i,j]))", lambda a, b: np.isfinite(a).sum()),
    ("s = sum(i, j, logical_xor(A[i,j], B[i,j]))", lambda a, b: np.logical_xor(a, b).sum()),
    ("R[i,j] = round(A[i,j])", lambda a, b: a),
    ("s = mean(i, j, not A[i,j])", lambda a, b: (~a).mean()),
    ("s = sum(i, all(j, A[i,j]))", lambda a, b: a.all(1).sum()),
    ("s = sum(i, any(j, B[i,j] > 1) + all(j, A[i,j]))",
     lambda a, b: (b > 1).any(1).sum() + a.all(1).sum()),
    ("s = any(j, B[i,j]) * 2", lambda a, b: 2 * (b.any())),
    ("s = all(j, A[i,j]) / 2", lambda a, b: a.sum(0).all() / 2),
    ("s = all(i, any(j, A[i,j]))", lambda a, b: a.any(1).all()),
)  # fmt: skip


@pytest.mark.rotating(3)
@pytest.mark.parametrize("form", ["dense", "csr", "coo", "tensor"])
@pytest.mark.parametrize(("text", "numpys"), CASES)
def test_they_are_numpys(text: str, numpys: Callable[[Any, Any], Any], form: str) -> None:
    given = {name: array for name, array in (("A", A), ("B", B)) if f"{name}[" in text}
    expected = np.asarray(numpys(A, B))
    if form == "tensor":
        given = {name: tp.tensor(array, format="ss") for name, array in given.items()}
    elif form != "dense":
        given = {name: sp.csr_array(array).asformat(form) for name, array in given.items()}
    for found in (tp.evaluate(text, given), tp.evaluate_dense(text, given)):
        np.testing.assert_array_equal(to_dense(found), expected)
        assert to_dense(found).dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["any", "all"])
def test_truths_reduced_over_an_outer_loop_are_numbers_where_that_is_asked(
    name: str, dtype: str
) -> None:
    """C has no `||=`: kernels write what it stands for."""
    x = np.random.default_rng(0).integers(0, 2, (3, 4, 5)).astype(float)
    found = tp.evaluate(f"p[i,k] = {name}(j, x[i,j,k])", x=x, dtype=dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, getattr(np, name)(x, axis=1).astype(dtype))


def test_truths_that_a_statement_makes_are_counted_by_another() -> None:
    x = np.random.default_rng(0).integers(0, 2, (3, 4, 5))
    found = tp.evaluate("p[i,k] = any(j, x[i,j,k]); s = sum(i, k, p[i,k])", x=x)
    assert found == np.any(x, axis=1).sum()


@pytest.mark.parametrize("dtype", ["int32", "int8", "bool"])
def test_a_condition_and_a_sum_read_an_operand_in_two_types(dtype: str) -> None:
    """The condition in its own type, the sum in int64."""
    x = np.random.default_rng(0).integers(-120, 120, (9, 8)).astype(dtype)
    text = "t[i,j] = x[i,j]; s = sum(i, j, where(t[i,j] != 0, t[i,j], t[i,j])); u = s + 1"
    s, u = tp.evaluate(text, x=x, outputs=("s", "u"))
    assert (s, u, s.dtype) == (x.sum(), x.sum() + 1, x.sum().dtype)


@pytest.mark.parametrize("kind", [np.asarray, sp.coo_array, tp.tensor])
@pytest.mark.parametrize("text", ["R[q[k]] += w[k] > 1", "R[q[k]] += logical_not(w[k])"])
def test_truths_that_meet_at_a_place_are_counted(text: str, kind: Any) -> None:
    w, q = np.array([3, 0, 2, 0, 5], dtype="uint16"), np.array([1, 2, 1, 2, 0])
    given = {"w": kind(w), "q": q}
    truths = w > 1 if ">" in text else w == 0
    wanted = np.bincount(q, truths, 3).astype(np.int64)
    for call in (tp.evaluate, tp.evaluate_dense):
        found = call(text, given, shape=(3,))
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, wanted)
