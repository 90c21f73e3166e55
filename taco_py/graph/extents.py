"""Numbers that are known when a graph is called: sizes of operands, and what is computed of them.

    Q.shape[-1]             Extent("size", ("a0", 2))
    np.sqrt(Q.shape[-1])    Extent("np.sqrt", (Extent("size", ("a0", 2)),))

An extent prints as a Python expression, for readers. The function that computes it is made of a
table of operators and of names of its own: no text of an extent becomes source text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.graph.number_functions import number_function
from taco_py.language.diagnostics.errors import InternalError
from taco_py.running.replay.source_text import LARGEST, integer_text

INFIX = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=")
"""The operators that stand between their arguments."""

CALLED: Mapping[str, int] = {"neg": 1, "abs": 1, "max": 2, "min": 2}
"""Python's functions of numbers, with how many they take."""

MOST_NESTED = 40
"""Parentheses in each other, in a line of text: Python's parser takes 200."""

MOST_BITS = 1 << 16
"""Of a whole number that a power may be."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A number by what computes it.

    operator  "const" of a number; "size" of an operand's name and an axis; "value" of the name of
              an operand that is a number; "slice" of a size, and where a slice of it begins, ends
              and how far it steps; else one of `INFIX`, of `CALLED`, or NumPy's as "np.sqrt"
    """

    operator: str
    args: tuple[Any, ...]

    @property
    def constant(self) -> int | float | None:
        """Return the number of a constant, None of others."""
        return self.args[0] if self.operator == "const" else None

    def __str__(self) -> str:
        """Write the Python expression, in which operands go by their names."""
        if self.operator == "const":
            return _literal(self.args[0])
        if self.operator == "size":
            return f"{self.args[0]}.shape[{self.args[1]}]"
        if self.operator == "value":
            return str(self.args[0])
        parts = ["" if arg is None else str(arg) for arg in self.args]
        if self.operator == "slice":
            return f"len(range({parts[0]})[{':'.join(parts[1:])}])"
        if self.operator in INFIX:
            return f"({parts[0]} {self.operator} {parts[1]})"
        return (
            f"(-{parts[0]})" if self.operator == "neg" else f"{self.operator}({', '.join(parts)})"
        )


def _literal(number: Any) -> str:
    """Write a number as Python reads it, infinities and NaN too."""
    if isinstance(number, complex):
        return f"complex({_literal(number.real)}, {_literal(number.imag)})"
    if isinstance(number, float) and not math.isfinite(number):
        return f"{'-' if number < 0 else ''}np.{'nan' if number != number else 'inf'}"
    return repr(number)


def const(number: Any) -> Extent:
    """Make the extent of a number that is the same in all calls."""
    return Extent("const", (number,))


ONE = const(1)


def product(extents: Sequence[Extent]) -> Extent:
    """Multiply extents, the constants first."""
    number, rest = 1, []
    for extent in extents:
        if extent.constant is None:
            rest.append(extent)
        else:
            number *= int(extent.constant)
    result = None if number == 1 and rest else const(number)
    for extent in rest:
        result = extent if result is None else Extent("*", (result, extent))
    return ONE if result is None else result


def total(extents: Sequence[Extent]) -> Extent:
    """Add extents."""
    result = extents[0]
    for extent in extents[1:]:
        if result.constant is not None and extent.constant is not None:
            result = const(result.constant + extent.constant)
        else:
            result = Extent("+", (result, extent))
    return result


def bounds(sizes: Sequence[Extent]) -> list[Extent | None]:
    """Return where parts of these sizes begin, as slices say it, and where the last one ends.

    >>> bounds((const(2), const(3)))
    [None, const(2), None]
    """
    return [None, *(total(sizes[:place]) for place in range(1, len(sizes))), None]


def power(base: Any, exponent: Any) -> Any:
    """Raise a number to a power. Raises OverflowError for whole numbers beyond `MOST_BITS`."""
    if type(base) is int and type(exponent) is int and base.bit_length() * exponent > MOST_BITS:
        raise OverflowError(f"Expected a power of at most {MOST_BITS} bits, found a larger one")
    return base**exponent


