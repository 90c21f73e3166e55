"""Functions of elements between the layers of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.nn.network_function import check_choice, derivative_by, network_function

ROOT_OF_HALF = 0.7071067811865476
ROOT_OF_TWO_BY_PI = 0.7978845608028654


@network_function
def _relu(x: Any) -> Any:
    result = np.maximum(x, 0)
    return derivative_by("relu", result, x) if isinstance(result, TracedArray) else result


@network_function
def _gelu(x: Any, approximate: str) -> Any:
    from scipy.special import erf

    check_choice("approximate", approximate, ("none", "tanh"))
    if approximate == "none":
        return 0.5 * x * (1 + erf(ROOT_OF_HALF * x))
    return 0.5 * x * (1 + np.tanh(ROOT_OF_TWO_BY_PI * (x + 0.044715 * x * x * x)))


@network_function
def _silu(x: Any) -> Any:
    from scipy.special import expit

    return x * expit(x)


@network_function
def _threshold(x: Any, least: Any, value: Any) -> Any:
    return np.where(x > least, x, value)


def relu(x: Any) -> Any:
    """Compute max(x, 0), whose derivative at 0 is 0.

    >>> tp.nn.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    >>> tp.nn.relu(sp.csr_array([[0.0, -1.0], [3.0, 0.0]])).toarray()
    array([[0., 0.],
           [3., 0.]])

    x  an array, or one that is traced
    """
    return _relu(x)


def gelu(x: Any, approximate: str = "none") -> Any:
    """Compute x times the normal distribution's share below x.

    >>> tp.nn.gelu(np.array([0.0, 1.0]))
    array([0.        , 0.84134475])
    >>> tp.nn.gelu(np.array([0.0, 1.0]), approximate="tanh")
    array([0.        , 0.84119199])

    x            an array, or one that is traced
    approximate  "none", by erf, or "tanh", which is off by 5e-4 at most
    """
    return _gelu(x, approximate)


def silu(x: Any) -> Any:
    """Compute x / (1 + exp(-x)).

    >>> tp.nn.silu(np.array([0.0, 1.0]))
    array([0.        , 0.73105858])
    >>> tp.grad(lambda x: tp.nn.silu(x).sum(), wrt="x")(np.zeros(1))
    array([0.5])

    x  an array, or one that is traced
    """
    return _silu(x)


def threshold(x: Any, least: float, value: float = 0.0) -> Any:
    """Keep elements larger than a number, and replace the rest by another.

    >>> tp.nn.threshold(np.array([0.1, 0.5]), 0.2)
    array([0. , 0.5])
    >>> tp.nn.threshold(np.array([0.1, 0.5]), 0.2, -1.0)
    array([-1. ,  0.5])

    x      an array, or one that is traced
    least  the number; a NaN is not larger
    value  what is put in its place
    """
    if isinstance(least, str) or isinstance(value, str):
        refuse("Expected numbers for least and value, found a text", "tp.nn.threshold(x, 0.1, 0.0)")
    return _threshold(x, least, value)
