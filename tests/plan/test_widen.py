"""Sums in products of another type: which operands are read in the products' type, what stays as it
is written, and that numbers agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.language.formats import dense
from taco_py.language.problem import TensorType
from taco_py.planner.algebra import distribution as multiply_out
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.rules.forms import multiply_out as forms
from taco_py.planner.rules.forms.widen_sums import widened
from tests.machines import planned_for
from tests.problems import assignment

N = 24


def read_as(text: str, dtypes: dict[str, str]) -> dict[str, str]:
    """The operands that are read in another type than their own."""
    operands = {n: Operand(TensorType(dense(0), t), (), 1.0) for n, t in dtypes.items()}
    found = widened(assignment(text), operands).operands
    return {name: o.type.dtype for name, o in found.items() if o.type.stored}


CHAIN = "y[i] = A[i,j] * B[j,k] * x[k]"
SUM = "y[i] = (A[i,j] + B[i,j]) * x[j]"
I64, I32, F32, F64 = "int64", "int32", "float32", "float64"
BOTH = dict.fromkeys("AB", F64)

READ = (
    (CHAIN, (I64, I64, F64), BOTH),
    (CHAIN, (I64, I64, F32), {**BOTH, "x": F64}),
    (CHAIN, ("uint64", "uint64", F64), BOTH),
    (CHAIN, (F32, F32, F64), BOTH),
    (SUM, (I64, I64, F64), BOTH),
    (SUM, (F32, F32, F64), BOTH),
    (SUM, (I64, I32, F64), BOTH),  # converted to int64 anyway
    ("y[i] = (A[i,j] - B[i,j]) * x[j]", (F32, F32, F64), BOTH),
    ("y[i] = sum(j, A[i,j] + B[i,j]) / x[i]", (I64, I64, F64), BOTH),
    # each is converted by itself as it is written
    ("y[i] = A[i,j] * x[j] * B[i,j]", ("int8", "int8", F64), BOTH),
    # wraps, or loses digits that count
    (CHAIN, (I32, I32, F64), {}),
    (CHAIN, ("uint8", "int8", F32), {}),
    (CHAIN, ("bool", "bool", F64), {}),
    (SUM, (I32, "int8", F64), {}),
    ("y[i] = (A[i,j] - B[i,j]) * x[j]", (I64, I64, F64), {}),
    ("y[i] = (A[i,j] + -2 * B[i,j]) * x[j]", (I64, I64, F64), {}),
    ("y[i] = (B[i,j] + sum(k, A[i,k])) * x[j]", ("int8", I64, F64), {"B": F64}),
    # complex numbers are not made by kernels; nothing to be gained
    (SUM, (F64, F64, "complex128"), {}),
    (SUM, (F64, F64, F64), {}),
    ("y[i] = A[i,j] * x[j] + B[i,j]", (I64, I64, F64), {}),
    ("y[i] = x[i] * (A[i] + B[i])", (I64, I64, F64), {}),
    # read in its own type at another place
    ("y[i] = (A[i,j] + B[i,j]) * x[j] + sum(j, A[i,j])", (I64, I64, F64), {"B": F64}),
)


@pytest.mark.parametrize(("text", "types", "expected"), READ)
def test_what_is_read_as_what(text: str, types: tuple[str, ...], expected: dict[str, str]) -> None:
    assert read_as(text, dict(zip("ABx", types, strict=True))) == expected


def test_it_is_told() -> None:
    given_ = {"A": np.ones((N, N), I64), "x": np.ones(N)}
    told = tp.explain("y[i] = A[i,j] * A[j,k] * x[k]", given_, frontier_budget=0)
    assert "A[i,j] * A[j,k]) is computed in float64 like the product" in told
    assert "with A read as float64" in told


def test_what_stays_is_told_with_the_remedy() -> None:
    given_ = {"A": np.ones((N, N), I32), "x": np.ones(N)}
    told = tp.explain("y[i] = (A[i,j] + 1) * x[j]", given_, frontier_budget=0)
    assert "A[i,j] + 1 is computed in int32 by itself, as it is written" in told
    assert 'dtype="float64" computes all in one type' in told


def test_wide_integers_are_contracted_in_pairs() -> None:
    rng = np.random.default_rng(0)
    A = sp.random_array((2000, 2000), density=0.01, format="csr", rng=rng)
    A.data = rng.integers(1, 9, A.nnz)
    x = rng.random(2000)
    for text, expected in (
        ("y[i] = A[i,j] * A[j,k] * x[k]", A @ (A @ x)),
        ("y[i] = (A[i,j] + 1) * x[j]", A @ x + x.sum()),
        ("y[i] = (A[i,k] * A[k,j] + A[i,j]) * x[j]", A @ (A @ x) + A @ x),
    ):
        np.testing.assert_allclose(tp.evaluate(text, A=A, x=x), expected)
        told = tp.explain(text, A=A, x=x, frontier_budget=0)
        orders = [line for line in told.splitlines() if "loop order" in line]
        assert all(len(each.split(",")) <= 2 for line in orders for each in line.split(";"))


def test_a_difference_of_large_integers_is_exact() -> None:
    """Nanoseconds since 1970, which float64 has no room for."""
    t = np.datetime64("2026-01-01T00:00:00", "ns").astype(I64) + np.arange(N)
    y = tp.evaluate("y[i] = (t[j] - s[i]) * w[j]", t=t, s=t.copy(), w=np.ones(N))
    expected = (t[None, :] - t[:, None]).sum(axis=1)
    np.testing.assert_array_equal(y, expected)


WRAPPING = (
    "y[i] = sum(j, sum(k, A[i,j] * B[j,k] * x[k]))",
    "y[i] = sum(j, sum(k, A[i,j] * x[k] * B[j,k]))",
    "y[i] = A[i,j] * B[j,k] * x[k]",
    "y[i] = sum(l, sum(k, sum(j, A[i,j] * C[j,k] * B[k,l] * x[l])))",
    "y[i] = (A[i,j] + B[i,j]) * x[j]",
    "y[i] = (A[i,j] * B[i,j] + C[i,j]) * x[j]",
    "Y[i,k] = A[i,j] * B[i,j] * C[j,k] * x[k]",
    "y[i] = C[i,j] * (A[i,k] * B[k,j]) * x[j]",
)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("text", WRAPPING)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("real", ["float64", "complex128"])
def test_narrow_integers_wrap_as_numpys_do(text: str, dtype: str, sparse: bool, real: str) -> None:
    rng = np.random.default_rng(0)
    high = np.iinfo(dtype).max
    arrays: dict[str, Any] = {n: rng.integers(high // 2, high, (N, N)).astype(dtype) for n in "AB"}
    arrays["C"] = rng.random((N, N)).astype(real)
    arrays["x"] = rng.random(N).astype(real)
    used = {n: a for n, a in arrays.items() if f"{n}[" in text.partition("=")[2]}
    stored = {n: sp.csr_array(a) if sparse and a.ndim == 2 else a for n, a in used.items()}
    expected = tp.evaluate_dense(text, used)
    found: Any = tp.evaluate(text, stored)
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, expected, rtol=1e-9)


# ---------------------------------------------------------------- results

TEXTS = (
    "y[i] = A[i,j] * B[j,k] * x[k]",
    "Y[i,k] = A[i,j] * (B[j,k] + C[j,k]) * x[k]",
    "y[i] = (A[i,j] * B[j,k] + C[i,k]) * x[k]",
    "y[i] = x[i] - sum(j, z[j])",
    "y[i] = x[i] + (A[i,j] + 2) * z[j]",
    "y[i] = x[i] / (1 + sum(j, (A[i,j] + B[i,j]) * z[j]))",
    "y[i] = (A[i,j] + x[j]) * (B[i,j] + C[i,j])",
    "y[i] = (A[i,j] - z[j]) * x[j] - (B[i,j] + C[i,j]) * z[j]",
    "y[i] = sum(j, A[i,j] * z[j]) * x[i] / (1 + z[i] * z[i])",
    "s = x[i] * (A[i,j] + B[i,j] - x[i] * x[j]) * z[j]",
    "y[i] = sum(j, sum(k, A[i,j] * x[k] * B[j,k])) * z[i]",
    "Y[i,k] = sum(j, (A[i,j] + B[i,j]) * C[j,k]) - x[i]",
)
DTYPES = ("int8", "uint8", "int16", "int32", "int64", "uint64", "float32", "float64", "complex64")
STORED = ("dd", "ds", "ds:1,0", "ss", "uq")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever it costs."""
    monkeypatch.setattr(forms, "FAR_CHEAPER", 1e-9)
    monkeypatch.setattr(multiply_out, "FEWER_ELEMENTS", 1e-9)
    with planned_for(detour_gain=0.0):
        yield


@pytest.mark.usefixtures("always")
@settings(max_examples=16, deadline=None)
@given(data=st.data())
def test_results_are_those_of_the_text(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    arrays: dict[str, Any] = {}
    for name in "ABC":
        entries = rng.integers(0, 90, (6, 6)) * (rng.random((6, 6)) < 0.5)
        arrays[name] = entries.astype(data.draw(st.sampled_from(DTYPES)))
    for name in "xz":
        arrays[name] = rng.integers(1, 9, 6).astype(data.draw(st.sampled_from(DTYPES)))
    used = {n: a for n, a in arrays.items() if f"{n}[" in text.partition("=")[2]}
    stored = {
        n: tp.tensor(a, format=data.draw(st.sampled_from(STORED))) if a.ndim == 2 else a
        for n, a in used.items()
    }
    expected = np.asarray(tp.evaluate_dense(text, used))
    found = tp.evaluate(text, stored)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
    assert found.dtype == expected.dtype
    scale = float(np.abs(expected).max(initial=1))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * scale)
