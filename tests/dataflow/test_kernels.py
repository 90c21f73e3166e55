"""Kernels of slabs: what they compute, and how many there are of each function."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.printer import to_text
from tests.dataflow.random_problems import Values, text_of_pairs

Function = Callable[..., Any]


def softmax(X: Any) -> Any:
    e = np.exp(X - X.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(X: Any, g: Any, b: Any) -> Any:
    d = X - X.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b


def rms_norm(X: Any, g: Any) -> Any:
    return X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-5) * g


def over_columns(X: Any, g: Any) -> Any:
    d = X - X.mean(0)
    return d / np.sqrt((d * d).mean(0) + 1e-5) * g


def rows_and_columns(X: Any, Y: Any) -> Any:
    H = np.maximum(X + Y, 0)
    return H, H.sum(0), H.sum(1), H.sum()


def extrema(X: Any, Y: Any) -> Any:
    Z = X * Y
    return Z.max(0), Z.min(1), Z.max()


def instance_norm(V: Any) -> Any:
    d = V - V.mean((2, 3), keepdims=True)
    return np.maximum(d / np.sqrt((d * d).mean((2, 3), keepdims=True) + 1e-5), 0)


def batch_norm(V: Any, c: Any) -> Any:
    d = V - V.mean((0, 2, 3), keepdims=True)
    return d / np.sqrt((d * d).mean((0, 2, 3), keepdims=True) + 1e-5) * c[:, None, None]


def adam(X: Any, Y: Any, Z: Any) -> Any:
    m = 0.9 * X + 0.1 * Y
    v = 0.99 * Z * Z + 0.01 * Y * Y
    return m, v, X - 0.1 * m / (np.sqrt(v) + 1e-8)


def gini(X: Any) -> Any:
    return X / X.sum(0), np.abs(X[:, None] - X).sum((0, 1)) / X.mean(0)


def ranks(X: Any) -> Any:
    return X - X.mean(0), np.where(X[:, None] > X, 1.0, 0.0).sum(1)


def density(X: Any) -> Any:
    Z = X / X.max(0)
    return Z, np.exp(-((Z[:, None] - Z) ** 2)).sum(1)


FUNCTIONS: tuple[tuple[Function, int], ...] = (
    (softmax, 1), (layer_norm, 1), (rms_norm, 1), (over_columns, 1), (rows_and_columns, 1),
    (extrema, 1), (instance_norm, 1), (batch_norm, 1), (adam, 1),
)  # fmt: skip
"""Functions, and the kernels that each takes."""


def operands_of(function: Function, rng: np.random.Generator, dtype: str) -> dict[str, Any]:
    rows, columns, channels = rng.integers(1, 70, 3)
    shapes = {
        **dict.fromkeys("XYZ", (rows, columns)),
        "g": (columns,), "b": (columns,), "c": (channels,), "V": (3, channels, rows, columns),
    }  # fmt: skip
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return {name: rng.standard_normal(shapes[name]).astype(dtype) for name in names}


def kernels_run(function: Any, operands: dict[str, Any]) -> int:
    """How many kernels a call of a traced function runs."""
    lines = function.graph(**operands).explain().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("  runs"))


def pairs_of(found: Any, wanted: Any) -> list[tuple[Any, Any]]:
    """The results of two functions, each with its counterpart."""
    return [*zip(found, wanted, strict=True)] if isinstance(found, tuple) else [(found, wanted)]


def assert_near(found: Any, wanted: Any, dtype: str) -> None:
    error = 2e-5 if dtype == "float32" else 1e-10
    for one, other in pairs_of(found, wanted):
        scale = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(np.asarray(one, float), other, atol=error * scale, rtol=error)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("function", "kernels"), FUNCTIONS, ids=[f.__name__ for f, _ in FUNCTIONS])
def test_functions_of_slabs_are_as_numpy_computes_them(
    function: Function, kernels: int, dtype: str
) -> None:
    fused, rng = tp.fuse(function), np.random.default_rng(0)
    for _ in range(6):
        operands = operands_of(function, rng, dtype)
        wanted = function(**{name: array.astype(float) for name, array in operands.items()})
        for _ in range(2):  # planned, then by the fast path
            assert_near(fused(**operands), wanted, dtype)
    large = {n: np.resize(a, tuple(24 for _ in a.shape)) for n, a in operands.items()}
    assert kernels_run(fused, large) == kernels


def test_many_rows_and_long_ones_are_the_same_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((2, 300, 5000)).astype("float32")
    text = "H[i,j] = max(X[i,j] * Y[i,j], 0); r[i] = sum(j, H[i,j]); c[j] = sum(i, H[i,j])"
    first = tp.evaluate(text, X=X, Y=Y, outputs=("H", "r", "c"), threads=1)
    second = tp.evaluate(text, X=X, Y=Y, outputs=("H", "r", "c"), threads=3)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    H = np.maximum(X.astype(float) * Y, 0)
    assert_near(first, (H, H.sum(1), H.sum(0)), "float32")


def test_large_results_are_written_past_the_caches_into_any_memory() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((3000, 4096)).astype("float32")
    kernel = tp.compile("m[i] = max(j, X[i,j]); Y[i,j] = exp(X[i,j] - m[i])", X=X)
    assert "TACO_STREAM" in kernel.source
    wanted = np.exp(X - X.max(1, keepdims=True))
    memory = np.empty(X.size + 32, "float32")
    for lead in (0, 1, 7, 16):
        out = memory[lead : lead + X.size].reshape(X.shape)
        out[:] = -1
        kernel(X=X, out=out)
        np.testing.assert_allclose(out, wanted, rtol=1e-5)
    wide = np.full((3000, 4096 + 3), -1, "float32")
    kernel(X=X, out=wide[:, :4096])
    np.testing.assert_allclose(wide[:, :4096], wanted, rtol=1e-5)
    assert (wide[:, 4096:] == -1).all()


def test_large_results_that_begin_at_different_places_of_a_line_are_both_written() -> None:
    X = np.random.default_rng(3).random((2100, 4096), dtype="float32")
    text = "m[i] = max(j, X[i,j]); Y[i,j] = exp(X[i,j] - m[i]); Z[i,j] = X[i,j] * m[i]"
    most = X.max(1, keepdims=True)
    memory = [np.empty(X.size + 32, "float32") for _ in range(2)]
    for leads in ((0, 0), (0, 4), (3, 9)):
        parts = [array[n : n + X.size] for array, n in zip(memory, leads, strict=True)]
        Y, Z = (part.reshape(X.shape) for part in parts)
        tp.evaluate(text, X=X, outputs=("Y", "Z"), out={"Y": Y, "Z": Z})
        np.testing.assert_allclose(Y, np.exp(X - most), rtol=1e-5)
        np.testing.assert_array_equal(Z, X * most)


def test_elements_of_one_index_are_computed_in_blocks() -> None:
    x = np.arange(9_000_000.0)
    kernel = tp.compile("y[i] = 2 * x[i] + 1", x=x)
    np.testing.assert_array_equal(kernel(x=x), 2 * x + 1)
    np.testing.assert_array_equal(kernel(x=x[:5]), 2 * x[:5] + 1)


def test_rows_of_nothing_and_of_one_element() -> None:
    fused = tp.fuse(softmax)
    for shape in ((0, 5), (1, 1), (5, 1), (1, 40)):
        X = np.random.default_rng(3).standard_normal(shape)
        np.testing.assert_allclose(fused(X), softmax(X), rtol=1e-12)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_special_values_pass_through(special: float) -> None:
    X = np.random.default_rng(4).standard_normal((20, 50))
    X[3, 7] = X[19, 49] = special
    with np.errstate(invalid="ignore"):
        for function in (softmax, rows_and_columns, extrema):
            operands = {"X": X} if function is softmax else {"X": X, "Y": np.abs(X)}
            found, wanted = tp.fuse(function)(**operands), function(**operands)
            for one, other in pairs_of(found, wanted):
                np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("seed", range(24))
def test_random_values_are_those_of_each_statement_alone(seed: int) -> None:
    problem = Values(Random(1000 + seed), "float64").problem()
    assignments = [*(side.assignment for side in problem.side), problem.assignment]
    text = "; ".join(map(to_text, assignments)).replace("position", "")  # which no text calls
    targets = tuple(one.target.tensor for one in assignments)
    rng, sizes = np.random.default_rng(seed), {"i": 19, "j": 23, "k": 17}
    operands = {
        access.tensor: rng.uniform(-1, 1, tuple(sizes[index[0]] for index in access.indices))
        for one in assignments
        for access in accesses(one.value)
    }
    if "p" in operands:
        operands["p"] = np.arange(len(operands["p"]))
        operands["l"] = rng.integers(-2, 25, 19)
    found = tp.evaluate(text, operands, outputs=targets)
    alone = tp.evaluate(text, operands, outputs=targets, forbid=("fuse_slab", "fuse_temporary"))
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=text)


@pytest.mark.parametrize("seed", range(36))
def test_values_of_pairs_of_elements_are_right(seed: int) -> None:
    text, targets = text_of_pairs(Random(seed))
    rng = np.random.default_rng(seed)
    operands = {"x": rng.uniform(-1, 1, 7), "X": rng.uniform(-1, 1, (7, 5))}
    found = tp.evaluate(text, operands, outputs=targets)
    wanted = tp.evaluate_dense(text, operands, outputs=targets)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=text)


@pytest.mark.parametrize("function", [gini, ranks, density], ids=lambda f: f.__name__)
def test_normalized_values_stand_beside_values_of_pairs(function: Function) -> None:
    X = np.random.default_rng(5).random((9, 4))
    for found, wanted in pairs_of(tp.fuse(function)(X), function(X)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_threads_are_woken_for_the_passes_of_a_kernel_of_slabs() -> None:
    text = "m[i] = max(j, X[i,j]); e[i,j] = exp(X[i,j] - m[i]); z[i] = sum(j, e[i,j]); "
    text += "P[i,j] = e[i,j] / z[i]"
    counts = []
    for rows in (20, 40):
        said = tp.explain(text, X=np.ones((rows, 100)), threads=2)
        counts += [int(n) for n in re.findall(r"(\d+) iterations", said)]
    assert len(counts) == 2 and counts[1] == 2 * counts[0]
    assert 3 * 2000 <= counts[0] <= 4 * 2000  # passes: the maximum, the sum, the quotients
