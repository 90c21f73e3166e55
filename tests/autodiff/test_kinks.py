"""Derivatives where values are equal: of smooth functions their own, of others the mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taco_py as tp

x = np.array([0.0, 1.0, -1.0, 0.5])
s = 1 / (1 + np.exp(-x))
zeros = np.zeros(4)

SMOOTH: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "logaddexp(0, x)": (lambda x: np.logaddexp(0, x), s),
    "logaddexp(x, 1)": (lambda x: np.logaddexp(x, 1.0), 1 / (1 + np.exp(1 - x))),
    "logaddexp of an array": (lambda x: np.logaddexp(x, zeros), s),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), s),
    "softplus by where": (lambda x: np.where(x > 0, x, 0) + np.log1p(np.exp(-abs(x))), s),
    "softplus by wheres": (
        lambda x: np.where(x >= 0, x, 0) + np.log1p(np.exp(np.where(x >= 0, -x, x))), s
    ),
    "logistic loss": (lambda x: np.maximum(x, 0) - x * x + np.log1p(np.exp(-abs(x))), s - 2 * x),
    "both parts": (lambda x: np.maximum(x, 0) + np.minimum(x, 0), np.ones(4)),
    "parts by where and minimum": (lambda x: np.where(x > 0, x, 0) + np.minimum(x, 0), np.ones(4)),
    "three parts": (
        lambda x: np.clip(x, 0, 1) + np.maximum(x - 1, 0) + np.minimum(x, 0), np.ones(4)
    ),
    "both orders": (lambda x: np.maximum(x, x * x) + np.minimum(x, x * x), 1 + 2 * x),
    "Huber": (
        lambda x: 0.5 * np.minimum(abs(x), 1) ** 2 + np.maximum(abs(x) - 1, 0), np.clip(x, -1, 1)
    ),
    "Huber by where": (
        lambda x: np.where(abs(x) <= 1, 0.5 * x * x, abs(x) - 0.5), np.clip(x, -1, 1)
    ),
    "Huber by clip": (
        lambda x: np.clip(x, -1, 1) * (x - np.clip(x, -1, 1) / 2), np.clip(x, -1, 1)
    ),
    "squares of parts": (lambda x: np.maximum(x, 0) ** 2 + np.minimum(x, 0) ** 2, 2 * x),
    "x times its size": (lambda x: x * abs(x), 2 * abs(x)),
    "elu": (
        lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), np.where(x > 0, 1, np.exp(x))
    ),
    "elu by two wheres": (
        lambda x: np.where(x > 0, x, np.expm1(np.where(x > 0, 0, x))), np.where(x > 0, 1, np.exp(x))
    ),
    "softplus of sides": (
        lambda x: np.where(
            x > 0, x + np.log1p(np.exp(-abs(x))), np.log1p(np.exp(np.minimum(x, 0)))
        ),
        s,
    ),
    "differences": (lambda x: np.maximum(x, 0) - np.maximum(-x, 0), np.ones(4)),
    "fmax and fmin": (lambda x: np.fmax(x, 0.5) + np.fmin(x, 0.5), np.ones(4)),
    "extrema of pairs": (
        lambda x: np.stack([x, zeros]).max(0) + np.stack([x, zeros]).min(0), np.ones(4)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_have_their_own_derivative(name: str) -> None:
    function, expected = SMOOTH[name]
    gradient = tp.grad(lambda x: function(x).sum(), "x")
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(tp.fuse(gradient)(x), expected, rtol=1e-12, atol=1e-15)


TEXTS = {
    "y[i] = logaddexp(x[i], 0)": s,
    "y[i] = max(x[i], 0) + log1p(exp(-abs(x[i])))": s,
    "y[i] = where(x[i] > 0, x[i], 0) + log1p(exp(-abs(x[i])))": s,
    "y[i] = max(x[i], 0) + min(x[i], 0)": np.ones(4),
    "y[i] = where(x[i] < 0, x[i], 0) + max(x[i], 0)": np.ones(4),
    "y[i] = 0.5 * min(abs(x[i]), 1)**2 + max(abs(x[i]) - 1, 0)": np.clip(x, -1, 1),
    "y[i] = where(x[i] > 0, x[i], expm1(min(x[i], 0)))": np.where(x > 0, 1, np.exp(x)),
    "y[i] = where(x[i] > 0, x[i], expm1(where(x[i] > 0, 0, x[i])))": np.where(x > 0, 1, np.exp(x)),
    "y[i] = where(x[i] > 0, x[i] + log1p(exp(-abs(x[i]))), log1p(exp(min(x[i], 0))))": s,
    "y[i] = max(x[i], 0)": np.array([0.5, 1, 0, 1]),
    "y[i] = abs(x[i])": np.sign(x),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_have_the_derivatives_of_functions(text: str) -> None:
    expected = TEXTS[text]
    backward = tp.vjp(text, x=x, wrt="x")(np.ones(4))
    np.testing.assert_allclose(backward, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(tp.jvp(text, x=x)(x=np.ones(4)), expected, rtol=1e-12, atol=1e-15)
    inside = tp.grad(lambda x: tp.evaluate(text, x=x).sum(), "x")
    np.testing.assert_allclose(inside(x), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: np.maximum(x, 0), 0.5),
        (lambda x: np.where(x > 0, x, 0), 0.5),
        (lambda x: np.minimum(x, 0), 0.5),
        (lambda x: abs(x), 0),
        (lambda x: np.clip(x, 0, 1), 0.5),
        (lambda x: np.where(x > 0, x, 0.5 * x), 0.75),
        (lambda x: tp.nn.relu(x), 0),
        (lambda x: np.where(x > 0, x, 1), 0),  # no kink but a jump: what is taken
    ],
)
def test_kinks_have_the_mean_of_both_sides(function: Any, expected: float) -> None:
    assert tp.grad(lambda x: function(x).sum(), "x")(np.zeros(1))[0] == expected


def test_what_is_not_differentiated_chooses_alone() -> None:
    mask = np.array([0.0, 1.0, 0.0, 1.0])
    gradient = tp.grad(lambda x, m: np.where(m > 0, x, 0).sum(), "x")
    np.testing.assert_array_equal(gradient(x * 0, mask), mask)
    found = tp.vjp("y[i] = where(m[i] > 0, x[i], 0)", x=x * 0, m=mask, wrt="x")(np.ones(4))
    np.testing.assert_array_equal(found, mask)


def test_logaddexp_has_derivatives_of_higher_order() -> None:
    first = tp.grad(lambda x: np.logaddexp(0, x).sum(), "x")
    second = tp.grad(lambda x: first(x).sum(), "x")
    np.testing.assert_allclose(second(x), s * (1 - s), rtol=1e-12)
    third = tp.grad(lambda x: second(x).sum(), "x")
    np.testing.assert_allclose(third(x), s * (1 - s) * (1 - 2 * s), rtol=1e-12, atol=1e-15)
    infinite = tp.grad(lambda x: np.logaddexp(x, -np.inf).sum(), "x")
    np.testing.assert_array_equal(infinite(np.array([1.0, -np.inf, np.inf])), [1, 0.5, 1])
