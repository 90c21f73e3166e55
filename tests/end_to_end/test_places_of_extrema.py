"""argmin and argmax: value and place in one loop, in every type, format and order of loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool")
FORMATS = ("dd", "dd:1,0", "ds", "ds:1,0", "ss", "uc", "sd", "dm")
TEXTS = {0: "a[j] = {}(i, X[i,j])", 1: "a[i] = {}(j, X[i,j])"}
CARRIED = "value and place in one loop"


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Few different values, so that there are ties; lines of one value, of NaN, with infinities."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        found = rng.random(shape) < 0.3
    else:
        found = rng.integers(0 if dtype[0] == "u" else -3, 4, shape).astype(dtype)
    found[rng.random(shape) < 0.4] = 0
    if dtype.startswith("float"):
        found[1::7] = -np.inf
        found[:, 2::7] = -np.inf
        found[2::5, 1::4] = np.inf
        found[3::6, 3::5] = np.nan
    found[4::9] = 0
    return found


def dense(result: Any) -> Any:
    return result.to_numpy() if isinstance(result, tp.Tensor) else np.asarray(result)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_places_are_those_of_numpy(dtype: str, format: str) -> None:
    x = numbers(dtype, (37, 150))
    operand = tp.Tensor.from_numpy(x, format)
    for axis, text in TEXTS.items():
        for name in ("argmin", "argmax"):
            want = getattr(x, name)(axis)
            for threads in (1, 2, 3):
                found = tp.evaluate(text.format(name), X=operand, threads=threads)
                np.testing.assert_array_equal(dense(found), want)


@pytest.mark.parametrize("size", (1, 63, 64, 65, 1023, 1025, 5000))
@pytest.mark.parametrize("dtype", ("float64", "int8"))
def test_places_at_the_edges_of_blocks(dtype: str, size: int) -> None:
    """The best element first, last, beside the edges, and several times."""
    for place in {0, size // 2, size - 1, min(63, size - 1), min(1024, size - 1)}:
        x = np.zeros((2, size), dtype)
        x[:, place:] = 1
        found = tp.evaluate("a[i] = argmax(j, X[i,j])", X=x)
        np.testing.assert_array_equal(found, x.argmax(1))
        across = np.ascontiguousarray(x.T)
        found = tp.evaluate("a[j] = argmax(i, X[i,j])", X=across)
        np.testing.assert_array_equal(found, across.argmax(0))


def test_places_beyond_those_that_a_narrow_type_counts() -> None:
    x = np.zeros((20_000, 3), np.int8)
    x[[9_000, 19_999, 4], [0, 1, 2]] = 1
    np.testing.assert_array_equal(
        tp.evaluate("a[j] = argmax(i, X[i,j])", X=x), np.array([9_000, 19_999, 4])
    )


@pytest.mark.parametrize("fill", (1.0, -1.0, np.nan, np.inf))
@pytest.mark.parametrize("format", ("ds", "ss", "ds:1,0"))
def test_what_is_not_stored_is_the_fill_value(format: str, fill: float) -> None:
    x = numbers("float64", (20, 30))
    x[np.random.default_rng(1).random(x.shape) < 0.5] = fill
    operand = tp.Tensor.from_numpy(x, format, fill_value=fill)
    for axis, text in TEXTS.items():
        for name in ("argmin", "argmax"):
            found = dense(tp.evaluate(text.format(name), X=operand))
            np.testing.assert_array_equal(found, getattr(x, name)(axis))


@pytest.mark.parametrize("sign", (1, -1))
def test_unsorted_entries_explicit_zeros_and_duplicates(sign: int) -> None:
    rows, columns = [0, 0, 0, 1, 1, 3], [4, 0, 4, 2, 1, 0]
    values = sign * np.array([1.0, 0.0, 2.0, 0.0, -1.0, 5.0])
    matrix = sp.coo_array((values, (rows, columns)), (5, 6))
    unsorted = sp.csr_array((values[:3], np.array([4, 0, 2]), np.array([0, 3])), (1, 6))
    for each in (matrix, matrix.tocsr(), matrix.tocsc(), unsorted):
        for axis, text in TEXTS.items():
            for name in ("argmin", "argmax"):
                found = dense(tp.evaluate(text.format(name), X=each))
                np.testing.assert_array_equal(found, getattr(each.toarray(), name)(axis))


def test_three_modes_and_vectors() -> None:
    x = numbers("float64", (5, 70, 6))
    texts = {0: "a[j,k] = argmax(i, X[i,j,k])", 1: "a[i,k] = argmax(j, X[i,j,k])",
             2: "a[i,j] = argmax(k, X[i,j,k])"}  # fmt: skip
    for format in ("ddd", "sss", "dss", "dsd"):
        operand = tp.Tensor.from_numpy(x, format)
        for axis, text in texts.items():
            np.testing.assert_array_equal(
                dense(tp.evaluate(text, X=operand, threads=2)), x.argmax(axis)
            )
    for format in ("d", "s"):
        for row in x[:, :, 0]:
            operand = tp.Tensor.from_numpy(row, format)
            assert int(tp.evaluate("a = argmin(i, X[i])", X=operand)) == row.argmin()


@pytest.mark.parametrize(
    "text",
    ("a[i] = argmax(j, X[i,j])", "a[j] = argmin(i, X[i,j])", "a[i] = argmax(j, X[i,j]) * 2 + i",
     "a = max(i, argmax(j, X[i,j]))", "a[i] = argmax(j, X[i,j] * X[i,j] + X[i,j])"),
)  # fmt: skip
def test_explain_says_that_values_and_places_are_carried(text: str) -> None:
    assert CARRIED in tp.explain(text, X=numbers("float64", (20, 30)))


@pytest.mark.parametrize("text", TEXTS.values())
def test_entries_alone_are_gone_through(text: str) -> None:
    """A matrix of 10^5 times 10^5: all places would take hours."""
    n = 100_000
    matrix = sp.random_array((n, n), density=2e-5, rng=np.random.default_rng(0)).tocsr()
    found = np.asarray(tp.evaluate(text.format("argmax"), X=matrix))
    axis = 0 if text.startswith("a[j]") else 1
    np.testing.assert_array_equal(found, np.ravel(sp.csr_matrix(matrix).argmax(axis)))


def test_operands_of_a_text_that_looks_alike_are_read() -> None:
    """Positions of the user's own are no numbers of an index."""
    x, index_j = numbers("int64", (9, 12)), np.arange(12)[::-1].copy()
    text = "a[i] = min(j, where(X[i,j] == max(k, X[i,k]) or X[i,j] != X[i,j], index_j[j], 12))"
    found = tp.evaluate(text, X=x, index_j=index_j)
    best = np.where(x == x.max(1, keepdims=True), index_j, 12).min(1)
    np.testing.assert_array_equal(found, best)
    found = tp.evaluate("a[i] = argmax(j, X[i,j]) + index_j[0] * 0", X=x, index_j=index_j)
    np.testing.assert_array_equal(found, x.argmax(1))


def test_in_traced_functions_and_of_tensors() -> None:
    x = numbers("float64", (30, 40))
    fused = tp.fuse(lambda y: np.argmax(y * 2, 1) + np.argmin(y, 1))
    np.testing.assert_array_equal(fused(x), (x * 2).argmax(1) + x.argmin(1))
    for format in ("dd", "ds"):
        operand = tp.Tensor.from_numpy(x, format)
        np.testing.assert_array_equal(dense(operand.argmax(0)), x.argmax(0))
