"""NumPy's functions that are written by others: products, norms, statistics.

np.linalg.norm(x, 1)       →   sum(abs(x))
np.logaddexp.reduce(x)     →   m + log(sum(exp(x - m))), m = max(x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taco_py.graph.capture import traced_layouts as layouts
from taco_py.graph.capture import traced_ufuncs as ufuncs
from taco_py.graph.capture.composed_layouts import (
    Traced,
    along_axis,
    at_least,
    axis_of,
    diff,
    traced,
    unstack,
)
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.capture.traced_ufuncs import axes_of
from taco_py.graph.samples import sample

# ---------------------------------------------------------------- products


def multi_dot(recorder: Recorder, arrays: Sequence[Any]) -> Traced:
    """Note np.linalg.multi_dot: a product of matrices, in the order that its plan has."""
    parts = [traced(recorder, each) for each in arrays]
    labels: list[tuple[int, ...]] = []
    for place, x in enumerate(parts):
        vector = (place + 1,) if place == 0 else (place,)
        labels.append(vector if x.ndim == 1 else (place, place + 1))
    read = [part for pair in zip(parts, labels, strict=True) for part in pair]
    ends = [*labels[0][: len(labels[0]) - 1], *labels[-1][1:]]
    if len(parts) < 2:
        refuse("Expected two arrays or more, found fewer", "np.linalg.multi_dot([A, B])")
    return recorder.operations["einsum"](recorder, *read, ends)


def vdot(recorder: Recorder, a: Any, b: Any) -> Traced:
    """Note np.vdot: the inner product of all elements, the first ones conjugate."""
    one, two = traced(recorder, a).ravel(), traced(recorder, b).ravel()
    return (one.conj() if one.dtype.kind == "c" else one) @ two


def inner(recorder: Recorder, a: Any, b: Any) -> Traced:
    """Note np.inner: a sum over the last modes of both."""
    one, two = traced(recorder, a), traced(recorder, b)
    if not one.ndim or not two.ndim:
        return one * two
    return recorder.operations["tensordot"](recorder, one, two, ((one.ndim - 1,), (two.ndim - 1,)))


def vecdot(recorder: Recorder, a: Any, b: Any, axis: int = -1) -> Traced:
    """Note np.vecdot: inner products along an axis, the first vectors conjugate."""
    one, two = traced(recorder, a), traced(recorder, b)
    return ((one.conj() if one.dtype.kind == "c" else one) * two).sum(axis)


def kron(recorder: Recorder, a: Any, b: Any) -> Traced:
    """Note np.kron of arrays of as many modes: each element of a times b."""
    one, two = traced(recorder, a), traced(recorder, b)
    order = max(one.ndim, two.ndim)
    one, two = (
        layouts.expand_dims(recorder, x, tuple(range(order - x.ndim))) if x.ndim < order else x
        for x in (one, two)
    )
    sizes = [n * m for n, m in zip(one.shape, two.shape, strict=True)]
    left = layouts.expand_dims(recorder, one, tuple(range(1, 2 * order, 2))) if order else one
    right = layouts.expand_dims(recorder, two, tuple(range(0, 2 * order, 2))) if order else two
    return layouts.reshape(recorder, left * right, tuple(sizes)) if order else left * right


def cross(recorder: Recorder, a: Any, b: Any, axis: int = -1) -> Traced:
    """Note np.cross of vectors of three elements along an axis."""
    one, two = traced(recorder, a), traced(recorder, b)
    places = [axis_of(recorder, x, axis) for x in (one, two)]
    if [int(x.shape[own]) for x, own in zip((one, two), places, strict=True)] != [3, 3]:
        refuse("Expected three elements along the axis, found others", "write it by its parts")
    (a0, a1, a2), (b0, b1, b2) = (
        unstack(recorder, x, axis=own) for x, own in zip((one, two), places, strict=True)
    )
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return layouts.stack(recorder, parts, axis)


# ---------------------------------------------------------------- statistics


def average(
    recorder: Recorder, x: Any, axis: Any = None, weights: Any = None, *, keepdims: Any = False
) -> Traced:
    """Note np.average: the mean, weighted if weights are given."""
    x = traced(recorder, x)
    keep = bool(keepdims) and keepdims is not np._NoValue
    if weights is None:
        return x.mean(axis, keepdims=keep)
    w = traced(recorder, weights)
    if w.ndim != x.ndim:
        if w.ndim != 1 or not isinstance(axis, int):
            refuse("Expected weights of the shape of x, or a vector of them", "stretch them first")
        own = axis_of(recorder, x, axis)
        w = layouts.expand_dims(recorder, w, tuple(each for each in range(x.ndim) if each != own))
    return (x * w).sum(axis, keepdims=keep) / w.sum(axis, keepdims=keep)


def cov(
    recorder: Recorder, m: Any, y: Any = None, rowvar: bool = True, bias: bool = False,
    ddof: int | None = None,
) -> Traced:  # fmt: skip
    """Note np.cov of variables in rows, or in columns without `rowvar`."""
    if y is not None:
        refuse("Expected np.cov of one array, found two", "concatenate them first")
    x = at_least(2)(recorder, m)
    x = layouts.astype(recorder, x, np.result_type(x.dtype, np.float64))
    if not rowvar and x.shape[0] != 1:
        x = x.T
    less = (0 if bias else 1) if ddof is None else ddof
    centred = x - x.mean(1, keepdims=True)
    other = centred.conj() if x.dtype.kind == "c" else centred
    found = (centred @ other.T) / (x.shape[1] - less)
    return found[0, 0] if x.shape[0] == 1 else found


def ptp(recorder: Recorder, x: Any, axis: Any = None, *, keepdims: Any = False) -> Traced:
    """Note np.ptp: the largest element less the smallest."""
    x = traced(recorder, x)
    keep = bool(keepdims) and keepdims is not np._NoValue
    return x.max(axis, keepdims=keep) - x.min(axis, keepdims=keep)


def without_nan(name: str) -> Callable[..., Any]:
    """np.nansum, np.nanprod, np.nanmean: NaN is left out."""

    def reduce(recorder: Recorder, x: Any, axis: Any = None, **options: Any) -> Traced:
        x = traced(recorder, x)
        if x.dtype.kind not in "fc":
            return ufuncs.reduction(name)(recorder, x, axis, **options)
        gone = np.isnan(x)
        neutral = x.dtype.type(1 if name == "prod" else 0)
        known = ufuncs.where(recorder, gone, neutral, x)
        if name != "mean":
            return ufuncs.reduction(name)(recorder, known, axis, **options)
        wanted = ufuncs.type_of_reduction(name, options.get("dtype") or x.dtype)
        sums = ufuncs.reduction("sum")(recorder, known, axis, **options)
        counts = ufuncs.reduction("sum")(recorder, ~gone, axis, **options)
        return layouts.astype(recorder, sums / counts, wanted)

    return reduce


def nan_to_num(
    recorder: Recorder, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None,
    neginf: Any = None,
) -> Traced:  # fmt: skip
    """Note np.nan_to_num: numbers in place of NaN and infinities."""
    x = traced(recorder, x)
    if x.dtype.kind != "f":
        if x.dtype.kind == "c":
            refuse("Expected real numbers for np.nan_to_num, found complex ones", "by its parts")
        return x
    limits, make = np.finfo(x.dtype), x.dtype.type
    most, least = (e if e is not None else d for e, d in ((posinf, limits.max),
                                                          (neginf, limits.min)))  # fmt: skip
    for gone, value in ((np.isnan(x), nan), (x == make(np.inf), most), (x == make(-np.inf), least)):
        x = ufuncs.where(recorder, gone, make(value), x)
    return x


def norm(
    recorder: Recorder, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Traced:
    """Note np.linalg.norm of vectors by any power, and of matrices by squares and sums."""
    x = traced(recorder, x)
    x = x if x.dtype.kind in "fc" else x.astype(float)
    size = abs(x) if x.dtype.kind == "c" or ord not in (None, 2, "fro") else x
    axes = axes_of(recorder, axis, x.ndim)
    if ord is None or (len(axes) == 1 and ord == 2) or (len(axes) == 2 and ord == "fro"):
        return np.sqrt((size * size).sum(axis, keepdims=keepdims))
    if len(axes) == 1:
        return _vector_norm(size, ord, axes[0], keepdims)
    if len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        row, column = axis if axis is not None else (0, 1)
        summed, taken = (row, column) if abs(ord) == 1 else (column, row)
        sums = size.sum(summed, keepdims=True)
        found = sums.max(taken, keepdims=True) if ord > 0 else sums.min(taken, keepdims=True)
        return found if keepdims else layouts.squeeze(recorder, found, axes)
    return refuse(f"Expected another order of a norm than {ord!r}", "compute its values outside")


def _vector_norm(size: Traced, power: Any, axis: int, keepdims: bool) -> Traced:
    """Return the norm of vectors of absolute values along an axis."""
    if power == np.inf:
        return size.max(axis, keepdims=keepdims)
    if power == -np.inf:
        return size.min(axis, keepdims=keepdims)
    if power == 0:
        return (size != 0).astype(size.dtype).sum(axis, keepdims=keepdims)
    if power == 1:
        return size.sum(axis, keepdims=keepdims)
    return ((size**power).sum(axis, keepdims=keepdims)) ** (1.0 / power)


def trapezoid(recorder: Recorder, y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Traced:
    """Note np.trapezoid: the integral of a function that is linear between its points."""
    y = traced(recorder, y)
    own = axis_of(recorder, y, axis)
    if x is not None:
        step = diff(recorder, x, axis=-1 if traced(recorder, x).ndim == 1 else own)
        if step.ndim != y.ndim:
            others = tuple(each for each in range(y.ndim) if each != own)
            step = layouts.expand_dims(recorder, step, others)
    else:
        step = dx
    later, former = y[along_axis(own, slice(1, None))], y[along_axis(own, slice(None, -1))]
    return (step * (later + former) / 2.0).sum(own)


def polyval(recorder: Recorder, p: Any, x: Any) -> Traced:
    """Note np.polyval by Horner's rule."""
    x = traced(recorder, x)
    factors = p if isinstance(p, recorder.operations["TracedArray"]) else np.asarray(p)
    found = layouts.astype(recorder, x * 0, x.dtype)
    for place in range(len(factors)):
        found = found * x + factors[place]
    return found


