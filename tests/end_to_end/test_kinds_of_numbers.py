"""Truths that are counted, complex numbers over 0, 16-bit tensors with a fill value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import taco_py as tp

ml_dtypes = pytest.importorskip("ml_dtypes")

M = np.array([[True, True, False], [False, False, False]])

COUNTS: dict[str, Any] = {
    "~sum(j, M[i,j])": ~M.sum(1), "~count(j, M[i,j])": ~M.sum(1), "~-sum(j, M[i,j])": ~-M.sum(1),
    "~prod(j, M[i,j])": ~M.prod(1), "~max(j, M[i,j])": ~M.max(1), "~any(j, M[i,j])": ~M.any(1),
    "~(sum(j, M[i,j]) + 1)": ~(M.sum(1) + 1), "not sum(j, M[i,j])": ~(M.sum(1) != 0),
    "sum(j, M[i,j]) ^ ~sum(j, M[i,j])": M.sum(1) ^ ~M.sum(1), "sum(j, ~M[i,j])": (~M).sum(1),
}  # fmt: skip


@pytest.mark.parametrize("form", ["dd", "ds"])
@pytest.mark.parametrize("text", COUNTS)
def test_bits_of_counts_are_those_of_numbers(text: str, form: str) -> None:
    given = tp.tensor(M, format=form)
    for found in (tp.evaluate(f"y[i] = {text}", M=given), tp.evaluate_dense(f"y[i] = {text}", M=M)):
        found = found.to_numpy() if isinstance(found, tp.Tensor) else found
        assert found.dtype == COUNTS[text].dtype
        np.testing.assert_array_equal(found, COUNTS[text])


def test_bits_of_counts_in_sums_and_several_statements() -> None:
    total = tp.evaluate("s = sum(i, ~sum(j, M[i,j]))", M=M)
    assert total == (~M.sum(1)).sum() and total.dtype == np.int64
    _, y = tp.evaluate("c[i] = sum(j, M[i,j]); y[i] = ~c[i]", M=M, outputs=("c", "y"))
    np.testing.assert_array_equal(y, ~M.sum(1))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_quotients_of_complex_numbers(dtype: Any) -> None:
    z = np.array(
        [1 + 2j, 0, -1j, 3, complex(np.inf, 1), complex(np.nan, 1), -1, complex(-0.0, -0.0)]
    )
    w = np.array([0, complex(0, -0.0), complex(-0.0, 0), 2, 1j, np.inf])
    a, b = z.astype(dtype), w.astype(dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = a[:, None] / b[None]
        over_zero = a / 0
        calls = [
            (tp.evaluate("y[i,j] = a[i] / b[j]", a=a, b=b), expected),
            (tp.fuse(lambda a, b: a[:, None] / b[None])(a, b), expected),
            (tp.evaluate("y[i] = a[i] / 0", a=a), over_zero),
            (tp.evaluate("y[i] = a[i] / b[i]", a=a, b=np.zeros(len(a), b.real.dtype)), over_zero),
            ((tp.tensor(a) / 0).to_numpy(), over_zero),
        ]
    for found, other in calls:
        assert found.dtype == other.dtype
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(found), part(other), rtol=1e-6)


@pytest.mark.parametrize("form", ["ds", "ss", "sc", "dd"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_tensors_of_16_bits_with_a_fill_value(dtype: Any, form: str) -> None:
    d = np.array([[2.0, 2, 3.5, 2], [2, -1, 2, 2]]).astype(dtype)
    t = tp.tensor(d, format=form, fill_value=dtype(2))
    assert t.fill_value == dtype(2) and t.fill_value.dtype == d.dtype
    calls = {
        "itself": (t, d), "sum": (t + t, d + d), "product": (t * 2, d * 2), "negative": (-t, -d),
        "total": (t.sum(), d.sum()), "columns": (t.sum(0), d.sum(0)), "largest": (t.max(), d.max()),
        "truths": (t > 2, d > 2), "turned": (t.T, d.T), "row": (t[0], d[0]),
        "text": (tp.evaluate("Y[i,j] = A[i,j] + 1", A=t), d + dtype(1)),
        "einsum": (tp.einsum("ij->i", t), d.sum(1)),
        "wider": (t.astype("float32"), d.astype("float32")),
    }  # fmt: skip
    for name, (found, expected) in calls.items():
        found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
        assert found.dtype == np.asarray(expected).dtype, name
        np.testing.assert_array_equal(found.astype(float), np.asarray(expected).astype(float), name)


def test_numbers_are_weak_in_evaluate_dense_too() -> None:
    small = np.array([100], np.int8)
    for found in (
        tp.evaluate("y[i] = a[i] * b", a=small, b=2),
        tp.evaluate_dense("y[i] = a[i] * b", a=small, b=2),
    ):
        assert found.dtype == np.int8 and found[0] == -56
    half = np.array([1.5], ml_dtypes.bfloat16)
    assert tp.evaluate_dense("y[i] = a[i] * b", a=half, b=2).dtype == half.dtype
