"""Operands in remapped formats, whose padding holds their fill value, against the dense oracle."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import taco_py as tp

FORMATS: Mapping[str, Any] = {
    "bsr": tp.BSR((2, 2)),
    "tall blocks": tp.BSR((4, 1)),
    "blocked": tp.Blocked((4, 1)),
    "dia": tp.DIA,
    "sdia": "sdia(4)",
    "ell": tp.ELL,
    "sell": "sell(4)",
    "rle": "rle",
    "sym": "sym",
    "nm": "nm(3,4)",
}
FILLS = (2.0, -1.0, np.inf)
TEXTS = (
    "y[i] = A[i,j] * x[j]",
    "y[j] = A[i,j] * x[i]",
    "s = A[i,j]",
    "y[i] = A[i,j] * A[i,j]",
    "C[i,k] = A[i,j] * B[j,k]",
    "y[k] = A[i,j] * B[i,k]",
    "s = A[i,j] + B[i,j]",
    "C[i,j] = A[i,j] * D[i,j] + B[i,j]",
    "y[i] = max(j, A[i,j])",
    "y[i] += A[i,j] * x[j]",
)
SIZE = 5
"""A size that blocks of 2 and of 4 do not divide."""


def operands(form: Any, fill: float, filled: str) -> dict[str, Any]:
    """Symmetric matrices A and B in a format, of which one has a fill value; the other is 0.

    filled  "A" in the format beside a plain B, or "B" in "ds" beside A in the format
    """
    rng = np.random.default_rng(3)
    numbers = np.triu(rng.integers(1, 4, (SIZE, SIZE)) * (rng.random((SIZE, SIZE)) < 0.5))
    A, B = (each + np.triu(each, 1).T for each in (numbers, numbers[::-1, ::-1].T))
    A, B = A.astype(float), B.astype(float)
    if filled == "A":
        A = tp.tensor(np.where(A == 0, fill, A), format=form, fill_value=fill)
        B = tp.tensor(B, format="ds")
    else:
        A = tp.tensor(A, format=form)
        B = tp.tensor(np.where(B == 0, fill, B), format="ds", fill_value=fill)
    x = rng.integers(1, 4, SIZE).astype(float)
    return {"A": A, "B": B, "D": rng.integers(1, 4, (SIZE, SIZE)).astype(float), "x": x, "y": x}


def read(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operands that a text reads."""
    target, value = text.split("=", 1)
    target = target if "+" in target else ""
    return {name: obj for name, obj in given.items() if f"{name}[" in value + target}


def explained(text: str, given: Mapping[str, Any]) -> Any:
    told = str(tp.explain(text, given))
    assert "its fill value is" in told or not given["A"].fill_value
    return tp.evaluate(text, given)


VERBS: Mapping[str, Callable[[str, Mapping[str, Any]], Any]] = {
    "evaluate": tp.evaluate,
    "compile": lambda text, given: tp.compile(text, given)(**given),
    "pickle": lambda text, given: pickle.loads(pickle.dumps(tp.compile(text, given)))(**given),
    "explain": explained,
    "fuse": lambda text, given: tp.fuse(
        lambda *arrays: tp.evaluate(text, dict(zip(given, arrays, strict=True)))
    )(*given.values()),
}


def as_array(value: Any) -> Any:
    return value.to_numpy() if isinstance(value, tp.Tensor) else np.asarray(value)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("filled", ["A", "B"])
@pytest.mark.parametrize("name", FORMATS)
def test_calls(name: str, filled: str, verb: str) -> None:
    for fill in FILLS:
        given = operands(FORMATS[name], fill, filled)
        for text in TEXTS:
            passed = read(text, given)
            if filled in passed:
                result, right = VERBS[verb](text, passed), tp.evaluate_dense(text, passed)
                np.testing.assert_array_equal(as_array(result), right, f"{text} with {fill}")


@pytest.mark.parametrize("name", FORMATS)
def test_derivatives(name: str) -> None:
    """The derivative by x is the sum of all elements, that by A is where A stores something."""
    text = "y[i] = A[i,j] * x[j]"
    for fill in (2.0, -1.0):
        passed = read(text, operands(FORMATS[name], fill, "A"))
        by_A, by_x = tp.vjp(text, passed, wrt=("A", "x"))(np.ones(SIZE))
        np.testing.assert_array_equal(as_array(by_x), passed["A"].to_numpy().sum(0))
        stored = tp.evaluate_dense("P[i,j] = stored(A[i,j])", {"A": passed["A"]})
        np.testing.assert_array_equal(as_array(by_A), stored * passed["x"])


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_after_one_of_another_fill_value(name: str) -> None:
    """What calls remember of shapes and formats is not taken for another fill value."""
    text = "s = A[i,j] + B[i,j]"
    for filled in "AB":
        for fill in (0.0, 2.0, 0.0, -1.0):
            passed = read(text, operands(FORMATS[name], fill, filled))
            assert tp.evaluate(text, passed) == tp.evaluate_dense(text, passed)


@pytest.mark.parametrize("name", FORMATS)
def test_a_kernel_refuses_another_fill_value(name: str) -> None:
    text = "y[i] = A[i,j] * x[j]"
    passed = read(text, operands(FORMATS[name], 2.0, "A"))
    for sample in (passed["A"].format, tp.tensor(np.eye(SIZE), format=FORMATS[name])):
        kernel = tp.compile(text, A=sample, x="d")
        with pytest.raises(tp.FormatError, match=r"A with the fill value 0.0 .* found 2.0"):
            kernel(**passed)
