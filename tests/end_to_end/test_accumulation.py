"""Results that are put together from a value and a reduction by the same operator."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

TEXTS = (
    "y[j] {0}= A[i,j] + x[i]",
    "y[i] {0}= A[i,j] * x[j]",
    "z[i] = {0}(y[i], {0}(j, A[i,j]))",
    "z[i] = {0}({0}(j, A[i,j] * x[j]), {0}(j, A[j,i] + y[j]))",
    "z[i] = {0}(y[i], {0}(j, A[i,j] * {0}(k, A[j,k])))",
    "C[i,k] {0}= A[i,j] * A[j,k]",
)


def operands(text, layout, seed=0):
    rng = np.random.default_rng(seed)
    A = sp.random_array((7, 7), density=0.3, rng=rng, format="csr")
    A.data -= 0.5
    given = {
        "A": A.toarray() if layout == "dense" else A.asformat(layout),
        "x": rng.random(7) - 0.5,
        "y": rng.random(7) - 0.5,
        "C": rng.random((7, 7)) - 0.5,
    }
    return {name: value for name, value in given.items() if f"{name}[" in text}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense"])
def test_values(text, layout):
    for operator, threads in itertools.product(("min", "max"), (1, 2)):
        written = text.format(operator)
        given = operands(written, layout)
        found = tp.evaluate(written, given, threads=threads)
        np.testing.assert_array_equal(found, tp.evaluate_dense(written, given))


def test_the_value_is_assigned_and_no_temporary_made():
    """d[j] min= …  is one kernel: the result begins as d, and what is reduced goes into it."""
    given = operands(TEXTS[0], "csr")
    shown = tp.explain(TEXTS[0].format("min"), given)
    assert "runs      1 kernel" in shown
    assert "y_new[j] = y[j]" in shown and "y_new[j] min=" in shown


def test_the_result_may_be_the_value_itself():
    written = TEXTS[0].format("min")
    given = operands(written, "csr")
    wanted = tp.evaluate_dense(written, given)
    assert tp.evaluate(written, given, out=given["y"]) is given["y"]
    np.testing.assert_array_equal(given["y"], wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32, bool])
def test_types(dtype):
    rng = np.random.default_rng(1)
    A = sp.csr_array(rng.integers(0, 2, (6, 6)).astype(dtype))
    y = rng.integers(0, 2, 6).astype(dtype)
    for written in ("y[j] max= A[i,j]", "y[j] min= A[i,j]", "y[i] min= A[i,j]"):
        found = tp.evaluate(written, A=A, y=y)
        wanted = tp.evaluate_dense(written, A=A, y=y)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_nan_is_kept():
    A = sp.csr_array(np.array([[np.nan, 0.0], [1.0, 2.0]]))
    for y in ([5.0, np.nan], [np.nan, -1.0]):
        found = tp.evaluate("y[j] min= A[i,j]", A=A, y=np.array(y))
        np.testing.assert_array_equal(found, np.minimum(y, [np.nan, 0.0]))


@pytest.mark.parametrize("text", ["y[j] min= u[i] * B[j,k]", "y[j] *= u[i] * B[j,k] * w[k]"])
def test_nothing_is_absent_from_a_reduction_of_nothing(text):
    """Rows of B lack entries, but no i is there: nothing is reduced."""
    B = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))
    for size in (0, 1, 3):
        given = {"u": np.arange(2.0, 2.0 + size), "B": B, "w": np.ones(2)}
        given = {name: each for name, each in given.items() if f"{name}[" in text}
        for y in ({}, {"y": np.array([-1.0, 0.5, 7.0])}):
            wanted = tp.evaluate_dense(text, **given, **y)
            np.testing.assert_array_equal(tp.evaluate(text, **given, **y), wanted)
