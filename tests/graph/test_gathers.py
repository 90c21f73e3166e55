"""Elements at positions, and elements added up at positions, in kernels: against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from tests.autodiff.differences import direction, moved, product

Arrays = tuple[Any, Any, Any]

READS: tuple[Callable[..., Any], ...] = (
    lambda x, p, q: x[p] * 2,
    lambda x, p, q: np.exp(x)[p, q],
    lambda x, p, q: x[p[:, None], q] + 1,
)
FUSED = tuple(map(tp.fuse, READS))
GRADIENTS = tuple(tp.grad(lambda x, p, q, f=f: (f(x, p, q) ** 2).sum(), "x") for f in READS)


@st.composite
def arrays(draw: st.DrawFn) -> Arrays:
    """An array, and positions in each of its modes: repeated, negative, or none."""
    rows, columns = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    count = draw(st.sampled_from((0, 2, 3, 9)))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    p, q = (rng.integers(-size, size, count) for size in (rows, columns))
    return rng.standard_normal((rows, columns)), p, q


@settings(max_examples=8, deadline=None)
@given(arrays())
def test_gathers_are_numpys(passed: Arrays) -> None:
    for function, fused, gradient in zip(READS, FUSED, GRADIENTS, strict=True):
        expected, found = function(*passed), fused(*passed)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected)
        x, p, q = passed
        along = direction(x, np.random.default_rng(0))
        ahead, behind = ((function(moved(x, along, h), p, q) ** 2).sum() for h in (1e-6, -1e-6))
        slope = product(gradient(x, p, q), along)
        np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-6)


X = np.random.default_rng(0).standard_normal((4, 5, 3))
KEYS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x[np.array([0, -1]), 1:3] * 2,
    lambda x: x[np.array([0, -1]), :, 2] * 2,
    lambda x: x[0, :, np.array([0, -1])] * 2,
    lambda x: x[None, :, np.array([0, -1])] * 2,
    lambda x: x[np.array([0, -1]), None, np.array([1, 3])] * 2,
    lambda x: (x * 2)[1:, np.array([[0], [3]]), np.array([1, 2])],
    lambda x: x[np.array([[0]]), np.array([1, 2, 3])] * 2,
    lambda x: x[np.array([True, False, True, False])] * 2,
    lambda x: x[:, np.argmax(x[0, :, 0])] * 2,
    lambda x: x[np.array([], int)] * 2,
    lambda x: x[np.arange(len(x)).astype(np.uint8), np.array([1, 0, 1, -1], np.int8)] * 2,
    lambda x: np.take(x.astype(np.float32), np.array([[0, 1], [3, -1]]), axis=1) * 2,
    lambda x: (x + 1j)[:, np.array([0, -1])] * 2,
)


@pytest.mark.parametrize("function", KEYS)
def test_subscripts_beside_positions_are_numpys(function: Callable[[Any], Any]) -> None:
    expected, found = function(X), tp.fuse(function)(X)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_positions_outside_are_errors_with_the_line() -> None:
    fused = tp.fuse(lambda x, p: (x * 2)[p])
    good = np.array([0, -4])
    fused(X, good)
    for wrong in (4, -5):
        with pytest.raises(IndexError, match=rf"from -4 to 3 along axis 0, found {wrong}") as told:
            fused(X, np.array([0, wrong]))
        assert isinstance(told.value, tp.TacoError) and "test_gathers.py" in str(told.value)
    good[1] = 3  # what was seen of them is not kept
    np.testing.assert_array_equal(fused(X, good), 2 * X[good])


def test_constants_are_read_by_reference() -> None:
    places = np.array([1, 2])
    fused = tp.fuse(lambda x: x[places] * 1.5)
    fused(X)
    places[0] = 3
    np.testing.assert_array_equal(fused(X), X[[3, 2]] * 1.5)


rng = np.random.default_rng(0)
ROWS, COLUMNS = rng.integers(0, 40, 70), rng.integers(0, 30, 70)
RATINGS: Any = (rng.random((40, 8)), rng.random((30, 8)), ROWS, COLUMNS, rng.random(70))


def by_rows(U: Any, V: Any, rows: Any, cols: Any, r: Any) -> Any:
    """The squares of what two factors are off at ratings."""
    return (((U[rows] * V[cols]).sum(-1) - r) ** 2).sum()


def by_product(U: Any, V: Any, rows: Any, cols: Any, r: Any) -> Any:
    """The same by elements of the product."""
    return (((U @ V.T)[rows, cols] - r) ** 2).sum()


def by_einsum(U: Any, V: Any, rows: Any, cols: Any, r: Any) -> Any:
    """The same by a sum of products."""
    return ((tp.einsum("nk,nk->n", U[rows], V[cols]) - r) ** 2).sum()


@pytest.mark.parametrize("loss", [by_rows, by_product, by_einsum])
def test_factors_of_ratings_have_gradients(loss: Callable[..., Any]) -> None:
    U, V, rows, cols, r = RATINGS
    error = 2 * ((U[rows] * V[cols]).sum(-1) - r)[:, None]
    of_U, of_V = np.zeros_like(U), np.zeros_like(V)
    np.add.at(of_U, rows, error * V[cols])
    np.add.at(of_V, cols, error * U[rows])
    function = tp.value_and_grad(loss, ("U", "V"))
    told = function.graph(*RATINGS).explain()
    assert told.splitlines()[1].startswith("runs      1 kernel calls"), told.splitlines()[1]
    for _ in range(2):
        value, found = function(*RATINGS)
        np.testing.assert_allclose(value, (error**2).sum() / 4)
        np.testing.assert_allclose(found[0], of_U)
        np.testing.assert_allclose(found[1], of_V)


def test_a_product_that_is_read_at_positions_is_not_made() -> None:
    big = [np.ones((200_000, 2)), np.ones((300_000, 2))]  # the product would take 480 GB
    rest = np.array([1, 199_999]), np.array([299_999, 2]), np.zeros(2)
    value, (of_U, _) = tp.value_and_grad(by_product, ("U", "V"))(*big, *rest)
    assert value == 8 and of_U.sum() == 16
    assert not np.any(of_U[2:-1])


@pytest.mark.parametrize("optimize", ["none", "partition"])
def test_strategies_compute_the_same(optimize: str) -> None:
    expected = tp.grad(by_rows, ("U", "V"))(*RATINGS)
    found = tp.grad(by_rows, ("U", "V"), optimize=optimize)(*RATINGS)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other)


def cross_entropy(W: Any, X: Any, y: Any) -> Any:
    """The mean of minus the logarithms of the probabilities of labels."""
    Z = X @ W
    Z = Z - Z.max(-1, keepdims=True)
    logp = Z - np.log(np.exp(Z).sum(-1, keepdims=True))
    return -logp[np.arange(len(y)), y].mean()


def test_a_step_with_labels_is_one_kernel_call() -> None:
    W, H, y = rng.random((6, 3)), rng.random((8, 6)), rng.integers(0, 3, 8)
    step = tp.train_step(cross_entropy, optimizer="adam")
    state = step.begin(W=W)
    value, _ = step(state, X=H, y=y)
    np.testing.assert_allclose(value, cross_entropy(W, H, y))
    gradient = tp.value_and_grad(cross_entropy, "W")
    told = gradient.graph(W, H, y).explain().splitlines()
    assert told[1] == "runs      1 kernel calls, 0 calls of NumPy, 2 arrays of positions"
    assert sum("= positions" in line for line in told) == 2
    Z = H @ W
    P = np.exp(Z) / np.exp(Z).sum(-1, keepdims=True) - np.eye(3)[y]
    np.testing.assert_allclose(gradient(W, H, y)[1], H.T @ P / 8)


A = sp.random_array((8, 6), density=0.5, rng=rng, format="csr")
B = rng.random((8, 6))
PLACES = np.array([1, 1, -1, 0, 5, 3, 2, 7])
OF_SPARSE: tuple[Callable[[Any, Any], Any], ...] = (
    lambda A, B: (A[PLACES] @ B.T).sum(),
    lambda A, B: ((A @ B.T)[PLACES] ** 2).sum(),
    lambda A, B: (A * B[PLACES]).sum(),
    lambda A, B: (A * B)[PLACES, 0].sum(),
)


@pytest.mark.parametrize("loss", OF_SPARSE)
@pytest.mark.parametrize("form", [sp.csr_array, tp.tensor])
def test_gradients_are_as_the_arguments_are(
    loss: Callable[[Any, Any], Any], form: Callable[[Any], Any]
) -> None:
    of_A, of_B = tp.grad(loss, ("A", "B"))(form(A), B)
    assert isinstance(of_A, type(form(A)))
    assert form is tp.tensor or isinstance(of_B, np.ndarray)
    along = direction(A, np.random.default_rng(1)), direction(B, np.random.default_rng(2))
    fused = tp.fuse(loss)
    ahead, behind = (
        fused(form(moved(A, along[0], h)), moved(B, along[1], h)) for h in (1e-6, -1e-6)
    )
    of_A, of_B = (each.to_numpy() if isinstance(each, tp.Tensor) else each for each in (of_A, of_B))
    slope = product(of_A, along[0]) + product(of_B, along[1])
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("row", [A[:1], A[:, :1]])
def test_gradients_of_one_row_are_as_it_is(row: Any) -> None:
    found = tp.grad(lambda A, x: (A * x).sum(), ("A", "x"))(row, np.ones(row.shape))
    assert sp.issparse(found[0]) and isinstance(found[1], np.ndarray)
    np.testing.assert_array_equal(found[0].toarray(), (row != 0).toarray())
    np.testing.assert_allclose(found[1], row.toarray())


def test_products_with_truths_have_gradients() -> None:
    truths, x = B > 0.5, rng.random((6, 2))
    found = tp.grad(lambda t, x: (tp.einsum("ij,jk->ik", t, x) ** 2).sum(), "x")(truths, x)
    np.testing.assert_allclose(found, truths.T @ (2 * (truths @ x)))


def test_a_graph_with_positions_is_the_same_from_a_file(tmp_path: Path) -> None:
    graph = tp.fuse(by_rows).graph(*RATINGS)
    graph.save(tmp_path / "g.json")
    np.testing.assert_allclose(tp.graph.load(tmp_path / "g.json")(*RATINGS), by_rows(*RATINGS))
