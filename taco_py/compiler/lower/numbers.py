"""Numbers of index notation as constants of the loop IR."""

from __future__ import annotations

from codegen.ir import Const
from codegen.types import ScalarType


def number(value: complex, type: ScalarType) -> Const:
    """Return a number as a constant of a type; integers wrap as in C."""
    match type.kind:
        case "bool":
            return Const(bool(value), type)
        case "complex":
            return Const(complex(value), type)
        case "float":
            return Const(float(value.real), type)
        case _:
            least = -(1 << (type.bits - 1)) if type.kind == "int" else 0
            return Const((int(value.real) - least) % (1 << type.bits) + least, type)
