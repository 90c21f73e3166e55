"""The namespace of the array API standard, version 2024.12, over Tensors.

    xp = T.__array_namespace__();  xp.sum(xp.exp(T), axis=0)

Functions of elements are those of index notation under the standard's names. What the standard has
and Tensors have not is no name of it: sort, argsort, unique_values, searchsorted, cumulative_sum.
Results of order 0 are Tensors, where methods return NumPy's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from taco_py.api.from_dlpack import from_dlpack
from taco_py.arrays import array_api
from taco_py.arrays.array_api import asarray
from taco_py.arrays.element_functions import clip, conj, imag, matrix_transpose, nonzero, real
from taco_py.arrays.elementwise import NUMBERS, elementwise
from taco_py.arrays.matrix_products import matmul, tensordot
from taco_py.arrays.reductions import place_of_extremum, reduced, std, var
from taco_py.arrays.shapes import (
    concatenate,
    expand_dims,
    moveaxis,
    permute,
    reshape,
    squeeze,
    stack,
)
from taco_py.diagnostics.errors import OperandError
from taco_py.kernels import KERNELS
from taco_py.values.tensor import Tensor

VERSION = "2024.12"
ELEMENTS: Mapping[str, str] = MappingProxyType({
    **{name: name for name in (
        "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "ceil",
        "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide",
        "greater", "greater_equal", "hypot", "isfinite", "isinf", "isnan", "less", "less_equal",
        "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor",
        "maximum", "minimum", "multiply", "negative", "not_equal", "positive", "reciprocal",
        "remainder", "round", "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh",
        "trunc", "where",
    )},
    "pow": "power", "bitwise_and": "bitwise_and", "bitwise_invert": "invert", "bitwise_or":
    "bitwise_or", "bitwise_xor": "bitwise_xor", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
})  # fmt: skip
"""The standard's functions of elements, with NumPy's names of them."""

CONSTANTS = (
    "e", "inf", "nan", "newaxis", "pi", "float32", "float64", "complex64", "complex128", "int8",
    "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "finfo", "iinfo", "isdtype",
    "can_cast",
)  # fmt: skip
"""What is NumPy's own."""

OWN = (
    "asarray", "full", "zeros", "ones", "full_like", "zeros_like", "ones_like", "eye", "arange",
    "linspace", "astype", "broadcast_to", "broadcast_arrays", "take", "flip", "roll", "vecdot",
    "count_nonzero",
)  # fmt: skip
"""What `array_api` has."""


def namespace(version: str | None = None) -> ModuleType:
    """Return the module of the standard's functions. Raises OperandError for another version."""
    if version not in (None, VERSION, "2023.12", "2022.12"):
        raise OperandError(
            f"Expected the array API {VERSION} or before, found {version!r}", hint=f'"{VERSION}"'
        )
    key = ("array namespace", VERSION)
    found: ModuleType | None = KERNELS.memo.get(key)
    if found is None:
        found = ModuleType("taco_py.arrays.namespace", __doc__)
        vars(found).update(_functions(), __array_api_version__=VERSION)
        KERNELS.memo.put(key, found)
    return found


def _functions() -> dict[str, Any]:
    made: dict[str, Callable[..., Any]] = {
        **{name: _of_elements(numpys) for name, numpys in ELEMENTS.items()},
        **{name: _of_modes(name) for name in ("sum", "prod", "mean", "min", "max", "any", "all")},
        **{name: _of_places(name) for name in ("argmin", "argmax")},
        "var": _of_spread(var), "std": _of_spread(std), "clip": clip, "conj": conj, "imag": imag,
        "real": real, "matrix_transpose": matrix_transpose, "nonzero": nonzero, "matmul": matmul,
        "tensordot": lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes),
        "concat": lambda arrays, /, *, axis=0: concatenate(arrays, axis),
        "stack": lambda arrays, /, *, axis=0: stack(arrays, axis),
        "expand_dims": lambda x, /, *, axis=0: expand_dims(x, axis), "moveaxis": moveaxis,
        "permute_dims": permute, "squeeze": lambda x, /, axis: squeeze(x, axis),
        "reshape": lambda x, /, shape, *, copy=None: reshape(x, shape),
        "result_type": _result_type, "from_dlpack": from_dlpack,
        "unstack": lambda x, /, *, axis=0: tuple(moveaxis(x, axis, 0)),
        **{name: getattr(array_api, name) for name in OWN},
    }  # fmt: skip
    constants = {name: getattr(np, name) for name in CONSTANTS}
    return {**constants, "bool": np.bool_, **{n: _as_tensors(f) for n, f in made.items()}}


def _as_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose numbers are Tensors of order 0."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        return asarray(np.asarray(found)) if isinstance(found, NUMBERS) else found

    return call


def _of_elements(name: str) -> Callable[..., Any]:
    return partial(elementwise, name)


def _of_modes(name: str) -> Callable[..., Any]:
    def reduce(x: Any, /, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return reduced(name, x, axis, keepdims, dtype)

    return reduce


def _of_spread(function: Callable[..., Any]) -> Callable[..., Any]:
    def spread(
        x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> Any:
        return function(x, axis, keepdims, correction)

    return spread


def _of_places(name: str) -> Callable[..., Any]:
    def place(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
        return place_of_extremum(name, x, axis, keepdims)

    return place


def _result_type(*each: Any) -> Any:
    return np.result_type(*(one.dtype if isinstance(one, Tensor) else one for one in each))
