"""Numbers that are known when a graph is called: sizes of operands, and what is computed of them.

    Q.shape[-1]             Extent("size", ("a0", 2))
    np.sqrt(Q.shape[-1])    Extent("np.sqrt", (Extent("size", ("a0", 2)),))

An extent prints as the Python expression that computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass

INFIX = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=")
"""The operators that stand between their arguments."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A number by what computes it.

    operator  "const" of a number; "size" of an operand's name and an axis; "value" of the name of
              an operand that is a number; "slice" of a size, and where a slice of it begins, ends
              and how far it steps; else one of `INFIX`, "neg", "abs", or NumPy's as "np.sqrt"
    """

    operator: str
    args: tuple[Any, ...]

    @property
    def constant(self) -> int | float | None:
        """The number of a constant, None of others."""
        return self.args[0] if self.operator == "const" else None

    def __str__(self) -> str:
        """Write the Python expression, in which operands go by their names."""
        if self.operator == "const":
            return _literal(self.args[0])
        if self.operator == "size":
            return f"{self.args[0]}.shape[{self.args[1]}]"
        if self.operator == "value":
            return str(self.args[0])
        parts = ["" if each is None else str(each) for each in self.args]
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
    for each in extents:
        if each.constant is None:
            rest.append(each)
        else:
            number *= int(each.constant)
    found = None if number == 1 and rest else const(number)
    for each in rest:
        found = each if found is None else Extent("*", (found, each))
    return ONE if found is None else found


def total(extents: Sequence[Extent]) -> Extent:
    """Add extents."""
    found = extents[0]
    for each in extents[1:]:
        if found.constant is not None and each.constant is not None:
            found = const(found.constant + each.constant)
        else:
            found = Extent("+", (found, each))
    return found


def compiled(extents: Sequence[Extent], names: Sequence[str]) -> Callable[..., tuple[Any, ...]]:
    """Make the function from operands, by position, to the numbers."""
    body = "".join(f"{each}, " for each in extents)
    found: Callable[..., tuple[Any, ...]] = eval(f"lambda {', '.join(names)}: ({body})", {"np": np})
    return found


def evaluated(extent: Extent, operands: Mapping[str, Any]) -> Any:
    """Compute one number of operands by their names."""
    return compiled((extent,), tuple(operands))(*operands.values())[0]
