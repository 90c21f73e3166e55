"""Expressions of the loop IR as C text, with no parentheses that C does not need."""

from __future__ import annotations

import math
from typing import assert_never

from codegen.build import add
from codegen.infer import BITWISE, COMPARISONS, LOGICAL, c_function, type_of
from codegen.ir import (
    Apply,
    Array,
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
    Storage,
    Unary,
    Var,
    VectorLoad,
)
from codegen.types import FLOAT32, FLOAT64, INT64, ScalarType, vector

PRECEDENCE: dict[str, int] = {
    "||": 1,
    "|": 1,
    "^": 1,
    "&": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
}
"""How tightly C's binary operators bind; `?:` is 0, prefix operators 7, calls and subscripts 8.

Those of bits bind less tightly than comparisons, which nobody remembers: theirs and they themselves
stand in parentheses.
"""

CONDITIONAL, PREFIX, POSTFIX = 0, 7, 8
_BOOL_OPERATORS = {"+": "||", "max": "||", "*": "&&", "min": "&&"}
_SUFFIX = {"int": "i", "uint": "u", "float": "f"}


def expression(expr: Expr, binding: int = CONDITIONAL) -> str:
    """Return `expr` in C, in parentheses where it binds less tightly than `binding`."""
    text, precedence = _render(expr)
    return f"({text})" if precedence < binding else text


def widened(expr: Expr, binding: int = CONDITIONAL) -> str:
    """Return `expr` without its cast to int64_t where C converts it implicitly.

    `j = A2_crd[p]` for `j = (int64_t)A2_crd[p]`.
    """
    return expression(_unwidened(expr), binding)


def _unwidened(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) and _is_widening(expr) else expr


def _is_widening(expr: Expr) -> bool:
    """Tell whether `expr` is a cast of a signed integer to int64."""
    return isinstance(expr, Cast) and expr.type == INT64 and type_of(expr.operand).kind == "int"


def _render(expr: Expr) -> tuple[str, int]:
    """Return the C text of `expr` and how tightly its outermost operator binds."""
    match expr:
        case Var(name=name):
            return name, POSTFIX
        case Const(value=value, type=scalar):
            return _constant(value, scalar)
        case Unary():
            return _unary(expr)
        case Binary():
            return _binary(expr)
        case Cast():
            return _cast(expr)
        case Select(condition=condition, then=then, orelse=orelse):
            test = expression(condition, CONDITIONAL + 1)
            branches = f"{expression(then, CONDITIONAL + 1)} : {expression(orelse, CONDITIONAL)}"
            return f"{test} ? {branches}", CONDITIONAL
        case VectorLoad():
            # As if it bound less tightly than it does, for `a * *(v *)&b[i]` is hard to read.
            return vector_place(expr.array, expr.index, expr.lanes), PRECEDENCE["*"]
    return _render_postfix(expr), POSTFIX


def _render_postfix(
    expr: Load | Search | Call | Apply | Count | Key | Ranked | Broadcast | Shuffle | Lead,
) -> str:
    match expr:
        case Load(array=array, index=index):
            return f"{array.name}[{widened(index)}]"
        case Search(array, start, stop, value, after, near):
            arguments = (start, stop, add(value, 1) if after else value)
            search = f"taco_{'gallop' if near else 'search'}_{array.element}"
            return f"{search}({array.name}, {', '.join(map(widened, arguments))})"
        case Call() | Apply():
            return _call(expr)
        case Count(table=table):
            return f"{table.name}.count"
        case Key(table=table, entry=entry):
            return f"{table.name}.keys[{widened(entry)}]"
        case Ranked(table=table, rank=rank):
            return f"{table.name}.ranked[{widened(rank)}]"
        case Broadcast():
            return _broadcast(expr)
        case Shuffle():
            return _shuffle(expr)
        case Lead(array=array, bytes=bytes):
            return f"taco_lead({array.name}, {array.element.itemsize}, {bytes})"
        case _:
            assert_never(expr)


def _call(expr: Call | Apply) -> str:
    if isinstance(expr, Call):
        return f"{expr.function}({', '.join(map(expression, expr.args))})"
    return f"{c_function(expr).name}({', '.join(map(widened, expr.args))})"


def vector_place(array: Array, index: Expr, lanes: int) -> str:
    """Return the lvalue of `lanes` neighbouring elements of `array`."""
    const = "const " if array.storage is Storage.INPUT else ""
    return f"*({const}{vector(array.element, lanes).c} *)&{array.name}[{widened(index)}]"


def _broadcast(expr: Broadcast) -> str:
    """Return a vector literal. (Beside a vector operand the scalar itself will do: see
    `_operand`.)"""
    value = expression(expr.value)
    return f"({type_of(expr).c}){{{', '.join([value] * expr.lanes)}}}"


def _shuffle(expr: Shuffle) -> str:
    """Return a call of the runtime header's macro, for compilers differ in it."""
    vector = type_of(expr)
    bits = vector.bits // len(expr.lanes)
    operands = f"{expression(expr.left)}, {expression(expr.right)}"
    return f"TACO_SHUFFLE({bits}, {operands}, {', '.join(map(str, expr.lanes))})"


# ---------------------------------------------------------------- operators


def _unary(expr: Unary) -> tuple[str, int]:
    operand = expression(expr.operand, PREFIX)
    gap = " " if operand.startswith(expr.op) else ""
    text = f"{expr.op}{gap}{operand}"
    scalar = type_of(expr)
    if expr.op == "-" and _is_promoted(scalar):
        return f"({scalar.c}){text}", PREFIX
    return text, PREFIX


