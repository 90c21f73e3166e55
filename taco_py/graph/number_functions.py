"""Functions of NumPy and SciPy by their names: those of elements and types of numbers, no others.

number_function("sqrt") is np.sqrt, number_function("expit") is scipy.special.expit
number_function("save") is None: no name leads to what is no function of elements
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.language.diagnostics.errors import InternalError

OF_ARRAYS = ("where", "clip", "real", "imag", "angle")
"""NumPy's functions of elements that are no ufuncs."""

TYPES: Mapping[str, type[np.generic]] = MappingProxyType({
    str(np.dtype(code)): np.dtype(code).type for code in "?bBhHiIlLqQefdgFDG"
})  # fmt: skip
"""NumPy's types of numbers by their names."""


def element_function(name: str) -> Callable[..., Any] | None:
    """Find a function of elements, NumPy's or SciPy's, by its name; None where there is none."""
    if name in OF_ARRAYS:
        array_function: Callable[..., Any] = getattr(np, name)
        return array_function
    function = getattr(np, name, None) if name.isidentifier() else None
    if not isinstance(function, np.ufunc) and name.isidentifier():
        from scipy import special

        function = getattr(special, name, None)
    if not isinstance(function, np.ufunc) or function.nout != 1 or function.signature is not None:
        return None
    return function


def function_of_elements(name: str) -> Callable[..., Any]:
    """Return a function of elements by its name. Raises InternalError where there is none."""
    function = element_function(name)
    if function is None:
        raise InternalError(f"Expected a function of elements, found {name!r:.80}")
    return function


def number_function(name: str) -> Callable[..., Any] | None:
    """Find a function of numbers, or a type of them, by its name; None where there is none."""
    return TYPES.get(name) or element_function(name)


def is_number_type(name: object) -> bool:
    """Tell whether a name is NumPy's of a type of numbers, in any order of bytes."""
    if not isinstance(name, str) or len(name) > 16:
        return False
    if name == "bfloat16":
        return True
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return False
    return str(dtype) == name and dtype.kind in "biufc" and dtype.subdtype is None
