"""Numbers of index notation as constants of the loop IR."""

from __future__ import annotations

from codegen.ir import Const
from codegen.types import ScalarType


def number(value: complex, type: ScalarType) -> Const:
    """A number in a type that holds it."""
    match type.kind:
        case "bool":
            return Const(bool(value), type)
        case "complex":
            return Const(complex(value), type)
        case "float":
            return Const(float(value.real), type)
        case _:
            return Const(int(value.real), type)