def _binary(expr: Binary) -> tuple[str, int]:
    scalar = type_of(expr)
    if expr.op in ("min", "max") and scalar.kind != "bool":
        arguments = f"{widened(expr.left)}, {widened(expr.right)}"
        return f"{helper(expr.op, scalar)}({arguments})", POSTFIX
    op = _BOOL_OPERATORS.get(expr.op, expr.op) if scalar.kind == "bool" else expr.op
    text = _infix(op, expr.left, expr.right)
    if _is_promoted(scalar) and op in "+-*/%":
        return f"({scalar.c})({text})", PREFIX
    return text, PRECEDENCE[op]


def _infix(op: str, left: Expr, right: Expr) -> str:
    left, right = _operands_unwidened(op, left, right)
    left_binding, right_binding = _operand_bindings(op, left)
    left_text = _operand(left, right, left_binding)
    right_text = _operand(right, left, right_binding)
    return f"{left_text} {op} {right_text}"


def _operands_unwidened(op: str, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Return the operands with the casts to int64 that C needs and no others.

    One operand of 64 bits widens the other; a comparison needs no width at all.
    """
    if op in COMPARISONS:
        return _unwidened(left), _unwidened(right)
    if _is_wide(left) and not _is_widening(left):
        return left, _unwidened(right)
    if _is_wide(right):
        return _unwidened(left), right
    if _is_wide(left):
        return left, right
    is_index = INT64 in (type_of(left), type_of(right))
    return (Cast(INT64, left) if is_index else left), right


def _is_wide(expr: Expr) -> bool:
    """Tell whether C computes `expr` in int64_t. It reads a literal as int."""
    match expr:
        case Const():
            return False
        case Unary(operand=operand):
            return _is_wide(operand)
        case Select(then=then, orelse=orelse):
            return _is_wide(then) or _is_wide(orelse)
    return type_of(expr) == INT64


def _operand_bindings(op: str, left: Expr) -> tuple[int, int]:
    """Return how tightly the operands of `op` must bind to stand without parentheses.

    C would allow `a < b < c` and `a && b || c`, but gcc warns and a reader stumbles.
    """
    precedence = PRECEDENCE[op]
    if op in BITWISE:
        return PREFIX, PREFIX
    if op in COMPARISONS:
        return PRECEDENCE["+"], PRECEDENCE["+"]
    if op in LOGICAL:
        comparison = PRECEDENCE["=="]
        return (precedence if _c_operator(left) == op else comparison), comparison
    return precedence, precedence + 1


def _operand(operand: Expr, other: Expr, binding: int) -> str:
    """Return the text of one operand. The compiler itself widens a scalar that stands beside a
    vector."""
    if isinstance(operand, Broadcast) and not isinstance(other, Broadcast):
        operand = operand.value
    return expression(operand, binding)


def _c_operator(expr: Expr) -> str | None:
    """Return C's spelling of the operator at the root of `expr`."""
    if not isinstance(expr, Binary):
        return None
    if type_of(expr.left).kind == "bool":
        return _BOOL_OPERATORS.get(expr.op, expr.op)
    return expr.op


def _is_promoted(scalar: ScalarType) -> bool:
    """Tell whether C computes in `int` where NumPy wraps at the type's own width."""
    return scalar.is_integer and scalar.bits < 32


def helper(op: str, scalar: ScalarType) -> str:
    """Return the runtime header's function for `min` or `max` of one type: `taco_min_f64`."""
    return f"taco_{op}_{_SUFFIX[scalar.kind]}{scalar.bits}"


def _cast(expr: Cast) -> tuple[str, int]:
    """Return C's cast; the runtime header's functions for types that C has not, from and to
    float32.

    (double)taco_of_float16(x)    taco_to_bfloat16((float)x)
    """
    source, target = type_of(expr.operand), expr.type
    if source.kind == "half":
        text = f"taco_of_{source}({expression(expr.operand)})"
        return (text, POSTFIX) if target == FLOAT32 else (f"({target.c}){text}", PREFIX)
    if target.kind == "half":
        single = expr.operand if source == FLOAT32 else Cast(FLOAT32, expr.operand)
        return f"taco_to_{target}({expression(single)})", POSTFIX
    return f"({target.c}){expression(expr.operand, PREFIX)}", PREFIX


# ---------------------------------------------------------------- constants


def _constant(value: bool | int | float | complex, scalar: ScalarType) -> tuple[str, int]:
    if scalar.kind == "bool":
        return ("true" if value else "false"), POSTFIX
    if scalar.kind == "complex":
        return _complex(complex(value), scalar), POSTFIX
    if scalar.kind == "float":
        text = _float(float(value.real), scalar)
    else:
        text = _integer(int(value.real), scalar)
    return text, PREFIX if text.startswith("-") else POSTFIX


def _integer(value: int, scalar: ScalarType) -> str:
    if scalar.kind == "uint":
        return f"{value}u" if scalar.bits <= 32 else f"UINT64_C({value})"
    if value == -(2**63):
        return "INT64_MIN"  # its digits alone would not fit in any C type
    return str(value)


def _float(value: float, scalar: ScalarType) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}{'f' if scalar.bits == 32 else ''}"


def _complex(value: complex, scalar: ScalarType) -> str:
    """Return a call of CMPLX, since `re + im * I` loses signs of zero and makes NaN of
    infinities.
    """
    macro = "CMPLXF" if scalar.bits == 64 else "CMPLX"
    part = FLOAT32 if scalar.bits == 64 else FLOAT64
    return f"{macro}({_float(value.real, part)}, {_float(value.imag, part)})"