def allclose(recorder: Recorder, a: Any, b: Any, **options: Any) -> Traced:
    """Note np.allclose: a truth that the call returns."""
    return isclose(recorder, a, b, **options).all()


def array_equal(recorder: Recorder, a: Any, b: Any) -> Traced:
    """Note np.array_equal of arrays of one shape."""
    a, b = traced(recorder, a), traced(recorder, b)
    if a.ndim != b.ndim or not all(map(recorder.same, a.fact.shape, b.fact.shape)):
        return recorder.traced(recorder.name_of(np.False_))
    return (a == b).all()


def logaddexp_reduce(recorder: Recorder, x: Any, axis: Any = 0, keepdims: bool = False) -> Traced:
    """Note np.logaddexp.reduce: the logarithm of a sum of exponentials."""
    x = traced(recorder, x)
    most = x.max(axis, keepdims=True)
    finite = ufuncs.where(recorder, np.isfinite(most), most, x.dtype.type(0))
    sums = np.log(np.exp(x - finite).sum(axis, keepdims=True)) + finite
    if keepdims:
        return sums
    return layouts.squeeze(recorder, sums, axes_of(recorder, axis, x.ndim))


def rounded(recorder: Recorder, x: Any, decimals: int = 0, out: Any = None) -> Traced:
    """Note np.round: whole numbers of 10 to the power of -decimals."""
    x = traced(recorder, x)
    if out is not None:
        refuse("Expected np.round without out=, found it", "use what it returns")
    if decimals == 0 or (x.dtype.kind in "iub" and decimals > 0):
        return ufuncs.pointwise(recorder, "rint", np.rint, (x,)) if x.dtype.kind in "fc" else x
    if x.dtype.kind not in "fc":
        refuse("Expected whole numbers rounded to digits after the point", "x // 10 * 10")
    scale = x.dtype.type(10.0 ** abs(decimals))
    wide = x * scale if decimals > 0 else x / scale
    whole = ufuncs.pointwise(recorder, "rint", np.rint, (wide,))
    return whole / scale if decimals > 0 else whole * scale


def select(
    recorder: Recorder, condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0
) -> Traced:
    """Note np.select: of several arrays the first one whose condition holds."""
    if len(condlist) != len(choicelist):
        refuse("Expected a choice for each condition, found another number", "name both")
    facts = [recorder.facts[recorder.name_of(each)] for each in (*choicelist, default)]
    dtype = np.result_type(*map(sample, facts))
    found = layouts.astype(recorder, traced(recorder, default), dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = layouts.astype(recorder, traced(recorder, choice), dtype)
        found = ufuncs.where(recorder, condition, chosen, found)
    return found


def isclose(
    recorder: Recorder, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8,
    equal_nan: bool = False,
) -> Traced:  # fmt: skip
    """Note np.isclose: whether elements differ by no more than tolerances."""
    a, b = traced(recorder, a), traced(recorder, b)
    near = (abs(a - b) <= atol + rtol * abs(b)) & np.isfinite(b) | (a == b)
    return near | (np.isnan(a) & np.isnan(b)) if equal_nan else near
