"""Gradients inside of traced functions, texts and kernels among them, to any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.autodiff.random_gradients import SKIPPED, failures, nested_with

x = np.array([1.0, 2.0, 4.0])
v = np.array([0.5, -1.0, 2.0])
A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.5]])
D = A.toarray()
PATTERN = D != 0


def cubes(z: Any) -> Any:
    return (z**3).sum()


def squares(B: Any, x: Any) -> Any:
    return ((B @ x) ** 2).sum()


first = tp.grad(cubes, "z")
second = tp.grad(lambda z: first(z).sum(), "z")
third = tp.grad(lambda z: second(z).sum(), "z")
by_matrix = tp.grad(squares, "B")
by_vector = tp.grad(squares, "x")
both = tp.grad(lambda a, b: (a * a * b).sum(), ("a", "b"))
value_and_first = tp.value_and_grad(cubes, "z")
linear = tp.grad(lambda z: (2 * z).sum(), "z")
products = tp.grad(lambda z: np.prod(z), "z")


def row(k: int) -> Any:
    """The function of a row of a Jacobian."""
    return tp.grad(lambda z: products(z)[k], "z")


def in_lazy(x: Any) -> Any:
    with tp.lazy() as later:
        found = first(later(x)) * 2
    return found.compute()


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "fused": (tp.fuse(lambda x: first(x)), (x,), 3 * x**2),
    "a step of descent": (tp.fuse(lambda x: x - 0.1 * first(x)), (x,), x - 0.3 * x**2),
    "lazy": (in_lazy, (x,), 6 * x**2),
    "value and gradient": (tp.fuse(lambda x: value_and_first(x)[1] / x), (x,), 3 * x),
    "second": (second, (x,), 6 * x),
    "third": (third, (x,), np.full(3, 6.0)),
    "fourth": (tp.grad(lambda z: (third(z) * z).sum(), "z"), (x,), np.full(3, 6.0)),
    "Hessian times vector": (
        tp.grad(lambda x, v: (first(x) * v).sum(), "x"), (x, v), 6 * x * v,
    ),
    "penalty": (tp.grad(lambda x: (first(x) ** 2).sum(), "x"), (x,), 36 * x**3),
    "of two names": (
        tp.grad(lambda a, b: (both(a, b)[0] * both(a, b)[1]).sum(), "a"), (x, v), 6 * x**2 * v,
    ),
    "closure": (
        tp.grad(lambda x: tp.grad(lambda z: (z * x * x).sum(), "z")(x).sum(), "x"), (x,), 2 * x,
    ),
    "closure beside constants": (
        tp.grad(lambda x: tp.grad(lambda z: (z * x * x).sum(), "z")(v).sum(), "x"), (x,), 2 * x,
    ),
    "linear": (tp.grad(lambda z: linear(z).sum(), "z"), (x,), np.zeros(3)),
    "linear besides": (tp.grad(lambda z: (linear(z) * z).sum(), "z"), (x,), np.full(3, 2.0)),
    "products with a zero": (
        tp.grad(lambda z: products(z)[1], "z"), (np.array([0.0, 2.0, 3.0]),), np.array([3.0, 0, 0]),
    ),
    "Jacobian": (
        tp.fuse(lambda z: np.stack([row(k)(z) for k in range(3)])),
        (x,), np.array([[0.0, 4, 2], [4, 0, 1], [2, 1, 0]]),
    ),
    "by a sparse matrix": (
        tp.fuse(lambda A, x: by_matrix(A, x)), (A, x), 2 * np.outer(D @ x, x) * PATTERN,
    ),
    "by a computed sparse matrix": (
        tp.fuse(lambda A, x: by_matrix(A * 2, x)), (A, x), 4 * np.outer(D @ x, x) * PATTERN,
    ),
    "sparse operand": (
        tp.grad(lambda A, x, v: (by_vector(A, x) * v).sum(), "x"), (A, x, v), 2 * D.T @ (D @ v),
    ),
    "gradient of a gradient by a sparse matrix": (
        tp.grad(lambda A, x, v: (by_vector(A, x) * v).sum(), "A"), (A, x, v),
        2 * (np.outer(D @ v, x) + np.outer(D @ x, v)) * PATTERN,
    ),
    "in a dictionary": (
        tp.fuse(
            lambda x, v: tp.grad(lambda d: (d["a"] * d["b"][0]).sum(), "d")({"a": x, "b": (v,)})[
                "b"
            ][0]
        ),
        (x, v), x,
    ),
    "a text": (
        tp.grad(lambda x, A: tp.evaluate("m[i] = A[i,j] * x[j]; s = m[i] * m[i]", A=A, x=x), "x"),
        (x, A), 2 * D.T @ (D @ x),
    ),
    "a text by a sparse matrix": (
        tp.grad(lambda x, A: tp.evaluate("m[i] = A[i,j] * x[j]; s = m[i] * m[i]", A=A, x=x), "A"),
        (x, A), 2 * np.outer(D @ x, x) * PATTERN,
    ),
    "a text of products, twice": (
        tp.grad(
            lambda x: tp.grad(lambda z: tp.evaluate("s = prod(i, z[i])", z=z), "z")(x)[0], "x"
        ),
        (x,), np.array([0.0, 4, 2]),
    ),
    "a text at positions": (
        tp.grad(lambda x: (tp.evaluate("y[i] = x[p[i]]", x=x, p=np.array([2, 2])) ** 2).sum(), "x"),
        (x,), np.array([0.0, 0, 16]),
    ),
    "tp.vjp": (
        tp.fuse(lambda x: tp.vjp("s = x[i] * x[i] * x[i]", x=x, wrt="x")(1.0)), (x,), 3 * x**2,
    ),
    "tp.vjp differentiated": (
        tp.grad(lambda x: tp.vjp("s = x[i] * x[i] * x[i]", x=x, wrt="x")(1.0).sum(), "x"),
        (x,), 6 * x,
    ),
    "tp.jvp differentiated": (
        tp.grad(lambda x, v: tp.jvp("s = x[i] * x[i] * x[i]", x=x)(x=v), "x"), (x, v), 6 * x * v,
    ),
    "a kernel": (
        tp.grad(
            lambda A, x: (tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x="d")(A, x) ** 2).sum(),
            "x",
        ),
        (A, x), 2 * D.T @ (D @ x),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradients_compose(name: str) -> None:
    function, args, expected = CASES[name]
    found = function(*args)
    assert sp.issparse(found) == ("by a" in name and "sparse matrix" in name)
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_step_of_training_inside() -> None:
    step = tp.train_step(lambda w, X: ((X @ w - 1) ** 2).sum(), optimizer="adam", rate=0.1)

    def steps(w: Any, X: Any) -> Any:
        state = step.begin(w=w)
        for _ in range(3):
            value, state = step(state, X=X)
        return value, state.parameters["w"]

    expected, found = steps(x, D), tp.fuse(steps)(x, D)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


def test_steps_of_penalties() -> None:
    step = tp.train_step(lambda w: (first(w) ** 2).sum(), optimizer="sgd", rate=1e-3)
    value, state = step(step.begin(w=x))
    assert value == (9 * x**4).sum()
    np.testing.assert_allclose(state.parameters["w"], x - 36e-3 * x**3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: tp.grad(lambda a, b: (a * a).sum(), "b")(x, x), "found b, which it does not"),
        (lambda x: tp.grad(lambda a: a * a, "a")(x), "one real number for its gradients"),
        (lambda x: tp.grad(lambda a, x: a * x.sum(), "a")(2.0, x), "found a number of Python"),
        (lambda x: tp.grad(lambda a: np.sort(a)[0], "a")(x), "found sort in"),
        (lambda x: tp.evaluate("y[i] = x[i]", x=x, mask=np.ones(3)), "without mask= in a traced"),
        (lambda x: tp.evaluate("y = x[i]", x=x, semiring="min_plus"), "without semiring="),
        (lambda x: tp.evaluate("y = x[i]", x=x, threads=1), "without threads="),
        (lambda x: tp.evaluate("y = x[i]", x=x, z=1), "found z besides"),
        (lambda x: tp.evaluate("y[i] = x[i+k] * w[k]", x=x, w=v[:2]), "which says its size"),
        (lambda x: tp.einsum("i,i", x, x, threads=1), "einsum without threads="),
        (lambda x: tp.compile("y = x[i]", x="d")(x, out=v), "kernels without out="),
    ],
)
def test_what_is_refused_names_the_line(function: Any, message: str) -> None:
    with pytest.raises(tp.TacoError, match=message) as caught:
        tp.fuse(function)(x)
    assert "test_nested_gradients.py" in str(caught.value)


def test_random_gradients_of_gradients() -> None:
    wrong = [told for _, told in failures(6, 7, nested_with) if not told.startswith(SKIPPED)]
    assert not wrong, "\n\n".join(wrong)
