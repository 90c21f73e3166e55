"""Values less their mean, by their deviation; the variance is that of differences from the mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import axes_of
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.nn.network_function import check_axis, network_function
from taco_py.language.diagnostics.errors import DimensionError


@network_function
def _layer_norm(x: Any, scale: Any, shift: Any, axis: Any, epsilon: Any) -> Any:
    axes = axes_of(axis, x.ndim)
    other_axes = tuple(mode for mode in range(x.ndim) if mode not in axes)
    scale, shift = (_stretched(array, x.ndim, other_axes) for array in (scale, shift))
    return _normalized(x, scale, shift, axes, epsilon)


@network_function
def _batch_norm(
    x: Any, scale: Any, shift: Any, axis: Any, epsilon: Any, mean: Any, variance: Any
) -> Any:
    axes = axes_of(axis, x.ndim)
    scale, shift, mean, variance = (
        _stretched(array, x.ndim, axes) for array in (scale, shift, mean, variance)
    )
    if mean is None:
        return _normalized(x, scale, shift, axes, epsilon)
    factor = 1 / np.sqrt(variance + epsilon)
    result = (x - mean) * (factor if scale is None else factor * scale)
    return result if shift is None else result + shift


def _normalized(x: Any, scale: Any, shift: Any, axes: tuple[int, ...], epsilon: Any) -> Any:
    deviation = x - x.mean(axes, keepdims=True)
    variance = (deviation * deviation).mean(axes, keepdims=True)
    result = deviation / np.sqrt(variance + epsilon)
    result = result if scale is None else result * scale
    return result if shift is None else result + shift


def _stretched(array: Any, order: int, axes: tuple[int, ...]) -> Any:
    """Return an array of the other modes, with modes of size 1 at axes."""
    if array is None or not np.ndim(array) or np.ndim(array) == order:
        return array
    if np.ndim(array) != order - len(axes):
        refuse(
            f"Expected an array of {order - len(axes)} modes to scale and shift by, found "
            f"{np.ndim(array)}",
            "it has a number for each element that is normalised alike",
            DimensionError,
        )
    return np.expand_dims(array, axes)


def layer_norm(
    x: Any,
    scale: Any = None,
    shift: Any = None,
    axis: int | tuple[int, ...] = -1,
    epsilon: float = 1e-5,
) -> Any:
    """Subtract the mean along an axis and divide by the deviation from it.

    >>> tp.nn.layer_norm(np.array([[1.0, 3.0], [10.0, 30.0]]), epsilon=0.0)
    array([[-1.,  1.],
           [-1.,  1.]])
    >>> tp.nn.layer_norm(np.array([[1.0, 3.0]]), scale=np.array([2.0, 2.0]), epsilon=0.0)
    array([[-2.,  2.]])

    x             an array, or one that is traced
    scale, shift  by what the result is multiplied, and what is added then: of the sizes of `axis`
    axis          of the numbers that are normalised together, or several
    epsilon       is added to the variance
    """
    return _layer_norm(x, scale, shift, check_axis(axis), epsilon)


def batch_norm(
    x: Any,
    scale: Any = None,
    shift: Any = None,
    axis: int | tuple[int, ...] = 0,
    epsilon: float = 1e-5,
    mean: Any = None,
    variance: Any = None,
) -> Any:
    """Subtract the mean over a batch and divide by the deviation from it.

    >>> tp.nn.batch_norm(np.array([[1.0, 10.0], [3.0, 30.0]]), epsilon=0.0)
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> tp.nn.batch_norm(np.array([[1.0], [3.0]]), mean=np.zeros(1), variance=np.full(1, 4.0),
    ...                  epsilon=0.0)
    array([[0.5],
           [1.5]])

    x               an array, or one that is traced
    scale, shift    by what the result is multiplied, and what is added then: of the other sizes
    axis            of the batch, or several: (0, 2, 3) of images with channels second
    epsilon         is added to the variance
    mean, variance  that are used in place of the batch's, both or none: those of training, where a
                    network is evaluated
    """
    if (mean is None) != (variance is None):
        refuse(
            "Expected a mean and a variance, or none of both, found one",
            "x.mean(axis) and x.var(axis) are those of a batch",
        )
    return _batch_norm(x, scale, shift, check_axis(axis), epsilon, mean, variance)
