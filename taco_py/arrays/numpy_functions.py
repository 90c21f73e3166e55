"""NumPy's functions of Tensors: functions of elements by `__array_ufunc__`, others by a table.

np.sin(T), np.add(x, T), x + T   →   elementwise("sin", T), elementwise("add", x, T)
np.sum(T, axis=0)                →   T.sum(0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from taco_py.api.einsum import einsum
from taco_py.arrays.element_functions import clip, imag, nonzero, real, where
from taco_py.arrays.elementwise import as_tensor, elementwise
from taco_py.arrays.extremum_places import place_of_extremum
from taco_py.arrays.filled_like import LIKE
from taco_py.arrays.matrix_products import dot, matmul, tensordot
from taco_py.arrays.numpy_surface import elements, layouts, statistics
from taco_py.arrays.numpy_surface.axes import places_of
from taco_py.arrays.numpy_surface.surface_table import COMPOSED
from taco_py.arrays.reductions import reduced, std, var
from taco_py.arrays.scans import cumulative, standard_scan
from taco_py.arrays.shapes import (
    concatenate,
    expand_dims,
    permute,
    reshape,
    squeeze,
)
from taco_py.arrays.sorted_elements import argsort, distinct_values, searchsorted, sort, unique
from taco_py.arrays.spelling import arguments, is_spelled
from taco_py.arrays.standard.linalg import OF_SINGULAR_VALUES, matrix_norm
from taco_py.arrays.subscripts_of_modes import (
    broadcast_arrays,
    broadcast_to,
    diagonal,
    repeat,
    take_along_axis,
    triangle,
)
from taco_py.language.diagnostics.errors import OperandTypeError


def ufunc(
    function: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Compute one of NumPy's functions of elements for Tensors and arrays.

    Raises OperandTypeError where index notation has no such function, or for another option than
    dtype=.
    """
    name = function.__name__
    left = {key: value for key, value in options.items() if value is not None and key != "dtype"}
    if function.signature is not None and method == "__call__" and name in FUNCTIONS:
        return array_function(function, inputs, left)
    if method != "__call__" or left:
        _refuse(f"np.{name}{'' if method == '__call__' else '.' + method}", left)
    if not is_spelled(name) or arguments(name) != len(inputs):
        _refuse(f"np.{name}", left)
    return elementwise(name, *inputs, dtype=options.get("dtype"))


