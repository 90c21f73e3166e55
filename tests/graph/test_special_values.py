"""Zeros of either sign, infinities and NaN in traced functions: what NumPy makes of them.

A number of the function is a value like any other: nothing is left out beside it that an argument
with this value would make.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taco_py as tp

INF, NAN = np.inf, np.nan
X = np.array([1.0, INF, NAN, -2.0, -0.0, 0.0, -INF, 0.5])
Y = np.array([INF, -INF, 1.0, 0.0, -0.0, NAN, -3.0, 0.0])

ELEMENTS = (
    ("x * 0", "0.0 * x", "x * -0.0", "0 / x", "-0.0 / x", "x * False", "np.float64(0) * x"),
    ("x + 0", "x + -0.0", "x - 0", "0 - x", "-0.0 - x", "x * 1", "x * -1", "x / 1", "-(-x)"),
    ("x**0", "x**1", "x**2", "x - x", "x / x", "x + x", "0 * x * y", "x * 0 * y", "x * 0 + y"),
    ("x * 0 == 0", "x + INF", "x - INF", "INF - x", "x * INF", "INF / x", "x * NAN", "1 / x"),
    ("np.where(x > 0, 0.0, -0.0)", "np.where(x > 0, x * 0, y)", "0 * np.where(x > 0, x, y)"),
    ("np.maximum(x, -INF)", "np.minimum(x, INF)", "np.fmax(x, -INF)", "(x > 0) * 0 * y"),
    ("np.zeros_like(x) * x", "np.zeros(8) + x", "np.full_like(x, -0.0)", "x * (1 - 1)"),
    ("x * y * 0", "(x * 0) * INF", "x * (y - y)", "(x - x) * y", "x + (1 - 1)", "0 + x + 0"),
    ("np.exp(x) * 0", "np.sign(x) * 0", "np.copysign(0.0, x)", "np.signbit(x * 0)", "x * y + 0"),
    ("x[:, None] * 0 * y[None, :]", "np.outer(x, y) * 0", "np.isfinite(x) * 0.0 * y"),
)
"""By lines, each of which is one function."""
SUMS = (
    ("(x * 0).sum()", "0 * x.sum()", "np.sum(x * y * 0)", "(0 * x) @ y", "np.mean(x * 0)"),
    ("np.max(x * 0)", "np.cumsum(x * 0)", "(x[:, None] * 0 * y[None, :]).sum(1)"),
    ("np.einsum('i,i->', x, y) * 0", "np.prod(x * 0)", "0 * (x[3:6:2] @ y[3:5])", "np.var(x * 0)"),
)


def _function(texts: tuple[str, ...]) -> Callable[..., Any]:
    space: dict[str, Any] = {"np": np, "INF": INF, "NAN": NAN}
    exec(f"def f(x, y): return {', '.join(texts)},", space)
    found: Callable[..., Any] = space["f"]
    return found


def _compared(texts: tuple[str, ...], dtype: str, optimize: str, signs: bool) -> None:
    function, args = _function(texts), (X.astype(dtype), Y.astype(dtype))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(*args)
    found = tp.fuse(function, optimize=optimize)(*args)
    for text, one, other in zip(texts, found, expected, strict=True):
        assert one.dtype == np.asarray(other).dtype, text
        np.testing.assert_array_equal(one, other, text)
        if signs:
            known = ~np.isnan(other)
            assert np.array_equal(np.signbit(one[known]), np.signbit(other[known])), text


@pytest.mark.parametrize("optimize", ["stages", "none"])
@pytest.mark.parametrize("texts", ELEMENTS, ids=lambda texts: texts[0])
def test_functions_of_elements(texts: tuple[str, ...], optimize: str) -> None:
    _compared(texts, "float64", optimize, signs=True)


@pytest.mark.parametrize("texts", SUMS, ids=lambda texts: texts[0])
def test_sums(texts: tuple[str, ...]) -> None:
    _compared(texts, "float32", "stages", signs=False)


@pytest.mark.parametrize("number", [0, -0.0, INF, NAN, False])
def test_a_number_is_as_an_argument(number: float) -> None:
    def by_argument(x: Any, a: Any) -> Any:
        return x * a, a / x, x + a, x * a + 1

    found = tp.fuse(lambda x: by_argument(x, number))(X)
    for one, other in zip(found, tp.fuse(by_argument)(X, np.float64(number)), strict=True):
        np.testing.assert_array_equal(one, other)
        known = ~np.isnan(other)
        assert np.array_equal(np.signbit(one[known]), np.signbit(other[known]))
