"""Slices and arrays put together: read in views, and written where they belong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.graph.run.graph_program import KernelRun

rng = np.random.default_rng(0)


def runs(function: Callable[..., Any], *args: Any) -> str:
    """Return how many kernels a function calls, and what NumPy computes of it."""
    graph = getattr(function, "graph", None) or tp.fuse(function).graph
    lines = graph(*args).explain().splitlines()
    return str(next(line for line in lines if line.startswith("runs"))).removeprefix("runs      ")


def rope(x: Any, c: Any, s: Any) -> Any:
    h = x.shape[-1] // 2
    a, b = x[..., :h], x[..., h:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def scaled_rope(x: Any, c: Any, s: Any) -> Any:
    return rope(np.tanh(x) * 2, c, s)


def alternate_rope(x: Any, c: Any, s: Any) -> Any:
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)


def part_of_both(x: Any, y: Any, z: Any) -> Any:
    return np.concatenate([np.exp(x), y * 2], 1)[:, 1:-1]


def projections(x: Any, y: Any, z: Any) -> Any:
    d = y.shape[1] // 3
    p = x @ y
    q, k, v = p[:, :d], p[:, d : 2 * d], p[:, 2 * d :]
    return tp.nn.softmax(q @ k.T) @ v * z[0, 0]


X, C, S = rng.random((5, 8)), rng.random((5, 4)), rng.random((5, 4))
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rotations": (rope, (X, C, S)),
    "rotations of what is computed": (scaled_rope, (X, C, S)),
    "alternate rotations": (alternate_rope, (X, C, S)),
    "a part of two arrays": (part_of_both, (X, X + 1, S)),
    "three projections": (projections, (X, rng.random((8, 12)), S)),
}


@pytest.mark.parametrize("name", CASES)
def test_pieces_are_one_kernel_call(name: str) -> None:
    function, args = CASES[name]
    assert runs(function, *args).startswith("1 kernel calls, 0 calls of NumPy")
    fused = tp.fuse(function)
    for _ in range(2):
        np.testing.assert_allclose(fused(*args), function(*args), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_pieces_are_kernel_calls(name: str) -> None:
    function, args = CASES[name]
    weights = rng.standard_normal(function(*args).shape)

    def loss(x: Any, y: Any, z: Any) -> Any:
        return (function(x, y, z) * weights).sum()

    gradient = tp.grad(loss, "x")
    assert "0 calls of NumPy" in runs(gradient, *args)
    check_gradient(loss, gradient, args)


def check_gradient(loss: Any, gradient: Any, args: tuple[Any, ...]) -> None:
    """Compare the gradient by the first operand with differences along random directions."""
    found = gradient(*args)
    for _ in range(5):
        step = rng.standard_normal(args[0].shape)
        after = loss(args[0] + 1e-6 * step, *args[1:]) - loss(args[0] - 1e-6 * step, *args[1:])
        np.testing.assert_allclose((found * step).sum(), after / 2e-6, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- where pieces are written


def test_kernels_write_pieces_where_they_belong() -> None:
    graph = tp.fuse(part_of_both).graph(X, X + 1, S)
    np.testing.assert_allclose(graph(), part_of_both(X, X + 1, S))
    (step, *_) = graph.call.program.steps
    assert isinstance(step, KernelRun) and step.joins.is_complete
    program = graph.call.program
    values = program.begin((X, X + 1, S))
    step.run(program.graph, values)
    (array,) = (values[name] for name in step.joins.names)
    parts = [values[name] for name in step.joins.parts]
    assert len(parts) == 2 and all(part.base is array for part in parts)


def test_several_results_go_to_parts_of_an_array() -> None:
    a, b, out = rng.random((5, 6)), rng.random(6), np.zeros((5, 12))
    text = "y[i,j] = exp(a[i,j]) * b[j]; w[i,j] = y[i,j] + b[j]"
    places = {"y": out[:, :6], "w": out[:, 6:]}
    for _ in range(2):
        out[:] = 0
        tp.evaluate(text, a=a, b=b, outputs=("y", "w"), out=places)
        y = np.exp(a) * b
        np.testing.assert_allclose(out, np.hstack([y, y + b]))


def test_arrays_of_parts_are_made_in_memory_that_is_used_again() -> None:
    fused, a = tp.fuse(lambda x: np.concatenate([x, -x], 1)), rng.random((600, 700))
    first = fused(a)
    place = first.ctypes.data
    np.testing.assert_array_equal(first, np.concatenate([a, -a], 1))
    del first
    for _ in range(3):
        assert fused(a).ctypes.data == place


@pytest.mark.parametrize("mode", range(3))
def test_equal_results_are_written_into_a_part_each(mode: int) -> None:
    x = np.moveaxis(np.arange(12.0).reshape(2, 3, 2)[::-1], 1, mode)
    wanted = np.concatenate([x, x, 2 * x], mode)
    out = np.full_like(wanted, np.nan)
    parts = dict(zip("pqz", np.split(out, 3, mode), strict=True))
    text = "p[i,j,k] = x[i,j,k] * 1.0; q[i,j,k] = x[i,j,k] * 1.0; z[i,j,k] = x[i,j,k] * 2.0"
    for _ in range(3):
        out[:] = np.nan
        tp.evaluate(text, x=x, outputs=("p", "q", "z"), out=parts)
        np.testing.assert_array_equal(out, wanted)


def test_parts_of_an_array_that_share_elements_are_refused() -> None:
    a, out = rng.random((5, 6)), np.zeros((5, 12))
    text = "y[i,j] = exp(a[i,j]); w[i,j] = y[i,j] + 1"
    places = {"y": out[:, :6], "w": out[:, 5:11]}
    with pytest.raises(tp.OutputError, match="found y and w in arrays that share theirs"):
        tp.evaluate(text, a=a, outputs=("y", "w"), out=places)
    assert not out.any()


def test_a_part_that_an_operand_shares_is_written_after_it_was_read() -> None:
    c = rng.random((5, 12))
    before = c.copy()
    text = "y[i,j] = exp(a[i,j]); w[i,j] = a[i,j] + 1"
    for _ in range(2):
        c[:] = before
        tp.evaluate(text, a=c[:, 6:], outputs=("y", "w"), out={"y": c[:, :6], "w": c[:, 6:]})
        a = before[:, 6:]
        np.testing.assert_allclose(c, np.hstack([np.exp(a), a + 1]))


@pytest.mark.parametrize("n", [24, 300])
def test_products_are_written_into_parts(n: int) -> None:
    def both(x: Any, W: Any) -> Any:
        return np.concatenate([x @ W, np.maximum(x @ W.T, 0.1), x], 1)

    x, W = rng.random((n, n)), rng.random((n, n))
    fused = tp.fuse(both)
    for _ in range(2):
        np.testing.assert_allclose(fused(x, W), both(x, W), rtol=1e-10)


def test_a_piece_of_two_arrays_is_in_both() -> None:
    def function(x: Any, y: Any) -> Any:
        e = np.exp(x)
        return np.concatenate([e, e, y]), np.concatenate([y, e]), e

    for _ in range(2):
        found = tp.fuse(function)(X, S @ S.T @ X)
        for one, other in zip(found, function(X, S @ S.T @ X), strict=True):
            np.testing.assert_allclose(one, other)
        found[0][:] = 7
        np.testing.assert_allclose(found[2], np.exp(X))


# ---------------------------------------------------------------- all slices, all pieces


@st.composite
def ends(draw: st.DrawFn) -> slice:
    """Draw a slice."""
    end = st.one_of(st.none(), st.integers(-5, 6))
    step = draw(st.sampled_from((None, None, None, 2, 3, -1)))
    return slice(draw(end), draw(end), step)


@settings(max_examples=60, deadline=None)
@given(ends(), ends(), ends(), st.integers(2, 6), st.integers(2, 5), st.integers(0, 4))
def test_slices_of_pieces_compute_what_numpy_does(
    one: slice, other: slice, last: slice, n: int, m: int, what: int
) -> None:
    def function(x: Any, y: Any) -> Any:
        z = np.concatenate([np.exp(x), y[one] * 2, x[other]], 0)
        if what == 0:
            return z[last]
        if what == 1:
            return (z * z)[last].sum(0)
        if what == 2:
            return np.concatenate([z, z * 2], 1)[last, 1:]
        if what == 3:
            return z.sum(0), z[:, 0] * 3
        return np.tanh(z)[last] @ np.concatenate([x, y]).T

    x, y = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    fused = tp.fuse(function)
    for _ in range(2):
        found, expected = fused(x, y), function(x, y)
        if not isinstance(expected, tuple):
            found, expected = (found,), (expected,)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(ends(), min_size=1, max_size=3), st.integers(2, 6), st.integers(0, 2))
def test_gradients_of_slices_are_added_up(slices: list[slice], n: int, what: int) -> None:
    def loss(x: Any) -> Any:
        z = np.sin(x) if what else x
        parts = [(z[entry] * z[entry]).sum() * (k + 1.0) for k, entry in enumerate(slices)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total + (z[1:] * z[:-1]).sum() if what == 2 else total

    x = rng.standard_normal((n, 3))
    check_gradient(loss, tp.grad(loss, "x"), (x,))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 7), st.integers(2, 7))
def test_one_trace_serves_the_sizes_that_it_holds_for(n: int, m: int) -> None:
    for _ in range(2):
        x = rng.standard_normal((n, m))
        np.testing.assert_allclose(FUSED(x), middle(x), rtol=1e-12)
        expected = np.zeros_like(x)
        expected[1:-2] = 2 * x[1:-2]
        np.testing.assert_allclose(GRADIENT(x), expected)
        n, m = m, n


def middle(x: Any) -> Any:
    return np.concatenate([x[2:] * 2, x[1:-2] + 1, x[::2]])


FUSED = tp.fuse(middle)
GRADIENT = tp.grad(lambda x: (x[1:-2] ** 2).sum(), "x")


def test_pieces_of_sparse_operands_are_right() -> None:
    A = sp.random_array((6, 8), density=0.4, rng=np.random.default_rng(1), format="csr")

    def function(A: Any, x: Any) -> Any:
        z = A @ x
        return np.concatenate([z[:2] * 2, x[:6], z], 0)[1:]

    x = rng.standard_normal((8, 5))
    fused = tp.fuse(function)
    for _ in range(2):
        np.testing.assert_allclose(fused(A, x), function(A.toarray(), x), rtol=1e-12)
