"""Reshapes that split and merge modes: layouts of kernels, views of operands and results."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp

rng = np.random.default_rng(0)


def runs(function: Callable[..., Any], *args: Any) -> str:
    """Return how many kernels a function calls, and what NumPy computes of it."""
    graph = getattr(function, "graph", None) or tp.fuse(function).graph
    lines = graph(*args).explain().splitlines()
    return str(next(line for line in lines if line.startswith("runs"))).removeprefix("runs      ")


def instance_norm(x: Any) -> Any:
    y = x.reshape(x.shape[0], x.shape[1], -1)
    m, v = y.mean(-1, keepdims=True), y.var(-1, keepdims=True)
    return ((y - m) / np.sqrt(v + 1e-5)).reshape(x.shape)


def group_norm(x: Any, g: Any, b: Any) -> Any:
    y = x.reshape(x.shape[0], 4, -1)
    m, v = y.mean(-1, keepdims=True), y.var(-1, keepdims=True)
    z = ((y - m) / np.sqrt(v + 1e-5)).reshape(x.shape)
    return z * g[:, None, None] + b[:, None, None]


def patches(x: Any, W: Any) -> Any:
    n, c, h, w = x.shape
    p = x.reshape(n, c, h // 3, 3, w // 3, 3).transpose(0, 2, 4, 1, 3, 5)
    return p.reshape(n, (h // 3) * (w // 3), c * 9) @ W


def heads(x: Any, W: Any) -> Any:
    b, t, d = x.shape
    q = (x @ W).reshape(b, t, 2, d // 2).transpose(0, 2, 1, 3)
    s = tp.nn.softmax(q @ q.swapaxes(-1, -2))
    return (s @ q).transpose(0, 2, 1, 3).reshape(b, t, d)


X = rng.standard_normal((2, 8, 6, 6))
CASES = {
    "instance norm": (instance_norm, (X,)),
    "group norm": (group_norm, (X, rng.random(8), rng.random(8))),
    "patches": (patches, (X, rng.random((72, 5)))),
    "heads": (heads, (rng.standard_normal((3, 5, 8)), rng.standard_normal((8, 8)))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_with_reshapes_is_one_kernel_call(name: str) -> None:
    function, args = CASES[name]
    assert runs(function, *args).startswith("1 kernel calls, 0 calls of NumPy")
    np.testing.assert_allclose(tp.fuse(function)(*args), function(*args), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients_through_reshapes_are_one_kernel_call(name: str) -> None:
    function, args = CASES[name]

    def loss(*values: Any) -> Any:
        return (function(*values) * weights).sum()

    weights = rng.standard_normal(function(*args).shape)
    parameters = ("x", "y", "z")[: len(args)]
    by_name: dict[str, Any] = {"loss": loss}
    exec(f"def named({', '.join(parameters)}): return loss({', '.join(parameters)})", by_name)
    gradient = tp.grad(by_name["named"], "x")
    assert runs(gradient, *args).startswith("1 kernel calls, 0 calls of NumPy")
    found = gradient(*args)
    for _ in range(10):
        step = rng.standard_normal(args[0].shape)
        after = loss(args[0] + 1e-6 * step, *args[1:]) - loss(args[0] - 1e-6 * step, *args[1:])
        np.testing.assert_allclose((found * step).sum(), after / 2e-6, rtol=1e-5, atol=1e-6)


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Draw factors, and two ways to put them together."""
    factors = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))

    def grouped() -> tuple[int, ...]:
        ends = sorted(draw(st.sets(st.integers(1, len(factors)))) | {len(factors)})
        starts = [0, *ends[:-1]]
        return tuple(prod(factors[a:b]) for a, b in zip(starts, ends, strict=True))

    return grouped(), grouped(), grouped()


@settings(max_examples=40, deadline=None)
@given(reshapes(), st.integers(0, 3))
def test_reshapes_compute_what_numpy_does(
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], what: int
) -> None:
    one, other, last = shapes

    def function(x: Any, y: Any) -> Any:
        z = np.tanh(x).reshape(other) + y
        if what == 0:
            return (z * z).reshape(last)
        if what == 1:
            return z.reshape(last).sum(-1)
        if what == 2:
            return (z - z.mean(0, keepdims=True)).reshape(-1)
        return z.T.reshape(-1) * 2

    x, y = rng.standard_normal(one), rng.standard_normal(other)
    fused = tp.fuse(function)
    for _ in range(2):
        np.testing.assert_allclose(fused(x, y), function(x, y), rtol=1e-10, atol=1e-12)
    turned = np.asfortranarray(x)
    np.testing.assert_allclose(fused(turned, y), function(x, y), rtol=1e-10, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(reshapes())
def test_gradients_of_reshapes_are_sums_of_what_was_read(
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
) -> None:
    one, other, last = shapes
    weights = rng.standard_normal(last)

    def loss(x: Any, y: Any) -> Any:
        return ((np.sin(x).reshape(other) * y).reshape(last) * weights).sum()

    x, y = rng.standard_normal(one), rng.standard_normal(other)
    by_x, by_y = tp.grad(loss, ("x", "y"))(x, y)
    whole = weights.reshape(other)
    np.testing.assert_allclose(by_x, (whole * y).reshape(one) * np.cos(x), rtol=1e-10)
    np.testing.assert_allclose(by_y, whole * np.sin(x).reshape(other), rtol=1e-10)


def test_one_trace_serves_sizes_that_split_alike() -> None:
    fused = tp.fuse(group_norm)
    for channels, size in ((8, 6), (12, 5), (16, 7)):
        args = (
            rng.standard_normal((2, channels, size, size)),
            rng.random(channels),
            np.ones(channels),
        )
        np.testing.assert_allclose(fused(*args), group_norm(*args), rtol=1e-9, atol=1e-12)
    assert sum(map(len, fused.traces.values())) == 1


def test_sizes_that_do_not_split_are_traced_again() -> None:
    def groups(x: Any) -> Any:
        y = np.exp(x).reshape(x.shape[0], 4, -1)
        return y.sum(-1)

    fused = tp.fuse(groups)
    for shape in ((2, 8, 3), (2, 6, 4)):  # of 6 channels none is a group
        x = rng.standard_normal(shape)
        np.testing.assert_allclose(fused(x), groups(x), rtol=1e-12)
    assert sum(map(len, fused.traces.values())) == 2


def test_a_shape_of_other_elements_is_refused_with_the_line() -> None:
    def wrong(x: Any) -> Any:
        return np.exp(x).reshape(4, -1)

    with pytest.raises(tp.DimensionError, match="Expected a shape of 6 elements") as error:
        tp.fuse(wrong)(np.ones((2, 3)))
    assert "test_reshapes.py" in str(error.value) + "".join(getattr(error.value, "__notes__", []))


def test_a_view_of_an_operand_is_not_written_to() -> None:
    def loss(x: Any) -> Any:
        return (x.reshape(-1) ** 2).sum()

    x = rng.standard_normal((3, 4))
    before = x.copy()
    gradient = tp.grad(loss, "x")(x)
    gradient[:] = 7
    np.testing.assert_array_equal(x, before)


def test_sparse_operands_keep_their_modes() -> None:
    A = sp.random_array((6, 8), density=0.4, rng=np.random.default_rng(1), format="csr")

    def rows(A: Any, x: Any) -> Any:
        return (A @ x).reshape(2, 3, -1).sum(1)

    x = rng.standard_normal((8, 5))
    np.testing.assert_allclose(tp.fuse(rows)(A, x), rows(A.toarray(), x), rtol=1e-12)
