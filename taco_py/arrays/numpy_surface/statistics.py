"""NumPy's reductions that are written by others: norms, means, integrals.

np.linalg.norm(x, 1)       →   sum(abs(x))
np.logaddexp.reduce(x)     →   m + log(sum(exp(x - m))), m = max(x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import at_axis, axes_of, place_of, places_of
from taco_py.arrays.numpy_surface.layouts import at_least, diff
from taco_py.arrays.numpy_surface.surface_operands import operands
from taco_py.language.diagnostics.errors import DimensionError, OperandError, OperandTypeError


def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Subtract the smallest element from the largest."""
    if a.dtype.kind == "b":
        raise OperandTypeError(
            "Expected numbers to subtract for np.ptp, found dtype bool", hint="x.astype(np.int8)"
        )
    return a.max(axis, keepdims=keepdims) - a.min(axis, keepdims=keepdims)


def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    """Compute the mean, weighted if weights are given."""
    if weights is None:
        return a.mean(axis, keepdims=keepdims)
    a, w = operands(a, weights)
    if w.ndim != a.ndim:
        if w.ndim != 1 or not isinstance(axis, int):
            raise DimensionError(
                "Expected weights of the shape of x, or a vector of them",
                hint="stretch them first",
            )
        place = place_of(axis, a.ndim)
        w = np.expand_dims(w, tuple(n for n in range(a.ndim) if n != place))
    return (a * w).sum(axis, keepdims=keepdims) / w.sum(axis, keepdims=keepdims)


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None
) -> Any:
    """Compute covariances of variables in rows, or in columns without `rowvar`."""
    if y is not None:
        raise OperandError("Expected np.cov of one array, found two", hint="concatenate them first")
    x = at_least(2)(m)
    x = x.astype(np.result_type(x.dtype, np.float64))
    if not rowvar and x.shape[0] != 1:
        x = x.T
    less = (0 if bias else 1) if ddof is None else ddof
    centred = x - x.mean(1, keepdims=True)
    other = centred.conj() if x.dtype.kind == "c" else centred
    products = (centred @ other.T) / (x.shape[1] - less)
    return products[0, 0] if x.shape[0] == 1 else products


def type_of_reduction(name: str, dtype: Any) -> np.dtype[Any]:
    """Return the type of dtype=. Raises OperandTypeError where a division gives no such numbers."""
    element_type: np.dtype[Any] = np.dtype(dtype)
    if name in ("mean", "var", "std") and element_type.kind in "biu":
        raise OperandTypeError(
            f"Expected a floating or complex type for dtype= of np.{name}, found {element_type}",
            hint="convert the result: .astype(dtype)",
        )
    return element_type


def without_nan(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make np.nansum of np.sum, and likewise of np.prod and np.mean; NaN is left out."""
    name = function.__name__

    def reduce(a: Any, axis: Any = None, **options: Any) -> Any:
        if a.dtype.kind not in "fc":
            return function(a, axis, **options)
        absent = np.isnan(a)
        numbers = np.where(absent, a.dtype.type(1 if name == "prod" else 0), a)
        if name != "mean":
            return function(numbers, axis, **options)
        dtype = type_of_reduction(name, options.get("dtype") or a.dtype)
        sums, counts = (np.sum(x, axis, **options) for x in (numbers, ~absent))
        return (sums / counts).astype(dtype)

    return reduce


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """Compute the integral of a function that is linear between its points."""
    (y,) = operands(y, arguments=(x,))
    place = place_of(axis, y.ndim)
    step: Any = dx
    if x is not None:
        (x,) = operands(x, arguments=(y,))
        step = diff(x, axis=-1 if x.ndim == 1 else place)
        if step.ndim != y.ndim:
            step = np.expand_dims(step, tuple(n for n in range(y.ndim) if n != place))
    later, earlier = (y[at_axis(place, part)] for part in (slice(1, None), slice(None, -1)))
    return (step * (later + earlier) / 2.0).sum(place)


def logaddexp_reduce(x: Any, axis: Any = 0, keepdims: bool = False) -> Any:
    """Compute the logarithm of a sum of exponentials."""
    most = x.max(axis, keepdims=True)
    finite = np.where(np.isfinite(most), most, x.dtype.type(0))
    sums = np.log(np.exp(x - finite).sum(axis, keepdims=True)) + finite
    return sums if keepdims else np.squeeze(sums, axes_of(axis, x.ndim))


# ---------------------------------------------------------------- norms


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute np.linalg.norm of all elements, of vectors along a mode, or of matrices."""
    axes = places_of(axis, x.ndim)
    if ord is None or len(axes) == 1:
        return vector_norm(x, 2 if ord is None else ord, axis, keepdims)
    if len(axes) != 2:
        raise DimensionError(
            f"Expected one mode or two for a norm, found {len(axes)}", hint="axis=(0, 1)"
        )
    return matrix_norm(x, ord, axes, keepdims)


def vector_norm(x: Any, ord: float = 2, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute norms over modes, without axis of all elements: (sum |x|**ord)**(1/ord)."""
    sizes = _floating(x) if ord == 2 and x.dtype.kind != "c" else abs(_floating(x))
    if abs(ord) == np.inf:
        return (sizes.max if ord > 0 else sizes.min)(axis, keepdims=keepdims)
    if ord == 0:
        return (sizes != 0).astype(sizes.dtype).sum(axis, keepdims=keepdims)
    if ord == 1:
        return sizes.sum(axis, keepdims=keepdims)
    if ord == 2:
        return np.sqrt((sizes * sizes).sum(axis, keepdims=keepdims))
    return (sizes**ord).sum(axis, keepdims=keepdims) ** (1.0 / ord)


def matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    """Compute norms of matrices in two modes: "fro", 1, inf, or the least of these, -1, -inf."""
    if ord == "fro":
        return vector_norm(x, 2, axes, keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        raise OperandError(
            f"Expected another order of a norm than {ord!r}", hint='"fro", 1, inf, -1 or -inf'
        )
    summed, compared = axes if abs(ord) == 1 else axes[::-1]
    sums = abs(_floating(x)).sum(summed, keepdims=True)
    norms = (sums.max if ord > 0 else sums.min)(compared, keepdims=True)
    return norms if keepdims else np.squeeze(norms, axes)


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else x.astype(np.float64)
