"""The type of an expression, and which operators each type has.

Signed integers are one family: an index is computed in 64 bits whatever the width of the array it
was loaded from. All other types must agree exactly; `verify` says where they do not.
"""

from __future__ import annotations

from typing import assert_never

from codegen.ir import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Const,
    Count,
    Expr,
    Key,
    Lead,
    Load,
    Ranked,
    Search,
    Select,
    Shuffle,
    Unary,
    Var,
    VectorLoad,
)
from codegen.types import BOOL, INT64, ScalarType, vector

COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
LOGICAL = frozenset(("&&", "||"))
ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "min", "max"))
UPDATES = frozenset(("+", "-", "*", "/", "min", "max", "&&", "||"))

_OF_KIND: dict[str, frozenset[str]] = {
    "bool": frozenset(("+", "*", "min", "max", "==", "!=")) | LOGICAL,
    "int": ARITHMETIC | COMPARISONS,
    "uint": ARITHMETIC | COMPARISONS,
    "float": (ARITHMETIC | COMPARISONS) - {"%"},
    "complex": frozenset(("+", "-", "*", "/", "==", "!=")),
    "vector": frozenset(("+", "-", "*", "/")),
    "half": frozenset(),
}


def type_of(expr: Expr) -> ScalarType:
    """The type of the value of `expr`, on the assumption that it is well typed."""
    match expr:
        case Var(type=scalar) | Const(type=scalar) | Cast(type=scalar) | Call(type=scalar):
            return scalar
        case Unary(op=op, operand=operand):
            return BOOL if op == "!" else type_of(operand)
        case Binary(op=op, left=left, right=right):
            return _binary_type(op, left, right)
        case Load(array=array):
            return array.element
        case Select(then=then, orelse=orelse):
            return wider(type_of(then), type_of(orelse))
        case Search() | Count() | Key() | Ranked() | Lead():
            return INT64
        case VectorLoad(array=array, lanes=lanes):
            return vector(array.element, lanes)
        case Broadcast(value=value, lanes=lanes):
            return vector(type_of(value), lanes)
        case Shuffle(left=left):
            return type_of(left)
        case _:
            assert_never(expr)


def has_atomic(element: ScalarType, op: str) -> bool:
    """Whether `place op= value` can be one operation that threads do side by side."""
    if element.kind == "bool":
        return op in UPDATES and supports(element, op)
    return element.kind in ("int", "uint", "float") and op in ("+", "-", "*", "/")


def _binary_type(op: str, left: Expr, right: Expr) -> ScalarType:
    if op in COMPARISONS or op in LOGICAL:
        return BOOL
    return wider(type_of(left), type_of(right))


def wider(one: ScalarType, other: ScalarType) -> ScalarType:
    """The wider of two signed integer types; otherwise the first, for they should be the same."""
    return other if one.kind == other.kind == "int" and other.bits > one.bits else one


def agree(one: ScalarType, other: ScalarType) -> bool:
    """Whether a value of one type may stand where the other is wanted."""
    return one == other or one.kind == other.kind == "int"


def supports(scalar: ScalarType, op: str) -> bool:
    """Whether `scalar` has the binary operator `op`."""
    return op in _OF_KIND[scalar.kind]