def array_function(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Compute one of NumPy's functions of arrays.

    Raises OperandTypeError for a function that Tensors do not have, or an argument of it.
    """
    name = function.__name__
    if name not in FUNCTIONS:
        _refuse(f"np.{name}", {})
    try:
        SIGNATURES[name].bind(*args, **options)
    except TypeError:
        _refuse(f"np.{name}", options)
    return FUNCTIONS[name](*args, **options)


def _reduction(name: str) -> Callable[..., Any]:
    """Make one of NumPy's reductions."""

    def reduce(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return reduced(name, a, axis, keepdims, dtype)

    return reduce


def _moment(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make np.var or np.std."""

    def spread(
        a: Any, axis: Any = None, *, ddof: float = 0, correction: float = 0, keepdims: bool = False
    ) -> Any:
        return function(a, axis, keepdims, ddof or correction)

    return spread


def _place(name: str) -> Callable[..., Any]:
    def place(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return place_of_extremum(name, a, axis, keepdims)

    return place


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    least, most = a_min if min is None else min, a_max if max is None else max
    return clip(a, least, most)


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    return nonzero(condition) if x is None else where(condition, x, y)


def _scan(name: str) -> Callable[..., Any]:
    """Make np.cumsum or np.cumprod."""

    def scan(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        return cumulative(name, a, axis, dtype)

    return scan


def _standard_scan(name: str) -> Callable[..., Any]:
    """Make np.cumulative_sum or np.cumulative_prod."""

    def scan(
        x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        return standard_scan(name, x, axis, dtype, include_initial)

    return scan


def _sort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Any:
    return sort(a, axis)


def _argsort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Any:
    return argsort(a, axis)


def _save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Save a tensor as np.save does.

    A dense tensor is saved as an array. A sparse one is saved as an object, as NumPy saves
    scipy.sparse arrays: `np.load(file, allow_pickle=True).item()` returns it.
    """
    saved = arr.to_numpy() if arr.format.is_dense else np.empty((), object)
    if not arr.format.is_dense:
        saved[()] = arr
    np.save(file, saved, allow_pickle)


def _einsum(*operands: Any, optimize: Any = True, dtype: Any = None, casting: str = "safe") -> Any:
    return as_tensor(einsum(*operands, optimize=optimize, dtype=dtype, casting=casting))


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that returns a truth of Python's, as NumPy's comparisons of arrays do."""
    return wraps(function)(lambda *args, **options: bool(function(*args, **options)))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute np.linalg.norm of all elements, of vectors along a mode, or of matrices."""
    axes = places_of(axis, x.ndim)
    if len(axes) != 2 or ord not in OF_SINGULAR_VALUES:
        return statistics.norm(x, ord, axis, keepdims)
    norms = matrix_norm(layouts.moveaxis(x, axes, (-2, -1)), keepdims=keepdims, ord=ord)
    norms = layouts.moveaxis(norms, (-2, -1), axes) if keepdims else norms
    return norms if norms.shape else norms.to_numpy()[()]


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    **COMPOSED,
    **{name: _reduction(name) for name in ("sum", "prod", "mean", "any", "all", "min", "max")},
    "amin": _reduction("min"), "amax": _reduction("max"), "var": _moment(var), "std": _moment(std),
    "argmin": _place("argmin"), "argmax": _place("argmax"), "reshape": reshape, "ravel":
    lambda a: reshape(a, -1), "transpose": permute, "permute_dims": permute,
    "squeeze": squeeze, "expand_dims": expand_dims, "concatenate": concatenate, "concat":
    concatenate, "nonzero": nonzero, "clip": _clip, "real": real, "imag": imag,
    "dot": dot, "matmul": matmul, "tensordot": tensordot, "einsum": _einsum, "where": _where,
    "array_equal": _truth(elements.array_equal), "allclose": _truth(elements.allclose),
    "flatnonzero": lambda a: nonzero(reshape(a, -1))[0],
    "count_nonzero": lambda a, axis=None, keepdims=False: reduced("count", a, axis, keepdims),
    "cumsum": _scan("sum"), "cumprod": _scan("prod"), "cumulative_sum": _standard_scan("sum"),
    "cumulative_prod": _standard_scan("prod"), "sort": _sort, "argsort": _argsort,
    "unique": unique, "unique_values": distinct_values, "searchsorted":
    lambda a, v, side="left", sorter=None: searchsorted(a, v, side, sorter),
    "take_along_axis": lambda arr, indices, axis=-1: take_along_axis(arr, indices, axis),
    "repeat": lambda a, repeats, axis=None: repeat(a, repeats, axis),
    "broadcast_to": lambda array, shape: broadcast_to(array, shape),
    "broadcast_arrays": lambda *args: tuple(broadcast_arrays(*args)), "tril": lambda m, k=0:
    triangle(m, k, upper=False), "triu": lambda m, k=0: triangle(m, k, upper=True),
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: diagonal(a, offset, axis1, axis2),
    "norm": _norm, "save": _save,
    **LIKE,
})  # fmt: skip
"""NumPy's functions of arrays that Tensors have, by NumPy's names."""
SIGNATURES = MappingProxyType({name: signature(function) for name, function in FUNCTIONS.items()})


def _refuse(operation: str, options: Mapping[str, Any]) -> NoReturn:
    """Raise OperandTypeError for an operation that Tensors do not have."""
    with_options = f" with {'=, '.join(options)}=" if options else ""
    raise OperandTypeError(
        f"Expected an operation that Tensors have, found {operation}{with_options}",
        hint="apply it to .to_numpy(), or to the stored values alone: c, v = T.to_coo(); "
        "tp.Tensor.from_coo(c, f(v), T.shape, axis=1)",
    )
