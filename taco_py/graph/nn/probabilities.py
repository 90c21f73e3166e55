"""Softmax, its logarithm, and logarithms of sums of exponentials, less the maximum first."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import axes_of
from taco_py.graph.nn.network_function import check_axis, derivative_by, network_function


@network_function
def _softmax(x: Any, axis: Any) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    result = e / e.sum(axis, keepdims=True)
    return derivative_by("softmax", result, x, axes=axes_of(axis, x.ndim))


@network_function
def _log_softmax(x: Any, axis: Any) -> Any:
    shifted = x - x.max(axis, keepdims=True)
    result = shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
    return derivative_by("log_softmax", result, x, axes=axes_of(axis, x.ndim))


@network_function
def _logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    axes = axes_of(axis, x.ndim)
    most = x.max(axes, keepdims=True)
    most = np.where(np.isfinite(most), most, 0)  # of infinities, whose difference is NaN
    sums = np.log(np.exp(x - most).sum(axes, keepdims=True)) + most
    result = derivative_by("logsumexp", sums.squeeze(axes), x, axes=axes)
    return np.expand_dims(result, axes) if keepdims else result


def softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> Any:
    """Compute exp(x) / sum(exp(x)), which is finite for all finite x.

    >>> tp.nn.softmax(np.array([[0.0, 0.0], [1000.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    >>> tp.grad(lambda x: tp.nn.softmax(x)[0], wrt="x")(np.zeros(2))
    array([ 0.25, -0.25])

    x     an array, or one that is traced
    axis  of the numbers that are 1 together, several of them, or None for all
    """
    return _softmax(x, check_axis(axis))


def log_softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> Any:
    """Compute x - log(sum(exp(x))), which is finite for all finite x.

    >>> tp.nn.log_softmax(np.array([0.0, 1000.0]))
    array([-1000.,     0.])
    >>> tp.grad(lambda x: tp.nn.log_softmax(x)[0], wrt="x")(np.zeros(2))
    array([ 0.5, -0.5])

    x     an array, or one that is traced
    axis  of the numbers whose exponentials are 1 together, several of them, or None for all
    """
    return _log_softmax(x, check_axis(axis))


def logsumexp(x: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """Compute log(sum(exp(x))), which is finite for all finite x, and -inf where all are -inf.

    >>> float(tp.nn.logsumexp(np.array([1000.0, 1000.0])))
    1000.6931471805599
    >>> tp.grad(lambda x: tp.nn.logsumexp(x), wrt="x")(np.zeros(2))
    array([0.5, 0.5])

    x         an array, or one that is traced
    axis      over which is summed, several of them, or None for all
    keepdims  whether axes that are summed over stay, of size 1
    """
    return _logsumexp(x, check_axis(axis), bool(keepdims))
