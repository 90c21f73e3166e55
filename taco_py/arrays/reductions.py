"""Reductions over some modes of a Tensor: one assignment in index notation each.

    T.sum(0)             R[i1] = sum(i0, a0[i0,i1])
    T.std(1)             sqrt of R[i0] = var(i1, a0[i0,i1])

Elements that are not stored count, as the fill value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.api.evaluate import call_fast_path, evaluate
from taco_py.arrays.elementwise import as_tensor, elementwise
from taco_py.arrays.numpy_surface.axes import axes_of
from taco_py.arrays.shapes import expand_dims, of_dense, reshape
from taco_py.arrays.spelling import reduction_text
from taco_py.data.tensors.tensor import Tensor

Axis = int | Sequence[int] | None


AVERAGES: Mapping[str, Callable[..., Any]] = MappingProxyType({"mean": np.mean, "var": np.var})
"""Reductions that divide by the number of elements."""


def reduced(
    name: str,
    T: Tensor,  # noqa: N803
    axis: Axis = None,
    keepdims: bool = False,
    dtype: Any = None,
) -> Any:
    """Reduce by an operation of index notation over the modes in `axis`; None for all.

    Returns a Tensor, or a number where no mode is left. Raises DimensionError for an axis that does
    not exist or occurs twice.
    """
    order = len(T.shape)
    axes = axes_of(axis, order)
    if not axes:
        return _over_nothing(name, T, dtype)
    if name in AVERAGES and not all(T.shape[mode] for mode in axes):
        return _average_of_none(name, T, axes, keepdims, dtype)
    if dtype is not None and not np.can_cast(T.dtype, dtype, "safe"):
        return _in_narrow_type(name, T, axes, keepdims, np.dtype(dtype))
    text = reduction_text(name, order, axes)
    result = call_fast_path(text, ("a0",), T) if dtype is None else None
    result = as_tensor(evaluate(text, a0=T, dtype=dtype) if result is None else result)
    return expand_dims(result, axes) if keepdims else result


def _average_of_none(
    name: str,
    T: Tensor,  # noqa: N803
    axes: tuple[int, ...],
    keepdims: bool,
    dtype: Any,
) -> Any:
    """Return NumPy's NaN, with its warning, for the mean or variance of no elements."""
    average = AVERAGES[name](np.empty(T.shape, T.dtype), axes, dtype=dtype, keepdims=keepdims)
    return of_dense(average) if np.ndim(average) else average


def _in_narrow_type(
    name: str,
    T: Tensor,  # noqa: N803
    axes: tuple[int, ...],
    keepdims: bool,
    dtype: np.dtype[Any],
) -> Any:
    """Reduce elements after converting them to a dtype that cannot represent all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        converted = T.astype(dtype)
    if dtype.kind not in "biu":
        return reduced(name, converted, axes, keepdims)
    if name != "mean":
        return reduced(name, converted, axes, keepdims, dtype)
    total = reduced("sum", converted, axes, keepdims, dtype)
    return np.divide(total, prod(T.shape[axis] for axis in axes)).astype(dtype)


def _over_nothing(name: str, T: Tensor, dtype: Any) -> Any:  # noqa: N803
    """Reduce over no mode, by adding one of size 1."""
    if not T.shape:
        return reduced(name, reshape(T, (1,)), None, False, dtype)
    return reduced(name, expand_dims(T, (T.ndim,)), T.ndim, False, dtype)


def var(
    T: Tensor,  # noqa: N803
    axis: Axis = None,
    keepdims: bool = False,
    correction: float = 0,
) -> Any:
    """Compute the variance, dividing by the number of values less `correction`."""
    count = prod(T.shape[mode] for mode in axes_of(axis, T.ndim))
    variance = reduced("var", T, axis, keepdims)
    if not correction:
        return variance
    with np.errstate(all="ignore"):
        factor = np.float64(count) / np.float64(count - correction)
    return (
        elementwise("multiply", variance, float(factor))
        if isinstance(variance, Tensor)
        else (variance * variance.dtype.type(factor))
    )


def std(
    T: Tensor,  # noqa: N803
    axis: Axis = None,
    keepdims: bool = False,
    correction: float = 0,
) -> Any:
    """Compute the square root of the variance."""
    return np.sqrt(var(T, axis, keepdims, correction))
