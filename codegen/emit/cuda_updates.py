"""Updates of values in CUDA text, and the names of the functions that do them.

updated("*", FLOAT64, "x", "y")       x * y
updated("min", INT8, "x", "y")        taco_min_i8(x, y)
updated("*", COMPLEX128, "x", "y")    taco_multiply_c128(x, y)
updated("hypot", FLOAT32, "x", "y")   hypotf(x, y)
"""

from __future__ import annotations

from codegen.libraries.scalar_functions import CFunction, Operator, spelling_of
from codegen.types import COMPLEX64, COMPLEX128, SCALARS, ScalarType

SUFFIXES = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}
TYPES: dict[str, ScalarType] = {f"{SUFFIXES[t.kind]}{t.bits}": t for t in SCALARS.values()}
"""Types by what ends the names of their functions: `f64`."""

PAIRS = {COMPLEX64.name: "float2", COMPLEX128.name: "double2"}
"""What complex numbers are in CUDA."""

NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "min": "min", "max": "max", "&&": "all",
    "||": "any", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
"""Operators in the names of functions."""

BY_NAME = {name: op for op, name in NAMES.items()}

_OF_BOOL = {"+": "|", "max": "|", "||": "|", "*": "&", "min": "&", "&&": "&"}
_OF_PAIRS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def suffix(element: ScalarType) -> str:
    """Return the suffix of the names of a type's functions."""
    return f"{SUFFIXES[element.kind]}{element.bits}"


def c_type(element: ScalarType) -> str:
    """Return CUDA's name of a type."""
    return PAIRS.get(element.name, element.c)


def updated(op: str, element: ScalarType, old: str, value: str) -> str:
    """Return the text of an update of two values by `op`."""
    if element.kind == "bool" and op in _OF_BOOL:
        op = _OF_BOOL[op]
    if element.kind == "complex" and op in _OF_PAIRS:
        return f"taco_{_OF_PAIRS[op]}_{suffix(element)}({old}, {value})"
    if op in ("min", "max"):
        return f"taco_{op}_{suffix(element)}({old}, {value})"
    if op not in NAMES:
        spelling = spelling_of(op, element)
        if isinstance(spelling, CFunction):
            return f"{spelling.name}({old}, {value})"
        assert isinstance(spelling, Operator)
        return updated(spelling.op, element, old, value)
    text = f"{old} {op} {value}"
    return f"({element.c})({text})" if element.is_integer and element.bits < 32 else text