class ExtentWriter:
    """Expressions of extents, made of names of their own and a table of operators.

    places  the text that each operand goes by, which is no text of its name
    space   what the text names besides
    lines   assignments that come before the expressions, of what is nested too deeply
    """

    def __init__(self, places: Mapping[str, str], space: dict[str, Any]) -> None:
        self.places = places
        self.space = space
        self.lines: list[str] = []

    def write(self, extent: Extent) -> str:
        """Write the expression of an extent. Raises InternalError for what is no operator."""
        return self._write(extent)[0]

    def _write(self, extent: Extent) -> tuple[str, int]:
        """Return the expression, and how many parentheses are in each other."""
        operator, args = extent.operator, extent.args
        if operator == "const":
            return self._const(args[0]), 0
        if operator in ("size", "value"):
            place = self.places.get(args[0])
            if place is None:
                raise InternalError(f"Expected the name of an operand, found {args[0]!r:.80}")
            axis = f".shape[{integer_text(args[1])}]" if operator == "size" else ""
            return f"{place}{axis}", 0
        parts, depth = [], 0
        for arg in args:
            text, nested = ("None", 0) if arg is None else self._write(arg)
            parts.append(text)
            depth = max(depth, nested + 1)
        return self._spilled(self._applied(operator, parts, args), depth)

    def _applied(self, operator: str, parts: Sequence[str], args: tuple[Any, ...]) -> str:
        if operator in INFIX and len(parts) == 2:
            if operator == "**" and not _is_small(args[1]):
                return f"{self._bind(power)}({', '.join(parts)})"
            return f"({parts[0]} {operator} {parts[1]})"
        if operator == "slice" and len(parts) == 4:
            return f"len(range({parts[0]})[{':'.join(parts[1:])}])"
        if CALLED.get(operator) == len(parts):
            return f"(-{parts[0]})" if operator == "neg" else f"{operator}({', '.join(parts)})"
        function = number_function(operator.removeprefix("np."))
        if not operator.startswith("np.") or function is None:
            raise InternalError(f"Expected an operator of numbers, found {operator!r:.80}")
        return f"{self._bind(function)}({', '.join(parts)})"

    def _spilled(self, text: str, depth: int) -> tuple[str, int]:
        if depth < MOST_NESTED:
            return text, depth
        name = f"part{len(self.space)}"
        self.space[name] = None
        self.lines.append(f"{name} = {text}")
        return name, 0

    def _const(self, number: Any) -> str:
        if type(number) is int and -LARGEST < number < LARGEST:
            return f"({integer_text(number)})" if number < 0 else integer_text(number)
        return self._bind(number)

    def _bind(self, value: Any) -> str:
        """Return a name for an object that the text has."""
        name = f"held{len(self.space)}"
        self.space[name] = value
        return name


def _is_small(exponent: Any) -> bool:
    number = exponent.constant if isinstance(exponent, Extent) else None
    return type(number) is int and 0 <= number <= 8


def compiled(extents: Sequence[Extent], names: Sequence[str]) -> Callable[..., tuple[Any, ...]]:
    """Make the function from operands, by position, to the numbers."""
    places = {name: f"p{place}" for place, name in enumerate(names)}
    writer = ExtentWriter(places, {})
    body = "".join(f"{writer.write(extent)}, " for extent in extents)
    lines = [f"def numbers({', '.join(places.values())}):", *(f"    {e}" for e in writer.lines)]
    exec("\n".join((*lines, f"    return ({body})")), writer.space)
    function: Callable[..., tuple[Any, ...]] = writer.space["numbers"]
    return function


def evaluated(extent: Extent, operands: Mapping[str, Any]) -> Any:
    """Compute one number of operands by their names."""
    return compiled((extent,), tuple(operands))(*operands.values())[0]
