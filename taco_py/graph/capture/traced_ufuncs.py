"""NumPy's functions of elements, and its reductions, of traced arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import axes_of
from taco_py.arrays.numpy_surface.statistics import type_of_reduction
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.extents import ONE, const
from taco_py.graph.nodes import Shape
from taco_py.graph.samples import dtype_of, sample
from taco_py.language.diagnostics.errors import DimensionError

REDUCED_BY: Mapping[str, str] = MappingProxyType({
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
})  # fmt: skip
"""The reductions that np.add.reduce and others are."""

NEED_ELEMENTS = ("max", "min", "argmax", "argmin")


def ufunc(
    recorder: Recorder,
    function: np.ufunc,
    method: str,
    inputs: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """Note a function of elements, or a reduction by one. Raises OperandTypeError for others."""
    name = function.__name__
    left = {key: value for key, value in options.items() if value is not None}
    over = options if len(inputs) > 1 else {"axis": 0, **options}  # NumPy's default, None is all
    if method == "reduce" and name in REDUCED_BY:
        return reduction(REDUCED_BY[name])(recorder, *inputs, **over)
    if f"{name}.{method}" in recorder.operations:
        note: Callable[..., Any] = recorder.operations[f"{name}.{method}"]
        return note(
            recorder, *inputs, **{k: e for k, e in over.items() if k in left or k == "axis"}
        )
    if method == "outer" and len(inputs) == 2:
        return pointwise(recorder, name, function, _outer(recorder, *inputs))
    if method != "__call__":
        refuse(
            f"Expected a function that can be traced, found np.{name}.{method}",
            f"write np.{name} of arrays with modes of size 1, as x[:, None]",
        )
    if left:
        hint = "write the result to an array of yours after the call"
        refuse(
            f"Expected np.{name} without {'=, '.join(left)}= while it is traced, found it",
            hint if "out" in left else "call .astype(…), or np.where(…), of the result",
        )
    if function.signature is not None and name in recorder.operations:
        return recorder.operations[name](recorder, *inputs)
    if function.nout != 1 or function.signature is not None:
        refuse(
            f"Expected a function of elements with one result, found np.{name}",
            "write it by others; docs/graphs.md lists the functions",
        )
    return pointwise(recorder, name, function, inputs)


def _outer(recorder: Recorder, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the first array with a mode of size 1 for each mode of the second."""
    order = recorder.facts[recorder.name_of(b)].order
    last = tuple(range(-order, 0))
    return (recorder.operations["expand_dims"](recorder, a, last) if order else a), b


