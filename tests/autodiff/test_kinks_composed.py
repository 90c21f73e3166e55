"""Smooth functions of parts with kinks, composed at random and differentiated exactly at ties.

Each base is smooth, though what it is written by is not; it is shifted, scaled, put into linear
maps and added up. The derivative where branches meet is that of the smooth function.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import taco_py as tp


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


BASES: dict[str, tuple[str, Any]] = {
    "softplus": ("max(X, 0) + log1p(exp(-abs(X)))", sigmoid),
    "softplus of sides": (
        "where(X > 0, X + log1p(exp(-X)), log1p(exp(min(X, 0))))", sigmoid
    ),
    "logaddexp": ("logaddexp(X, 0)", sigmoid),
    "log of sums": ("max(X, 0) + log(exp(X - max(X, 0)) + exp(-max(X, 0)))", sigmoid),
    "Huber": ("where(abs(X) <= 1, 0.5 * X * X, abs(X) - 0.5)", lambda x: np.clip(x, -1, 1)),
    "Huber by parts": (
        "0.5 * min(abs(X), 1)**2 + max(abs(X) - 1, 0)", lambda x: np.clip(x, -1, 1)
    ),
    "size times x": ("abs(X) * X", lambda x: 2 * abs(x)),
    "both parts": ("max(X, 0) + min(X, 0)", np.ones_like),
    "rectified": ("relu(X) - relu(-X)", np.ones_like),
    "clipped": ("clip(X, -1, 1) + max(X - 1, 0) + min(X + 1, 0)", np.ones_like),
    "elu": ("where(X <= 0, expm1(min(X, 0)), X)", lambda x: np.where(x > 0, 1, np.exp(x))),
    "elu of minus x": (
        "where(X <= 0, expm1(-max(-X, 0)), X)", lambda x: np.where(x > 0, 1, np.exp(x))
    ),
    "elu of a multiple": (
        "where(0 < 2 * X, X, expm1(-abs(-3 * X) / 3))", lambda x: np.where(x > 0, 1, np.exp(x))
    ),
    "squares of parts": ("max(X, 0)**2 + min(X, 0)**2", lambda x: 2 * x),
}  # fmt: skip
POINTS = np.array([0.0, 1.0, -1.0, 0.25])
"""Values at which all bases meet ties, and others."""
NUMPYS = {
    "max": np.maximum, "min": np.minimum, "log1p": np.log1p, "exp": np.exp, "abs": np.abs,
    "log": np.log, "logaddexp": np.logaddexp, "where": np.where, "clip": np.clip,
    "expm1": np.expm1, "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip


@st.composite
def inner(draw: st.DrawFn) -> tuple[str, float, float]:
    """a * x + b as text, a and b."""
    a = draw(st.sampled_from([1.0, -1.0, 2.0, -0.5]))
    b = draw(st.sampled_from([0.0, 1.0, -2.0]))
    forms = [f"({a} * x + {b})", f"({b} - {-a} * x)", f"((x + {b / a}) * {a})"]
    return draw(st.sampled_from(forms)), a, b


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(BASES)), inner()), min_size=1, max_size=2))
def test_derivatives_at_ties_are_those_of_the_smooth_function(
    parts: list[tuple[str, tuple[str, float, float]]],
) -> None:
    _, (_, a, b) = parts[0]
    x = (POINTS - b) / a
    texts, expected = [], np.zeros(len(x))
    for name, (argument, factor, shift) in parts:
        text, derivative = BASES[name]
        texts.append(text.replace("X", argument))
        expected = expected + factor * derivative(factor * x + shift)
    text = f"y[i] = {' + '.join(texts)}".replace("x ", "x[i] ").replace("x)", "x[i])")
    backward = tp.vjp(text, x=x, wrt="x")(np.ones(len(x)))
    np.testing.assert_allclose(backward, expected, rtol=1e-12, atol=1e-14)
    forward = tp.jvp(text, x=x, wrt="x")(x=np.ones(len(x)))
    np.testing.assert_allclose(forward, expected, rtol=1e-12, atol=1e-14)


FORMS = ("x", "1.0 - 2.0 * x", "(x - 1.0) * -0.5")


@pytest.mark.parametrize("name", BASES)
def test_gradients_of_functions_at_ties(name: str) -> None:
    text, derivative = BASES[name]
    form = FORMS[list(BASES).index(name) % len(FORMS)]
    code = compile(text.replace("X", f"({form})"), name, "eval")
    argument = compile(form, form, "eval")

    def loss(x: Any) -> Any:
        return (W @ eval(code, {**NUMPYS, "x": x})).sum()

    W = np.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 1.0, -1.0]])
    factor = eval(argument, {"x": 1.0}) - eval(argument, {"x": 0.0})
    x = (POINTS - eval(argument, {"x": 0.0})) / factor
    expected = W.sum(0) * factor * derivative(POINTS)
    np.testing.assert_allclose(tp.grad(loss, "x")(x), expected, rtol=1e-12, atol=1e-14)


def test_second_derivatives_of_logaddexp_at_ties() -> None:
    x, ones = np.array([0.0, 1.0, -1.0]), np.ones(3)
    s = sigmoid(x)
    for text, second in (
        ("y[i] = logaddexp(x[i], 0)", s * (1 - s)),
        ("y[i] = logaddexp(2 * x[i], x[i])", s * (1 - s)),
        ("y[i] = logaddexp(x[i], x[i])", 0 * x),
    ):
        first = tp.vjp(text, x=x, wrt="x")
        again = tp.vjp(first.text, x=x, d_y=ones, wrt="x")(ones)
        np.testing.assert_allclose(again, second, rtol=1e-12, atol=1e-15)

        def inner(x: Any, text: str = text) -> Any:
            return tp.grad(lambda x: tp.evaluate(text, x=x).sum(), "x")(x).sum()

        np.testing.assert_allclose(tp.grad(inner, "x")(x), second, rtol=1e-12, atol=1e-15)


def shared_sigmoid(x: Any) -> Any:
    e = np.exp(-abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def shared_tanh(x: Any) -> Any:
    e = np.exp(-2 * abs(x))
    return np.where(3 * x < 0, (e - 1) / (1 + e), (1 - e) / (1 + e))


def shared_part(x: Any) -> Any:
    part = np.maximum(x, 0)
    return np.where(x > 0, part, 0) + part - 2 * np.clip(x, 0, np.inf) + x


def shared_below(x: Any) -> Any:
    e = np.exp(np.minimum(x, -x))
    return np.where(x < 0, e, 1) / (1 + e)


SHARED: dict[str, tuple[Any, Any]] = {
    "sigmoid": (shared_sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    "tanh": (shared_tanh, lambda x: 1 - np.tanh(x) ** 2),
    "part": (shared_part, np.ones_like),
    "numerator": (shared_below, lambda x: sigmoid(x) * sigmoid(-x)),
}
"""Smooth functions that use one value with a kink on both sides of it."""


@pytest.mark.parametrize("name", SHARED)
def test_values_with_kinks_that_both_branches_read(name: str) -> None:
    function, derivative = SHARED[name]
    weights = np.array([1.0, 2.0, -1.0, 3.0])
    gradient = tp.grad(lambda x: (function(2 * x - 1) * weights).sum(), "x")
    x = (POINTS + 1) / 2
    np.testing.assert_allclose(gradient(x), 2 * derivative(POINTS) * weights, rtol=1e-12)


def test_kinks_of_many_comparisons_are_made_few_times() -> None:
    def steps(x: Any) -> Any:
        value = sum(abs(x - each) for each in range(12))
        for each in range(12):
            value = np.where(x > each, 2 * value, 3 * value)
        return value.sum()

    x = np.array([0.5, 4.5])
    graph = tp.grad(steps, "x").graph(x)
    assert len(graph.primitives.nodes) < 1500
    found = tp.grad(steps, "x")(x)
    np.testing.assert_allclose(found, [2.0 * 3**11 * -10, 2.0**5 * 3**7 * -2])


STATEMENTS: dict[str, tuple[str, Any]] = {
    "sigmoid": (
        "e[i] = exp(-abs(x[i])); y[i] = where(x[i] >= 0, 1 / (1 + e[i]), e[i] / (1 + e[i]))",
        lambda x: sigmoid(x) * sigmoid(-x),
    ),
    "two statements before": (
        "a[j] = abs(3 * x[j]); e[i] = exp(-2 * a[i] / 3);"
        "y[k] = where(x[k] < 0, (e[k] - 1) / (1 + e[k]), (1 - e[k]) / (1 + e[k]))",
        lambda x: 1 - np.tanh(x) ** 2,
    ),
    "read beside a branch": (
        "p[i] = max(x[i], 0); y[i] = where(x[i] > 0, p[i], 0) + p[i] - 2 * max(x[i], 0) + x[i]",
        np.ones_like,
    ),
    "under a sum": (
        "e[i] = exp(min(x[i], -x[i])); y[i] = where(x[i] < 0, e[i] * sum(k, w[k]) / 2.0, 1.0)"
        " / (1 + e[i])",
        lambda x: sigmoid(x) * sigmoid(-x),
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_with_kinks_that_both_branches_read(name: str) -> None:
    text, derivative = STATEMENTS[name]
    operands = {"x": POINTS, **({"w": np.array([0.5, 1.5])} if "w[" in text else {})}
    seed, expected = np.array([1.0, 2.0, -1.0, 3.0]), derivative(POINTS)
    (backward,) = tp.vjp(text, operands, wrt=["x"], outputs="y")(seed)
    np.testing.assert_allclose(backward, expected * seed, rtol=1e-12)
    forward = tp.jvp(text, operands, wrt=["x"], outputs="y")(x=seed)
    np.testing.assert_allclose(forward, expected * seed, rtol=1e-12)

    def loss(x: Any) -> Any:
        return (tp.evaluate(text, {**operands, "x": x}, outputs="y") * seed).sum()

    np.testing.assert_allclose(tp.grad(loss, "x")(POINTS), expected * seed, rtol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "e[i] = abs(x[i]); e[i] += x[i]; y[i] = where(x[i] > 0, e[i], 2 * x[i])",
        "e[i] = abs(x[i]); e[i] += 2 * x[i]; y[i] = where(0 < x[i], 2 * e[i], x[i]) + e[i]",
    ],
)
def test_sums_of_several_statements_are_whole(text: str) -> None:
    x = np.array([-2.0, 1.0, 4.0])
    expected = tp.evaluate_dense(text, x=x, outputs="y")

    def function(x: Any) -> Any:
        return tp.evaluate(text, x=x, outputs="y")

    np.testing.assert_allclose(tp.fuse(function)(x), expected)
    slope = (
        tp.evaluate_dense(text, x=x + 1e-3, outputs="y")
        - tp.evaluate_dense(text, x=x - 1e-3, outputs="y")
    ) / 2e-3
    np.testing.assert_allclose(tp.vjp(text, x=x, outputs="y", wrt="x")(np.ones(3)), slope)
    np.testing.assert_allclose(tp.grad(lambda x: function(x).sum(), "x")(x), slope)


def test_values_of_other_comparisons_stay_in_statements_of_their_own() -> None:
    text = "e[i] = abs(x[i]); y[i] = where(x[i] >= 1, e[i], 2 * e[i] - 1)"
    pullback = tp.vjp(text, x=POINTS, wrt="x", outputs="y")
    assert pullback.text.count("abs(") <= 1
    np.testing.assert_allclose(pullback(np.ones(4)), [0.0, 1.5, -2.0, 2.0])
