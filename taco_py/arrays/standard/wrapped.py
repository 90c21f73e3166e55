"""Functions with the standard's names and arguments, whose numbers are Tensors of order 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np

from taco_py.arrays.elementwise import NUMBERS, elementwise
from taco_py.arrays.reductions import reduced
from taco_py.arrays.shapes import of_dense
from taco_py.language.diagnostics.errors import OperandTypeError

ARRAYS = frozenset({"x", "x1", "x2", "condition", "indices"})
"""Names of the parameters that are arrays in the standard."""


def tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function accept NumPy's numbers as arrays, and return Tensors instead of both."""
    parameters = list(signature(function).parameters.values())
    places = [n for n, parameter in enumerate(parameters) if parameter.name in ARRAYS]
    all_of_them = parameters[0].kind is Parameter.VAR_POSITIONAL

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        operands = list(args)
        for place in range(len(args)) if all_of_them else places:
            if place < len(args) and isinstance(args[place], np.generic):
                operands[place] = of_dense(np.asarray(args[place]))
        result = function(*operands, **options)
        if type(result) is tuple:
            return tuple(_tensor(part) for part in result)
        return _tensor(result)

    return call


def _tensor(result: Any) -> Any:
    if isinstance(result, NUMBERS):
        return of_dense(np.asarray(result))
    return of_dense(result) if isinstance(result, np.ndarray) else result


def _require_result(name: str, result: Any) -> Any:
    """Return a result. Raises OperandTypeError for NotImplemented."""
    if result is NotImplemented:
        raise OperandTypeError(
            f"Expected arrays and numbers for {name}, found other objects",
            hint="xp.asarray makes a Tensor of anything",
        )
    return result


def of_one(name: str) -> Callable[..., Any]:
    """Make the standard's function of one array from NumPy's name."""

    def call(x: Any, /) -> Any:
        return _require_result(name, elementwise(name, x))

    return tensors(call)


def of_two(name: str) -> Callable[..., Any]:
    """Make the standard's function of two arrays from NumPy's name."""

    def call(x1: Any, x2: Any, /) -> Any:
        return _require_result(name, elementwise(name, x1, x2))

    return tensors(call)


def of_modes(name: str) -> Callable[..., Any]:
    """Make a reduction with a choice of the result's type."""

    def call(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return reduced(name, x, axis, keepdims, dtype)

    return tensors(call)


def of_order(name: str) -> Callable[..., Any]:
    """Make a reduction that keeps the type or returns booleans."""

    def call(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
        return reduced(name, x, axis, keepdims)

    return tensors(call)
