"""Sizes that a function asks for while it is traced: numbers of each call, not of the trace.

n = Q.shape[-1]        the number 64, and that it is the last size of Q
S / np.sqrt(n)         divides by a number that each call computes
range(n), n == 64      uses the number itself: calls of another n are traced again
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from taco_py.graph.extents import Extent, const


class Guarding(Protocol):
    """What sizes tell that they are used as they are, and who computes with arrays of them."""

    def guard(self, extent: Extent, value: Any) -> None:
        """Note that the trace holds only where a number has this value."""

    def ufunc(self, function: np.ufunc, method: str, inputs: Any, options: Any) -> Any:
        """Compute a function of elements, one of whose inputs is a size or an array."""


class Size:
    """A number of each call, with its value in the call that is traced."""

    __slots__ = ("extent", "guarding", "value")

    def __init__(self, value: Any, extent: Extent, guarding: Guarding) -> None:
        self.value = value
        self.extent = extent
        self.guarding = guarding

    def fixed(self) -> Any:
        """Return the value, for which alone the trace then holds."""
        self.guarding.guard(self.extent, self.value)
        return self.value

    def __index__(self) -> int:
        """Return the value as a whole number, for which the trace then holds."""
        return operator.index(self.fixed())

    def __int__(self) -> int:
        """Return the value as a whole number, for which the trace then holds."""
        return int(self.fixed())

    def __float__(self) -> float:
        """Return the value as a real number, for which the trace then holds."""
        return float(self.fixed())

    def __complex__(self) -> complex:
        """Return the value as a complex number, for which the trace then holds."""
        return complex(self.fixed())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Return an array of the value, for which the trace then holds."""
        return np.asarray(self.fixed(), dtype)

    def __bool__(self) -> bool:
        """Return whether the value is not 0, for which the trace then holds."""
        return bool(self.fixed())

    def __hash__(self) -> int:
        """Return the hash of the value, for which the trace then holds."""
        return hash(self.fixed())

    def __round__(self, digits: int | None = None) -> Any:
        """Round the value, for which the trace then holds."""
        return round(self.fixed(), digits)

    def __repr__(self) -> str:
        """Write the value."""
        return repr(self.value)

    def __format__(self, spec: str) -> str:
        """Write the value."""
        return format(self.value, spec)

    def __neg__(self) -> Any:
        """Negate."""
        return Size(-self.value, Extent("neg", (self.extent,)), self.guarding)

    def __pos__(self) -> Any:
        """Return the size."""
        return self

    def __abs__(self) -> Any:
        """Return the size without its sign."""
        return Size(abs(self.value), Extent("abs", (self.extent,)), self.guarding)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute a function of NumPy's of sizes and numbers, or of arrays too."""
        if method == "__call__" and not options and all(map(is_scalar, inputs)):
            value = function(*map(value_of, inputs))
            args = tuple(extent_of(argument) for argument in inputs)
            return Size(value, Extent(f"np.{function.__name__}", args), self.guarding)
        return self.guarding.ufunc(function, method, inputs, options)


def is_scalar(obj: Any) -> bool:
    """Tell whether an object is a size or a number."""
    return isinstance(obj, Size | bool | int | float | complex | np.generic)


def value_of(obj: Any) -> Any:
    """Return the value of a size, or the number itself."""
    return obj.value if isinstance(obj, Size) else obj


def converted(size: Size, dtype: str) -> Size:
    """Return a number in a type of NumPy's, as np.uint32(n)."""
    value = np.dtype(dtype).type(size.value)
    return Size(value, Extent(f"np.{dtype}", (size.extent,)), size.guarding)


def extent_of(obj: Any) -> Extent:
    """Return the extent of a size or a number."""
    if isinstance(obj, Size):
        return obj.extent
    return const(obj.item() if isinstance(obj, np.generic) else obj)


def _arithmetic(symbol: str, function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def operate(self: Size, other: Any) -> Any:
        if not isinstance(other, Size | bool | int | float | complex) or isinstance(
            other, np.generic
        ):
            return NotImplemented
        one, two = (other, self) if reflected else (self, other)
        value = function(value_of(one), value_of(two))
        return Size(value, Extent(symbol, (extent_of(one), extent_of(two))), self.guarding)

    return operate


def _comparison(symbol: str, function: Callable[..., bool]) -> Callable[..., Any]:
    def compare(self: Size, other: Any) -> Any:
        if not isinstance(other, Size | bool | int | float):
            return NotImplemented
        result = function(self.value, value_of(other))
        self.guarding.guard(Extent(symbol, (self.extent, extent_of(other))), result)
        return result

    return compare


for _name, _symbol in (
    ("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"),
    ("pow", "**"),
):  # fmt: skip
    setattr(Size, f"__{_name}__", _arithmetic(_symbol, getattr(operator, _name), False))
    setattr(Size, f"__r{_name}__", _arithmetic(_symbol, getattr(operator, _name), True))
for _name, _symbol in (
    ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="),
):  # fmt: skip
    setattr(Size, f"__{_name}__", _comparison(_symbol, getattr(operator, _name)))