def pointwise(
    recorder: Recorder, name: str, function: Callable[..., Any], inputs: Sequence[Any]
) -> Any:
    """Note a function of elements of arrays that stretch to each other."""
    names = [recorder.name_of(operand) for operand in inputs]
    facts = [recorder.facts[name] for name in names]
    if name in ("multiply", "power") and recorder.matrices.intersection(names):
        refuse(
            "Expected arrays, found a scipy.sparse matrix, whose * multiplies matrices",
            "write A @ B, or pass scipy.sparse.csr_array(A)",
        )
    shape = recorder.stretched(*(fact.shape for fact in facts))
    try:
        dtype = dtype_of(function, *facts)
    except TypeError as error:
        types = ", ".join(fact.dtype for fact in facts)
        refuse(f"Expected types that np.{name} takes, found {types}: {error}", "convert them first")
    return recorder.add(name, names, shape, dtype)


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """Leave out modes, or make them of size 1."""
    if keepdims:
        return tuple(ONE if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def reduction(name: str) -> Callable[..., Any]:
    """Return one of NumPy's reductions by its name."""

    def reduce(
        recorder: Recorder,
        x: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        **options: Any,
    ) -> Any:
        _refuse_options(name, {"out": out, **options}, ("ddof", "correction", "where"))
        if options.get("where") is not None and options["where"] is not True:
            x = _selected(recorder, name, x, options["where"])
        result_type = None if dtype is None else type_of_reduction(name, dtype)
        if result_type is not None:
            x = recorder.operations["astype"](recorder, x, result_type)
        (operand,) = [recorder.name_of(x)]
        fact = recorder.facts[operand]
        axes = axes_of(axis, fact.order)
        keep = bool(keepdims) and keepdims is not np._NoValue
        if operand in recorder.matrices and len(axes) == 1 and not keep:
            refuse(
                f"Expected an array, found a scipy.sparse matrix, whose {name} over an axis is a "
                "matrix again",
                "pass scipy.sparse.csr_array(A)",
            )
        if name in NEED_ELEMENTS and any(fact.shape[mode].constant == 0 for mode in axes):
            refuse(
                f"Expected elements to take the {name} of, found none",
                "check x.shape before",
                DimensionError,
            )
        attributes: dict[str, Any] = {"axis": axes, "keepdims": keep}
        ddof = options.get("ddof") or options.get("correction") or 0
        if name in ("var", "std"):
            attributes["ddof"] = float(ddof)
        function = getattr(np, name)
        sum_type = str(np.asarray(function(sample(fact), axis=axes if fact.order else None)).dtype)
        shape = reduced_shape(fact.shape, axes, keep)
        result = recorder.add(name, (operand,), shape, sum_type, **attributes)
        return _wrapped(recorder, result, sum_type, result_type)

    return reduce


def _wrapped(recorder: Recorder, result: Any, computed: str, target: np.dtype[Any] | None) -> Any:
    """Convert a sum that was added up in more bits than dtype= has: it wraps to the same number."""
    if target is None or computed == str(target):
        return result
    return recorder.operations["astype"](recorder, result, target)


NEUTRAL: Mapping[str, int] = MappingProxyType({"sum": 0, "prod": 1, "any": 0, "all": 1})
"""What leaves a reduction as it is, where where= leaves an element out."""


def _selected(recorder: Recorder, name: str, x: Any, condition: Any) -> Any:
    """Return an array with the reduction's neutral element where a condition does not hold."""
    if condition is np._NoValue:
        return x
    if name not in NEUTRAL:
        refuse(
            f"Expected np.{name} without where= while it is traced, found it",
            "write it by sums of np.where(condition, x, 0)",
        )
    neutral = recorder.facts[recorder.name_of(x)].dtype
    return where(recorder, condition, x, np.dtype(neutral).type(NEUTRAL[name]))


def _refuse_options(name: str, options: Mapping[str, Any], allowed: Sequence[str]) -> None:
    left = [
        key
        for key, value in options.items()
        if value is not None and value is not np._NoValue and key not in allowed
    ]
    if left:
        refuse(
            f"Expected np.{name} without {'=, '.join(left)}= while it is traced, found it",
            "write np.where(…) of what is reduced, or combine the result with what it begins from",
        )


def place_of_extremum(name: str) -> Callable[..., Any]:
    """Return np.argmax or np.argmin by its name."""

    def find(recorder: Recorder, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        operand = recorder.name_of(x)
        fact = recorder.facts[operand]
        axes = axes_of(axis, fact.order)
        shape = reduced_shape(fact.shape, axes, keepdims)
        attributes = {"axis": None if axis is None else axes[0], "keepdims": keepdims}
        return recorder.add(name, (operand,), shape, "int64", **attributes)

    return find


def function_along_axis(name: str) -> Callable[..., Any]:
    """Return a function along one axis that keeps the shape: np.cumsum, np.sort and others."""

    def compute(recorder: Recorder, x: Any, axis: Any = -1 if "sort" in name else None) -> Any:
        operand = recorder.name_of(x)
        fact = recorder.facts[operand]
        shape = fact.shape
        if axis is None:
            x = recorder.operations["reshape"](recorder, x, -1)
            return compute(recorder, x, 0)
        (mode,) = axes_of(axis, fact.order)
        dtype = str(getattr(np, name)(sample(fact), axis=mode).dtype)
        return recorder.add(name, (operand,), shape, dtype, axis=mode)

    return compute


def clip(
    recorder: Recorder, x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None,
    max: Any = None,
) -> Any:  # fmt: skip
    """Note np.clip: the larger of x and the least, the smaller of that and the most."""
    least, most = a_min if min is None else min, a_max if max is None else max
    for bound, function in ((least, np.maximum), (most, np.minimum)):
        if bound is not None:
            x = pointwise(recorder, function.__name__, function, (x, bound))
    return x


def where(recorder: Recorder, condition: Any, x: Any = None, y: Any = None) -> Any:
    """Note np.where of three arrays."""
    if x is None or y is None:
        refuse(
            "Expected np.where(condition, x, y), found it of a condition alone",
            "positions depend on values, which are not known while the function is traced",
        )
    return pointwise(recorder, "where", np.where, (condition, x, y))


def simple(name: str) -> Callable[..., Any]:
    """Return a function of elements that NumPy has no ufunc for, as np.real."""
    return lambda recorder, x: pointwise(recorder, name, getattr(np, name), (x,))


def like(value: Any) -> Callable[..., Any]:
    """Return np.zeros_like or np.ones_like, by their value."""

    def make(recorder: Recorder, x: Any, dtype: Any = None, **options: Any) -> Any:
        return full_like(recorder, x, value, dtype, **options)

    return make


def full_like(recorder: Recorder, x: Any, value: Any, dtype: Any = None, **options: Any) -> Any:
    """Note np.full_like: a number in the shape of an array."""
    _refuse_options("full_like", options, ("order", "subok", "device"))
    fact = recorder.facts[recorder.name_of(x)]
    number = np.dtype(dtype or fact.dtype).type(value)
    name = recorder.name_of(number)
    return recorder.add("broadcast_to", (name,), fact.shape, str(number.dtype), filled=True)


def count_nonzero(recorder: Recorder, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Note np.count_nonzero as a sum of truths."""
    return reduction("sum")(recorder, x != const(0).constant, axis, keepdims=keepdims)


def select(
    recorder: Recorder, condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0
) -> Any:
    """Note np.select: of several arrays the first one whose condition holds."""
    if len(condlist) != len(choicelist):
        refuse("Expected a choice for each condition, found another number", "name both")
    names = [recorder.name_of(choice) for choice in (*choicelist, default)]
    dtype = np.result_type(*(sample(recorder.facts[name]) for name in names))
    *choices, selected = (recorder.traced(name).astype(dtype) for name in names)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        selected = where(recorder, condition, choice, selected)
    return selected
