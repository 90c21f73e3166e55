"""The type of an expression, and which operators each type has.

Signed integers are one family: an index is computed in 64 bits whatever the width of the array it
was loaded from. All other types must agree exactly; `verify` says where they do not.
"""

from __future__ import annotations

from typing import assert_never

from codegen.ir import (
    AddRuns,
    Apply,
    Assign,
    AtomicStore,
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
    Store,
    Unary,
    Var,
    VectorLoad,
)
from codegen.libraries.scalar_functions import (
    CFunction,
    combines,
    common_type,
    find_function,
    function_of,
    spelling_of,
)
from codegen.tree import walk
from codegen.types import BOOL, INT64, ScalarType, vector

COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
LOGICAL = frozenset(("&&", "||"))
BITWISE = frozenset(("&", "|", "^"))
ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "min", "max"))
UPDATES = frozenset(("+", "-", "*", "/", "min", "max", "&&", "||")) | BITWISE

_OF_KIND: dict[str, frozenset[str]] = {
    "bool": frozenset(("+", "*", "min", "max")) | COMPARISONS | LOGICAL | BITWISE,
    "int": ARITHMETIC | COMPARISONS | BITWISE,
    "uint": ARITHMETIC | COMPARISONS | BITWISE,
    "float": (ARITHMETIC | COMPARISONS) - {"%"},
    "complex": frozenset(("+", "-", "*", "/", "==", "!=")),
    "vector": frozenset(("+", "-", "*", "/")),
    "half": frozenset(),
}


def type_of(expr: Expr) -> ScalarType:
    """Return the type of the value of `expr`, on the assumption that it is well typed."""
    match expr:
        case Var(type=scalar) | Const(type=scalar) | Cast(type=scalar) | Call(type=scalar):
            return scalar
        case Unary() | Binary() | Apply():
            return _operation_type(expr)
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


def c_function(expr: Apply) -> CFunction:
    """Return the function of C that `expr` calls."""
    function = spelling_of(expr.function, common_type([type_of(arg) for arg in expr.args]))
    if not isinstance(function, CFunction):
        raise TypeError(f"{expr.function} is no function of C here, but {function}")
    return function


def function_of_update(stmt: Assign | Store | AtomicStore | AddRuns) -> CFunction | None:
    """Return the function of C that `place op= value` calls where `op` is one; else None."""
    if stmt.op is None or stmt.op in UPDATES:
        return None
    element = stmt.var.type if isinstance(stmt, Assign) else stmt.array.element
    function = spelling_of(stmt.op, element)
    return function if isinstance(function, CFunction) else None


def called_functions(tree: object) -> list[CFunction]:
    """Return the distinct functions of C that a tree calls, in order of their dependences."""
    functions: dict[CFunction, None] = {}
    for node in walk(tree):
        function = None
        if isinstance(node, Apply):
            function = c_function(node)
        elif isinstance(node, Assign | Store | AtomicStore | AddRuns):
            function = function_of_update(node)
        if function is not None:
            functions |= dict.fromkeys((*function.uses, function))
    return list(functions)


def has_atomic(element: ScalarType, op: str) -> bool:
    """Tell whether `place op= value` can be one operation that threads do side by side."""
    if element.kind == "bool":
        return op in UPDATES and supports(element, op)
    if element.is_integer and op in BITWISE:
        return True
    return element.kind in ("int", "uint", "float") and op in ("+", "-", "*", "/")


def _operation_type(expr: Unary | Binary | Apply) -> ScalarType:
    match expr:
        case Unary(op=op, operand=operand):
            return BOOL if op == "!" else type_of(operand)
        case Binary(op=op, left=left, right=right):
            truth = op in COMPARISONS or op in LOGICAL
            return BOOL if truth else wider(type_of(left), type_of(right))
        case Apply(function=function, args=args):
            return function_of(function).result_type(common_type([type_of(arg) for arg in args]))
        case _:
            assert_never(expr)


def wider(one: ScalarType, other: ScalarType) -> ScalarType:
    """Return the wider of two signed integer types; otherwise the first, for they should be the
    same."""
    return other if one.kind == other.kind == "int" and other.bits > one.bits else one


def agree(one: ScalarType, other: ScalarType) -> bool:
    """Tell whether a value of one type may stand where the other is wanted."""
    return one == other or one.kind == other.kind == "int"


def supports(scalar: ScalarType, op: str) -> bool:
    """Tell whether `scalar` has the binary operator `op`."""
    return op in _OF_KIND[scalar.kind]


def updates(scalar: ScalarType, op: str) -> bool:
    """Tell whether `place op= value` is defined of a type: by an operator, or a function of
    both."""
    return (op in UPDATES and supports(scalar, op)) or combines(find_function(op), scalar)
