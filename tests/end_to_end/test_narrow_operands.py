"""Sums of small integers have the type of `numpy.sum`, whatever the plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp

NARROW = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32")
OTHERS = ("int64", "uint64", "float32", "float64")
SHAPES = {"A": (7, 9), "B": (7, 9), "D": (9, 6), "x": (9,), "b": (7,), "c": ()}
TEXTS = (
    "d[i] = A[i,j]",
    "s = A[i,j]",
    "y[i] = A[i,j] * x[j]",
    "y[i] = A[i,j] * x[j] + b[i]",
    "y[i] = b[i] * sum(j, A[i,j])",
    "y[i] = b[i] + b[i] - A[i,j]",
    "C[i,k] = A[i,j] * D[j,k]",
    "C[i,j] = A[i,j] * B[i,j]",
    "C[i,j] = A[i,j] + B[i,j]",
    "C[i,j] = (A[i,j] + B[i,j]) + sum(k, A[i,k])",
    "C[i,j] = A[i,j] * sum(k, A[i,k] * B[j2,k] * A[j2,j])",
    "y[i] = sum(j, (A[i,j] + B[i,j]) * x[j])",
    "s = (b[i] + A[i,j] * x[j])**2",
    "y[i] = 300 * A[i,j]",
    "y[i] = c * A[i,j] * B[k,j] * b[k]",
    "t = A[i,k] * B[j,k] * A[i,l] * B[j,l]",
    "y[i] = sum(j, A[i,j]) * sum(k, B[i,k])",
    "y[i] = A[i,j] / sum(k, A[i,k])",
    "y[i] += A[i,j] * x[j]",
)


def values(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return rng.integers(-9, 9, shape).astype(dtype)
    limits = np.iinfo(dtype)
    large = rng.integers(max(limits.min, -(2**20)), min(limits.max, 2**20), shape)
    return (large * (rng.random(shape) < 0.6)).astype(dtype)


@given(
    st.sampled_from(TEXTS),
    st.fixed_dictionaries({name: st.sampled_from((*NARROW, *NARROW, *OTHERS)) for name in SHAPES}),
    st.sampled_from(("dense", "csr", "csc", "coo")),
    st.integers(0, 2**16),
)
@settings(max_examples=30, deadline=None)
def test_every_plan_gives_what_the_oracle_gives(
    text: str, dtypes: dict[str, str], form: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    dense = {n: values(dtypes[n], shape, rng) for n, shape in SHAPES.items() if f"{n}" in text}
    dense = {n: v for n, v in dense.items() if f"{n}[" in text.split("=", 1)[1] or n == "c"}
    if "c " not in text:
        dense.pop("c", None)
    if "+=" in text:
        dense["y"] = values(dtypes["b"], (7,), rng)
    given = {n: stored(v, form) for n, v in dense.items()}
    try:
        expected = tp.evaluate_dense(text, given)
    except tp.OperandTypeError:  # an operator that the types have not, or `y` that is no target
        with pytest.raises(tp.OperandTypeError):
            tp.evaluate(text, given)
        return
    for _ in range(2):  # the second time on the short way
        found = tp.evaluate(text, given)
        result = found.toarray() if sp.issparse(found) else np.asarray(found)
        assert result.dtype == expected.dtype
        scale = 1e-5 if expected.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(result, expected, rtol=scale, atol=1e-3)


def stored(array: Any, form: str) -> Any:
    return array if array.ndim != 2 or form == "dense" else sp.coo_array(array).asformat(form)


@pytest.mark.parametrize("dtype", NARROW)
def test_the_type_is_that_of_numpy(dtype: str) -> None:
    a = np.ones((300, 300), dtype)
    expected = np.sum(a, axis=1)
    for operand in (a, sp.csr_array(a), sp.csc_array(a), tp.tensor(a, format="ss")):
        found = tp.evaluate("d[i] = A[i,j]", A=operand)
        array = found.to_numpy() if isinstance(found, tp.Tensor) else found
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)


def test_products_are_computed_in_the_wide_type() -> None:
    a = np.full((4, 500), 100, np.int8)
    found = tp.evaluate("C[i,k] = A[i,j] * B[k,j]", A=a, B=a)
    assert found.dtype == np.int64 and (found == 500 * 100 * 100).all()


def test_an_explicit_dtype_wins() -> None:
    a = np.full((4, 500), 100, np.int8)
    assert tp.evaluate("d[i] = A[i,j]", A=a, dtype=np.int8).dtype == np.int8
    assert tp.evaluate("d[i] = A[i,j]", A=a, dtype=np.int16).dtype == np.int16
    assert tp.evaluate("d[i] = A[i,j]", A=a, dtype=float).dtype == float


def test_what_is_added_to_keeps_its_type() -> None:
    a = np.full((3, 300), 100, np.int8)
    y = np.zeros(3, np.int32)
    assert tp.evaluate("y[i] += A[i,j]", A=a, y=y).dtype == np.int32
    tp.evaluate("y[i] += A[i,j]", A=a, out=y)
    assert (y == 30000).all()
    small = np.zeros(3, np.int8)
    tp.evaluate("y[i] += A[i,j]", A=a, out=small)
    np.testing.assert_array_equal(small, np.full(3, 30000).astype(np.int8))
    assert tp.evaluate("y[i] += A[i,j]", A=a).dtype == np.int64


def test_compiled_kernels_read_an_operand_in_two_types() -> None:
    b = np.full((3, 200), 100, np.int8)
    text = "C[i,j] = (B[i,j] + B[i,j]) + sum(k, B[i,k])"
    expected = np.full((3, 200), (200 - 256) + 200 * 100)
    kernel = tp.compile(text, B="dd", dtypes="int8")
    for _ in range(2):
        np.testing.assert_array_equal(kernel(B=b), expected)
        np.testing.assert_array_equal(kernel(b), expected)
    np.testing.assert_array_equal(tp.evaluate(text, B=b), expected)
    np.testing.assert_array_equal(tp.evaluate_dense(text, B=b), expected)
    with pytest.raises(tp.OperandError, match="Expected an operand B"):
        kernel(A=b)


WRAPPING = [
    "y[i] = max(j, A[i,j] - 1)", "y[i] = min(j, A[i,j] - 1)", "y[i] = argmax(j, A[i,j] - 1)",
    "y[i] = max(j, A[i,j] * 2 - 1)", "y[i] = max(j, ~A[i,j])", "y[i] = sum(j, A[i,j] - 1)",
    "y[i] = sum(j, A[i,j] - 1 > 0)", "y[i] = any(j, A[i,j] - 1 > 0)",
    "y[i] = max(j, (A[i,j] - 1) / 2)", "y[i] = max(j, (A[i,j] - 1) // 2)",
    "y[i] = max(j, max(A[i,j] - 1, 7))", "y[i] = max(j, A[i,j] + 100 + 100)",
    "y[i,k] = min(j, A[i,j] - A[k,j] - 1)",
]  # fmt: skip


@pytest.mark.rotating(4)
@pytest.mark.parametrize("text", WRAPPING)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_what_is_absent_wraps_as_what_is_stored(text: str, dtype: str, form: str) -> None:
    values = np.array([[1, 0, 3], [0, 0, 0], [1, 2, 3], [0, 100, 0]], dtype)
    wanted = tp.evaluate_dense(text, A=values)
    found = tp.evaluate(text, A=sp.csr_array(values).asformat(form))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_numbers_of_texts_do_not_wrap() -> None:
    stored = sp.csr_array(np.array([[1, 0, 3]], np.uint8))
    for text in ("y[i] = max(j, A[i,j] - 256)", "y[i] = max(j, max(A[i,j], -1))"):
        with pytest.raises(OverflowError, match="Expected a literal from 0 to 255"):
            tp.evaluate(text, A=stored)


@pytest.mark.parametrize(
    "text", ["where(B[i,j] > 9, A[i,j] * 99, B[i,j] - 1)", "(A[i,j] > 9) * ~B[i,j]"]
)
def test_what_stands_beside_a_truth_is_read_in_the_type_of_the_sum(text: str) -> None:
    rng = np.random.default_rng(6)
    dense = {"A": values("int16", (7, 9), rng), "B": values("uint16", (7, 9), rng)}
    wanted = tp.evaluate_dense(f"y[i] = sum(j, {text})", dense)
    for form in ("dense", "csr"):
        found = tp.evaluate(
            f"y[i] = sum(j, {text})", {n: stored(v, form) for n, v in dense.items()}
        )
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
