"""The algebraic rules of expressions: one step on a node whose operands are simple already.

Every rule is exact: it holds for each value, infinities, NaN, -0.0 and overflow included, so there
are fewer of them for floats than for integers. `build` applies them as an expression is made and
`passes.simplify`, whose docstring lists them, to a whole tree.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.infer import COMPARISONS, LOGICAL, type_of
from codegen.ir import FALSE, TRUE, Binary, Cast, Const, Expr, Select, Unary
from codegen.types import BOOL, ScalarType

_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_EXACT_INTEGERS = {"float32": 2**24, "float64": 2**53, "complex64": 2**24, "complex128": 2**53}


def simplify_step(expr: Expr) -> Expr:
    """Return `expr` with the first rule that fits its root applied; the same object when none
    does."""
    match expr:
        case Binary():
            return _binary(expr)
        case Unary(op="-"):
            return _negation(expr)
        case Unary(op="!"):
            return _not(expr)
        case Cast():
            return _cast(expr)
        case Select(condition=Const(value=value), then=then, orelse=orelse):
            return then if value else orelse
        case Select(then=then, orelse=orelse) if then == orelse and _has_one_zero(then):
            return then
    return expr


def holds(scalar: ScalarType, value: int) -> bool:
    """Tell whether the integer type `scalar` has the number `value`."""
    if scalar.kind == "int":
        return -(1 << (scalar.bits - 1)) <= value < 1 << (scalar.bits - 1)
    return scalar.kind == "uint" and 0 <= value < 1 << scalar.bits


def is_const(expr: Expr, value: complex) -> bool:
    """Tell whether `expr` is the constant `value`; -0.0 is not 0."""
    return isinstance(expr, Const) and expr.value == value and str(expr.value)[0] != "-"


# ---------------------------------------------------------------- binary operators


def _binary(node: Binary) -> Expr:
    folded = _fold(node)
    if folded is not None:
        return folded
    rules = _LOGICAL_RULES if type_of(node.left).kind == "bool" else _RULES
    rule = rules.get(node.op)
    simplified = rule(node) if rule is not None else None
    return node if simplified is None else _as_wide(simplified, type_of(node))


def _as_wide(expr: Expr, scalar: ScalarType) -> Expr:
    """Return `expr` as a `scalar`: a rule may have dropped the operand that made the result a wide
    one."""
    return expr if type_of(expr) == scalar else simplify_step(Cast(scalar, expr))


def _fold(node: Binary) -> Expr | None:
    match node:
        case Binary(op, Const(value=left, type=a), Const(value=right, type=b)):
            if a == b == BOOL:
                return _fold_bool(op, bool(left), bool(right))
            if a.is_integer and b.is_integer:
                return _fold_integer(op, int(left.real), int(right.real), type_of(node))
    return None


def _fold_bool(op: str, left: bool, right: bool) -> Expr | None:
    meaning = _LOGICAL_MEANING.get(op)
    if meaning is None:
        return None
    return TRUE if meaning(left, right) else FALSE


def _fold_integer(op: str, left: int, right: int, scalar: ScalarType) -> Expr | None:
    if op in COMPARISONS:
        return TRUE if _COMPARE[op](left, right) else FALSE
    if op in LOGICAL or (op in "/%" and right == 0):
        return None
    value = _ARITHMETIC[op](left, right)
    return Const(value, scalar) if holds(scalar, value) else None


def _truncated_quotient(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _truncated_quotient,
    "%": lambda a, b: a - b * _truncated_quotient(a, b),
    "min": min,
    "max": max,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_LOGICAL_MEANING: dict[str, Callable[[bool, bool], bool]] = {
    "&&": lambda a, b: a and b,
    "*": lambda a, b: a and b,
    "min": lambda a, b: a and b,
    "||": lambda a, b: a or b,
    "+": lambda a, b: a or b,
    "max": lambda a, b: a or b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "^": lambda a, b: a != b,
}


def _is_integer(expr: Expr) -> bool:
    return type_of(expr).is_integer


def _has_one_zero(expr: Expr) -> bool:
    """Tell whether equal constants are the same value: 0.0 == -0.0."""
    return type_of(expr).kind in ("bool", "int", "uint")


def _is_real(expr: Expr) -> bool:
    """Tell whether 1 and 0.0 are neutral to the last bit, which Annex G denies complex numbers."""
    return type_of(expr).kind in ("int", "uint", "float")


def _const_last(node: Binary) -> Expr | None:
    """Return `2 + x -> x + 2`, so that the other rules need one form only."""
    if isinstance(node.left, Const) and not isinstance(node.right, Const):
        return simplify_step(Binary(node.op, node.right, node.left))
    return None


def _add(node: Binary) -> Expr | None:
    if not _is_integer(node):
        return None
    match node:
        case Binary(left=left, right=right) if is_const(right, 0):
            return left
        case Binary(left=left, right=Const(value=int(c), type=own)) if c < 0 and holds(own, -c):
            return simplify_step(Binary("-", left, Const(-c, own)))
        case Binary(left=Binary("-", x, y), right=right) if y == right:
            return x
        case Binary(left=left, right=Binary("-", x, y)) if y == left:
            return x
        case Binary(left=left, right=Binary("+", x, Const() as c) as right):
            if type_of(right) == type_of(node):
                return simplify_step(Binary("+", simplify_step(Binary("+", left, x)), c))
    return _shift(node, 1) or _const_last(node)


def _subtract(node: Binary) -> Expr | None:
    if is_const(node.right, 0) and _is_real(node.left):
        return node.left
    if not _is_integer(node):
        return None
    match node:
        case Binary(left=left, right=right) if left == right:
            return Const(0, type_of(node))
        case Binary(left=left, right=Const(value=int(c), type=own)) if c < 0 and holds(own, -c):
            return simplify_step(Binary("+", left, Const(-c, own)))
        case Binary(left=Binary("+", x, y), right=right) if y == right:
            return x
        case Binary(left=Binary("+", x, y), right=right) if x == right:
            return y
    return _shift(node, -1)


def _shift(node: Binary, sign: int) -> Expr | None:
    """Return `(x ± a) + sign * b -> x + (sign * b ± a)`, unless the sum leaves the type."""
    match node:
        case Binary(left=Binary("+" | "-" as op, x, Const(value=a)) as left, right=Const(value=b)):
            total = (int(a.real) if op == "+" else -int(a.real)) + sign * int(b.real)
            scalar = type_of(node)
            if type_of(left) == scalar and holds(scalar, total):
                return simplify_step(Binary("+", x, Const(total, scalar)))
    return None


def _multiply(node: Binary) -> Expr | None:
    if not _is_real(node):
        return None
    if is_const(node.right, 1):
        return node.left
    if not _is_integer(node):
        return node.right if is_const(node.left, 1) else None
    match node:
        case Binary(right=right) if is_const(right, 0):
            return Const(0, type_of(node))
        case Binary(left=Binary("*", x, Const(value=a)) as left, right=Const(value=b)):
            product, scalar = int(a.real) * int(b.real), type_of(node)
            if type_of(left) == scalar and holds(scalar, product):
                return simplify_step(Binary("*", x, Const(product, scalar)))
    return _const_last(node)


def _divide(node: Binary) -> Expr | None:
    return node.left if is_const(node.right, 1) and _is_real(node.left) else None


def _remainder(node: Binary) -> Expr | None:
    return Const(0, type_of(node)) if is_const(node.right, 1) else None


def _extremum(node: Binary) -> Expr | None:
    return node.left if node.left == node.right and _has_one_zero(node.left) else None


def _compare(node: Binary) -> Expr | None:
    if node.left == node.right and _has_one_zero(node.left):
        return TRUE if node.op in ("==", "<=", ">=") else FALSE
    match node:
        case Binary("==" | "!=", Cast(operand=truth), right) if is_const(right, 0):
            if type_of(truth) == BOOL:
                return truth if node.op == "!=" else simplify_step(Unary("!", truth))
    return None


def _compare_bools(node: Binary) -> Expr | None:
    for const, other in ((node.left, node.right), (node.right, node.left)):
        if const in (TRUE, FALSE):
            same = (const == TRUE) == (node.op == "==")
            return other if same else simplify_step(Unary("!", other))
    return _compare(node)


def _and(node: Binary) -> Expr | None:
    return _absorb(node, neutral=TRUE, absorbing=FALSE)


def _or(node: Binary) -> Expr | None:
    return _absorb(node, neutral=FALSE, absorbing=TRUE)


def _absorb(node: Binary, neutral: Const, absorbing: Const) -> Expr | None:
    left, right = node.left, node.right
    if absorbing in (left, right):
        return absorbing
    if left in (neutral, right):
        return right
    return left if right == neutral else None


_RULES: dict[str, Callable[[Binary], Expr | None]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "min": _extremum,
    "max": _extremum,
    **dict.fromkeys(sorted(COMPARISONS), _compare),
}
_LOGICAL_RULES: dict[str, Callable[[Binary], Expr | None]] = {
    "&&": _and,
    "&": _and,
    "*": _and,
    "min": _and,
    "||": _or,
    "|": _or,
    "+": _or,
    "max": _or,
    "==": _compare_bools,
    "!=": _compare_bools,
}

# ---------------------------------------------------------------- unary operators and casts


def _negation(node: Unary) -> Expr:
    match node.operand:
        case Unary(op="-", operand=inner):
            return inner
        case Const(value=int(value), type=scalar) if scalar.is_integer and holds(scalar, -value):
            return Const(-value, scalar)
        case Const(value=float(value), type=scalar) if scalar.kind == "float":
            return Const(-value, scalar)
    return node


def _not(node: Unary) -> Expr:
    match node.operand:
        case Const(value=value):
            return FALSE if value else TRUE
        case Unary(op="!", operand=inner):
            return inner
        case Binary(op=op, left=left, right=right) if op in ("==", "!="):
            return simplify_step(Binary(_NEGATED[op], left, right))
        case Binary(op=op, left=left, right=right) if op in _NEGATED and _is_integer(left):
            return simplify_step(Binary(_NEGATED[op], left, right))
    return node


def _cast(node: Cast) -> Expr:
    if type_of(node.operand) == node.type:
        return node.operand
    match node.operand:
        case Const(value=int(value), type=source) if source.is_integer or source == BOOL:
            return _cast_integer(node, int(value))
        case Cast(type=inner, operand=operand) if _widens(type_of(operand), inner, node.type):
            return simplify_step(Cast(node.type, operand))
    return node


def _cast_integer(node: Cast, value: int) -> Expr:
    target = node.type
    if target.is_integer:
        return Const(value, target) if holds(target, value) else node
    if target == BOOL:
        return TRUE if value else FALSE
    if abs(value) > _EXACT_INTEGERS.get(target.name, -1):
        return node
    return Const(float(value) if target.kind == "float" else complex(value), target)


def _widens(source: ScalarType, inner: ScalarType, outer: ScalarType) -> bool:
    """Tell whether the first of two casts between signed integers loses nothing."""
    return source.kind == inner.kind == outer.kind == "int" and inner.bits >= source.bits
