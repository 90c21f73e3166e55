"""Functions under the standard's names and arguments: their numbers are Tensors of order 0."""

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
    """Make a function take NumPy's numbers as arrays, and return Tensors for numbers and arrays."""
    given = list(signature(function).parameters.values())
    places = [n for n, each in enumerate(given) if each.name in ARRAYS]
    all_of_them = given[0].kind is Parameter.VAR_POSITIONAL

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        found = list(args)
        for place in range(len(args)) if all_of_them else places:
            if place < len(args) and isinstance(args[place], np.generic):
                found[place] = of_dense(np.asarray(args[place]))
        made = function(*found, **options)
        if type(made) is tuple:
            return tuple(_tensor(each) for each in made)
        return _tensor(made)

    return call


def _tensor(found: Any) -> Any:
    if isinstance(found, NUMBERS):
        return of_dense(np.asarray(found))
    return of_dense(found) if isinstance(found, np.ndarray) else found


def _known(name: str, found: Any) -> Any:
    """Return a result. Raises OperandTypeError where there is none."""
    if found is NotImplemented:
        raise OperandTypeError(
            f"Expected arrays and numbers for {name}, found other objects",
            hint="xp.asarray makes a Tensor of anything",
        )
    return found


def of_one(name: str) -> Callable[..., Any]:
    """Make the standard's function of one array, of NumPy's name."""

    def call(x: Any, /) -> Any:
        return _known(name, elementwise(name, x))

    return tensors(call)


def of_two(name: str) -> Callable[..., Any]:
    """Make the standard's function of two arrays, of NumPy's name."""

    def call(x1: Any, x2: Any, /) -> Any:
        return _known(name, elementwise(name, x1, x2))

    return tensors(call)


def of_modes(name: str) -> Callable[..., Any]:
    """Make a reduction whose type may be chosen."""

    def call(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return reduced(name, x, axis, keepdims, dtype)

    return tensors(call)


def of_order(name: str) -> Callable[..., Any]:
    """Make a reduction that keeps the type or gives a truth."""

    def call(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
        return reduced(name, x, axis, keepdims)

    return tensors(call)
