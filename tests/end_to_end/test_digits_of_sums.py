"""Sums of many numbers of 32 bits lose no digits with their number, whatever the loops are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

pytestmark = pytest.mark.user_flags  # lanes are part of it

N = 1200
EXACT = 1e-6
RNG = np.random.default_rng(0)
VALUES = {
    "random": RNG.random((N, N), dtype=np.float32),
    "equal": np.full((N, N), 0.1, np.float32),  # which round the same way each time
}
V, M = VALUES["random"][0].copy(), np.float32(0.3)

TEXTS: dict[str, Any] = {
    "s = a[i,j]": lambda a, v, m: a.sum(),
    "s = abs(a[i,j])": lambda a, v, m: np.abs(a).sum(),
    "s = max(a[i,j], m)": lambda a, v, m: np.maximum(a, m).sum(),
    "s = where(a[i,j] > m, a[i,j], m)": lambda a, v, m: np.where(a > m, a, m).sum(),
    "s = (a[i,j] - m)**2": lambda a, v, m: ((a - m) ** 2).sum(),
    "s = v[i] * a[i,j] * v[j]": lambda a, v, m: v @ a @ v,
    "s = mean(i, j, a[i,j])": lambda a, v, m: a.mean(),
    "s = sum(i, j, tanh(a[i,j] * a[i,j]))": lambda a, v, m: np.tanh(a * a).sum(),
    "y[i] = sum(j, a[i,j] * v[j])": lambda a, v, m: a @ v,
    "y[i] = sum(j, max(a[i,j], m))": lambda a, v, m: np.maximum(a, m).sum(1),
}
READERS = {
    "dense": np.asarray,
    "csr": sp.csr_array,
    "coo": sp.coo_array,
    "dss": lambda a: tp.tensor(a, format="ss"),
}


def _error(found: Any, expected: Any) -> float:
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    return float(np.max(np.abs(np.asarray(found, float) - expected)) / np.max(np.abs(expected)))


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("reader", ["dense", "csr"])
@pytest.mark.parametrize("text", TEXTS)
def test_sums_are_as_exact_as_numbers(text: str, reader: str, values: str) -> None:
    a = VALUES[values]
    given: dict[str, Any] = {"a": READERS[reader](a), "v": V, "m": M}
    given = {name: each for name, each in given.items() if f"{name}[" in text or name == "m"}
    if "m" not in text.split("=", 1)[1].replace("max", "").replace("sum", "").replace("mean", ""):
        del given["m"]
    expected = TEXTS[text](a.astype(float), V.astype(float), float(M))
    one, two = (tp.evaluate(text, given, threads=threads) for threads in (1, 2))
    assert _error(one, expected) < EXACT
    assert np.array_equal(np.asarray(one), np.asarray(two))


@pytest.mark.parametrize("reader", READERS)
def test_variances(reader: str) -> None:
    a = VALUES["random"].copy()
    a[a < 0.7] = 0
    expected, given = a.astype(float).var(), READERS[reader](a)
    assert _error(tp.evaluate("v = var(i, j, a[i,j])", a=given), expected) < EXACT
    assert _error(tp.tensor(given).var(), expected) < EXACT
    assert _error(tp.tensor(given).std(), expected**0.5) < EXACT


def test_of_a_long_vector() -> None:
    n = 10**6
    entries = np.full(n // 10, 0.1, np.float32)
    x = tp.Tensor.from_coo((np.arange(0, n, 10),), entries, (n,), format="s")
    part = float(np.float32(0.1))
    assert _error(x.sum(), part * n / 10) < EXACT
    assert _error(x.var(), part**2 * 0.1 - (part * 0.1) ** 2) < EXACT
    assert _error(np.linalg.norm(x), part * (n / 10) ** 0.5) < EXACT
    row = sp.csr_array(np.full((1, n // 10), 0.1, np.float32))
    assert _error(tp.evaluate("y[i] = A[i,j] * v[j]", A=row, v=entries), part**2 * n / 10) < EXACT


@pytest.mark.parametrize("dtype", ["complex64", "float16"])
def test_of_other_types(dtype: str) -> None:
    a = VALUES["equal"].astype(dtype)
    expected = a.astype(complex).sum()
    found = tp.evaluate("s = a[i,j]", a=a, dtype="complex64" if dtype[0] == "c" else "float32")
    lanes = dtype != "float16"  # which are converted one by one
    assert abs(found - expected) / abs(expected) < (EXACT if lanes else 4 * EXACT)


def test_in_functions() -> None:
    a = VALUES["equal"]
    wide = a.astype(float)
    found = tp.fuse(lambda a: (np.maximum(a, 0.05).sum(), np.where(a > 0.2, a, 0.1).sum()))(a)
    assert _error(found[0], wide.sum()) < EXACT
    assert _error(found[1], float(np.float32(0.1)) * a.size) < EXACT


WIDE = np.random.default_rng(1).random((5, 40_000), dtype=np.float32)
SCATTERED: dict[str, Any] = {
    "y[i] = a[i,j]": lambda a: a.sum(1),
    "y[i] = sqrt(sum(j, a[i,j]**2))": lambda a: np.sqrt((a**2).sum(1)),
    "y[i] = sum(j, max(a[i,j], 0.3))": lambda a: np.maximum(a, np.float32(0.3)).sum(1),
    "y[i] = var(j, a[i,j])": lambda a: a.var(1),
    "y[i] = sum(j, abs(a[i,j] - 0.5)) / 2": lambda a: np.abs(a - 0.5).sum(1) / 2,
}


@pytest.mark.parametrize("reader", [sp.csc_array, sp.coo_array, sp.csr_array])
@pytest.mark.parametrize("text", SCATTERED)
def test_sums_that_loops_scatter(text: str, reader: Any) -> None:
    a = reader(WIDE)
    one, two = (tp.evaluate(text, a=a, threads=threads) for threads in (1, 2))
    assert one.dtype == np.float32
    assert _error(one, SCATTERED[text](WIDE.astype(float))) < EXACT
    assert np.array_equal(one, two)


def test_short_sums_stay_in_their_type() -> None:
    a = sp.random_array((500, 500), density=0.01, format="csc", dtype=np.float32)
    assert "widen_scatter" not in tp.explain("y[i] = a[i,j]", a=a)
    wide = sp.csc_array(WIDE)
    assert "widen_scatter" in tp.explain("y[i] = a[i,j]", a=wide)
    assert "on the host" not in tp.explain("y[i] = a[i,j]", a=wide, target="cuda-emulated")


def test_comparisons_are_of_the_numbers_that_are_compared() -> None:
    """A float32 0.1 is another number in float64."""
    a = sp.csc_array(np.full((3, 1000), 0.1, np.float32))
    found = tp.evaluate("y[i] = sum(j, where(a[i,j] == 0.1, a[i,j], 0))", a=a)
    assert _error(found, np.full(3, 100.0)) < 1e-4
