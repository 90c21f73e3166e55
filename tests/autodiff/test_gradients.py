"""tp.grad and tp.value_and_grad of functions, against differences of NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.autodiff.differences import difference, direction, product
from tests.autodiff.random_gradients import SKIPPED, failures

rng = np.random.default_rng(0)
A = sp.random_array((9, 9), density=0.3, format="csr", rng=np.random.default_rng(1))
X, y = rng.random((9, 5)), rng.integers(0, 3, 9)
W1, W2, b = rng.normal(size=(5, 4)), rng.normal(size=(4, 3)), rng.random(4)
x = rng.random(6)


def log_softmax(Z: Any) -> Any:
    apart = Z - Z.max(-1, keepdims=True)
    return apart - np.log(np.exp(apart).sum(-1, keepdims=True))


def convolutional(W1: Any, W2: Any, A: Any, X: Any, y: Any) -> Any:
    Z = A @ np.maximum(A @ (X @ W1), 0) @ W2
    return -log_softmax(Z)[np.arange(len(y)), y].mean()


def perceptron(W1: Any, b: Any, W2: Any, X: Any) -> Any:
    return ((np.tanh(X @ W1 + b) @ W2) ** 2).mean()


def attention(Q: Any, K: Any, V: Any) -> Any:
    S = Q @ K.T / np.sqrt(Q.shape[-1])
    P = np.exp(S - S.max(-1, keepdims=True))
    return ((P / P.sum(-1, keepdims=True) @ V) ** 2).sum()


def normalized(x: Any, g: Any) -> Any:
    return (
        ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g) ** 3
    ).sum()


def layouts(x: Any, z: Any) -> Any:
    joined = np.concatenate([x, z])[::2].reshape(2, -1)
    return (joined.T @ np.arange(2.0)).max() + (x[1:] * x[:-1]).sum() + (np.cumsum(z) ** 2).sum()


def extrema(Z: Any) -> Any:
    return (
        Z.max(0).sum()
        + np.prod(Z[0])
        + np.minimum(Z, 0.5).sum()
        + np.where(Z > 0.3, Z, 2 * Z).sum()
    )


def both_ways(A: Any, x: Any) -> Any:
    return ((A.T @ x) ** 2).sum() + (A * A).sum()


CASES: dict[str, tuple[Callable[..., Any], tuple[str, ...], tuple[Any, ...]]] = {
    "convolutional": (convolutional, ("W1", "W2", "A"), (W1, W2, A, X, y)),
    "perceptron": (perceptron, ("W1", "b", "W2"), (W1, b, W2, X)),
    "attention": (attention, ("Q", "K", "V"), (X[:4], X[:6], W1[:6].repeat(2, 0)[:6])),
    "normalized": (normalized, ("x", "g"), (X, X[0] + 1)),
    "layouts": (layouts, ("x", "z"), (x, x * 2)),
    "extrema": (extrema, ("Z",), (X[:3],)),
    "both_ways": (both_ways, ("A", "x"), (A, rng.random(9))),
    "sum": (lambda x: x.sum(), ("x",), (x,)),
}


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name: str) -> None:
    function, wrt, args = CASES[name]
    operands = dict(zip(signature(function).parameters, args, strict=True))
    made = tp.value_and_grad(function, wrt)
    for _ in range(2):  # planned, then by the short way
        value, gradients = made(*args)
    assert value == pytest.approx(function(*args))
    for own, gradient in zip(wrt, gradients, strict=True):
        along = direction(operands[own], rng)
        expected = difference(lambda given: function(**given), operands, own, along)
        assert product(gradient, along) == pytest.approx(expected, rel=1e-4, abs=1e-7), own
        if sp.issparse(operands[own]):
            assert gradient.nnz == operands[own].nnz


def test_gradients_of_random_programs() -> None:
    wrong = [told for _, told in failures(6, 140) if not told.startswith(SKIPPED)]
    assert not wrong


def test_gradients_that_are_one_number_have_the_shape_of_the_operand() -> None:
    for function in (lambda x: (x / 4).sum(), lambda x: -x.sum(0)[1] + x.mean()):
        found = tp.grad(function, "x")(X)
        along = direction(X, rng)
        expected = difference(lambda given, f=function: f(given["x"]), {"x": X}, "x", along)
        assert found.shape == X.shape
        assert product(found, along) == pytest.approx(expected, rel=1e-4)


def test_the_loss_is_computed_only_when_it_is_asked_for() -> None:
    loss = lambda w, X, y: ((X @ w - y) ** 2).mean()  # noqa: E731
    given = rng.random(5), X, rng.random(9)
    with_value = tp.value_and_grad(loss, "w").graph(*given).call.primitives
    alone = tp.grad(loss, "w").graph(*given).call.primitives
    assert len(alone.nodes) < len(with_value.nodes)
    squares = [n for n in alone.nodes if n.get("function") in ("square", "power")]
    assert not squares


def test_gradients_have_the_structure_of_the_argument() -> None:
    def loss(parameters: dict[str, Any], x: Any) -> Any:
        return ((x @ parameters["W"][0] + parameters["b"]) ** 2).sum()

    parameters = {"W": (W1,), "b": b}
    found = tp.grad(loss, "parameters")(parameters, X)
    assert found["W"][0].shape == W1.shape and found["b"].shape == b.shape
    expected = 2 * X.T @ (X @ W1 + b)
    np.testing.assert_allclose(found["W"][0], expected)


def test_gradients_are_arrays_of_their_own() -> None:
    first, second = tp.grad(lambda x, z: x.sum() + z.sum(), ("x", "z"))(x, x * 2)
    first += 1
    np.testing.assert_array_equal(second, np.ones(6))


@pytest.mark.parametrize(
    ("function", "wrt", "message"),
    [
        (lambda x: x * 2, "x", "returns one number for its gradients"),
        (lambda x: (x.sum(), x), "x", "one number for its gradients, found several results"),
        (
            lambda x: np.sort(x).sum(),
            "x",
            "operators with derivatives, found sort in test_gradients",
        ),
        (lambda x, z: x.sum(), "z", "arguments that the function uses for gradients, found z"),
        (lambda x: (x * np.arange(6)).sum(), "q", "names of arguments in wrt=, found 'q'"),
    ],
)
def test_what_has_no_gradient_is_refused(function: Any, wrt: str, message: str) -> None:
    with pytest.raises(tp.DerivativeError, match=message):
        arguments = (x,) * len(signature(function).parameters)
        tp.grad(function, wrt)(*arguments)


def test_integers_have_no_gradient() -> None:
    with pytest.raises(
        tp.DerivativeError, match="a real or complex operand for a gradient, found n"
    ):
        tp.grad(lambda n: (n * 2.0).sum(), "n")(np.arange(3))


@pytest.mark.parametrize(
    "function", [lambda x: np.exp(x - x.max(-1, keepdims=True)).sum(), lambda x: x.prod(-1).sum()]
)
def test_float32_is_computed_in_float32(function: Any) -> None:
    """Also what is counted of it: the elements that equal a maximum, and the zeros of a product."""
    gradient = tp.grad(function, "x")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert gradient(x).dtype == np.float32
    told = gradient.graph(x).explain().splitlines()
    formats = [line for line in told if line.strip().startswith("formats ")]
    assert formats and not [line for line in formats if "float64" in line]


@pytest.mark.parametrize("argument", [2.0, 3, {"x": x, "factor": 2.0}, (x, 2)])
def test_numbers_of_python_have_no_gradient(argument: Any) -> None:
    def loss(argument: Any, z: Any) -> Any:
        parts = argument.values() if isinstance(argument, dict) else argument
        return (z * (parts[0] * parts[1] if isinstance(parts, tuple) else z)).sum()

    with pytest.raises(tp.DerivativeError, match=r"arrays for gradients, found argument.*a number"):
        tp.grad(loss, "argument")(argument, x)
    found = tp.grad(lambda parts: (parts[0] * parts[1]).sum(), "parts")((x, np.float64(2)))
    np.testing.assert_allclose(found[1], x.sum())


def test_complex_losses_and_places_of_arguments_are_refused() -> None:
    with pytest.raises(tp.DerivativeError, match="returns a real number for its gradients, found"):
        tp.grad(lambda x: (x * 1j).sum(), "x")(x)
    with pytest.raises(tp.DerivativeError, match="names of arguments in wrt=, found 0"):
        tp.grad(lambda x: x.sum(), 0)  # type: ignore[arg-type]


def test_equal_maxima_of_gathered_rows_share_the_gradient() -> None:
    E, rows = np.array([[1.0, 5.0], [3.0, 2.0], [3.0, 4.0]]), np.array([0, 2, 1])
    found = tp.grad(lambda E, rows: (E[rows].max(0) ** 2).sum(), "E")(E, rows)
    np.testing.assert_allclose(found, [[0, 10], [3, 0], [3, 0]])


@pytest.mark.parametrize("optimize", ["stages", "greedy", "partition", "none"])
def test_gradients_by_a_matrix_of_scipy_are_one_whatever_runs(optimize: str) -> None:
    """Values between kernels are Tensors where each primitive is a kernel of its own."""
    A = sp.random_array((30, 20), density=0.2, format="csr", rng=0)
    X = np.random.default_rng(0).random((20, 4))
    found = tp.grad(lambda A, X: ((A @ X) ** 2).sum(), "A", optimize=optimize)(A, X)
    assert isinstance(found, sp.csr_array) and found.nnz == A.nnz
    expected = (2 * A.toarray() @ X @ X.T) * (A.toarray() != 0)
    np.testing.assert_allclose(found.toarray(), expected)


def test_a_sum_of_numbers_alone_has_the_shape_of_what_is_left() -> None:
    """Minus one, summed over a mode that a1 was stretched along: a number of its modes."""

    def stretched(a0: Any, a1: Any) -> Any:
        t0 = np.where(a1, a0, a0)
        return (t0 - a1).sum() + t0.mean(axis=-2, keepdims=True).sum()

    first, second = tp.grad(stretched, ("a0", "a1"))(np.ones(4), np.ones((5, 2, 1)))
    np.testing.assert_allclose(first, np.full(4, 5 * 2 + 5.0))
    np.testing.assert_allclose(second, np.full((5, 2, 1), -4.0))
