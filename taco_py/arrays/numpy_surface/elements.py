"""NumPy's functions of elements that take more than one operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.surface_operands import operands
from taco_py.language.diagnostics.errors import OperandTypeError


def rounded(a: Any, decimals: int = 0) -> Any:
    """Round to decimals, halves to even."""
    if a.dtype.kind in "iub" and decimals >= 0:
        return a
    if not decimals:
        return np.rint(a)
    real = a.dtype if a.dtype.kind in "fc" else np.dtype(float)
    scale = real.type(10.0 ** abs(decimals))
    wide = np.rint(a * scale if decimals > 0 else a / scale)
    scaled = wide / scale if decimals > 0 else wide * scale
    return scaled if a.dtype.kind in "fc" else scaled.astype(a.dtype)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Replace NaN and infinities by numbers."""
    if x.dtype.kind == "c":
        raise OperandTypeError(
            "Expected real numbers for np.nan_to_num, found complex ones", hint="by its parts"
        )
    if x.dtype.kind != "f":
        return x
    limits, number = np.finfo(x.dtype), x.dtype.type
    most = limits.max if posinf is None else posinf
    least = limits.min if neginf is None else neginf
    finite = np.where(np.isnan(x), number(nan), x)
    finite = np.where(finite == number(np.inf), number(most), finite)
    return np.where(finite == number(-np.inf), number(least), finite)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Tell whether elements of two arrays differ by no more than tolerances."""
    a, b = operands(a, b)
    if getattr(b, "dtype", np.dtype(type(b))).kind in "biu":
        b = b * 1.0  # differences of whole numbers may wrap
    near = (abs(a - b) <= atol + rtol * abs(b)) & np.isfinite(b) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near


def allclose(a: Any, b: Any, **options: Any) -> Any:
    """Tell whether all elements of two arrays differ by no more than tolerances."""
    return isclose(a, b, **options).all()


def array_equal(a1: Any, a2: Any) -> Any:
    """Tell whether shapes and all elements are equal."""
    one, two = operands(a1, a2)
    return (one == two).all() if np.shape(one) == np.shape(two) else np.False_


def polyval(p: Any, x: Any) -> Any:
    """Evaluate a polynomial by Horner's rule."""
    factors = np.asarray(p) if isinstance(p, list | tuple) else p
    (x,) = operands(x, arguments=(p,))
    value = (x * 0).astype(x.dtype)
    for place in range(len(factors)):
        value = value * x + factors[place]
    return value
