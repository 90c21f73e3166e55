"""Smart constructors: make loop IR and simplify it on the way (rules: see `passes.simplify`).

Integers and bools of Python may stand for constants.

>>> from codegen.ir import Var
>>> n = Var("n")
>>> add(mul(n, 1), 0) is n
True
"""

from __future__ import annotations

from codegen.algebra import simplify_step
from codegen.infer import type_of
from codegen.ir import (
    FALSE,
    TRUE,
    Apply,
    Array,
    Assign,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    Declare,
    Expr,
    If,
    Load,
    Role,
    Select,
    Stmt,
    Unary,
    Var,
)
from codegen.libraries.scalar_functions import (
    CFunction,
    Fixed,
    Itself,
    Operator,
    common_type,
    function_of,
    spelling_of,
)
from codegen.types import INT64, ScalarType
from codegen.variables import declared_vars

ExprLike = Expr | int | bool


def const(value: bool | int | float | complex, type: ScalarType = INT64) -> Const:
    """Return a constant; a bool of Python is one of type BOOL whatever `type` says."""
    if isinstance(value, bool) and type == INT64:
        return TRUE if value else FALSE
    return Const(value, type)


def zero(type: ScalarType) -> Const:
    """Return the zero of `type`, as Python writes it."""
    return Const(_PYTHON[type.kind](0), type)


def one(type: ScalarType) -> Const:
    """Return the one of `type`, as Python writes it."""
    return Const(_PYTHON[type.kind](1), type)


_PYTHON: dict[str, type[bool] | type[int] | type[float] | type[complex]] = {
    "bool": bool,
    "int": int,
    "uint": int,
    "float": float,
    "complex": complex,
}


def expr(value: ExprLike) -> Expr:
    """Return `value` itself, or the constant that a Python number stands for."""
    if isinstance(value, bool | int):
        return const(value)
    return value


# ---------------------------------------------------------------- expressions


def binary(op: str, left: ExprLike, right: ExprLike) -> Expr:
    """Return `left op right`, simplified."""
    return simplify_step(Binary(op, expr(left), expr(right)))


def add(*terms: ExprLike) -> Expr:
    """Return the sum of `terms` from the left; 0 when there are none."""
    return _chain("+", terms, const(0))


def mul(*factors: ExprLike) -> Expr:
    """Return the product of `factors` from the left; 1 when there are none."""
    return _chain("*", factors, const(1))


def and_(*conditions: ExprLike) -> Expr:
    """Tell whether all `conditions` hold; true when there are none."""
    return _chain("&&", conditions, TRUE)


def or_(*conditions: ExprLike) -> Expr:
    """Tell whether one of `conditions` holds; false when there are none."""
    return _chain("||", conditions, FALSE)


def minimum(first: ExprLike, *rest: ExprLike) -> Expr:
    """Return the least of the arguments."""
    return _chain("min", (first, *rest), const(0))


def maximum(first: ExprLike, *rest: ExprLike) -> Expr:
    """Return the greatest of the arguments."""
    return _chain("max", (first, *rest), const(0))


def _chain(op: str, operands: tuple[ExprLike, ...], empty: Expr) -> Expr:
    if not operands:
        return empty
    result = expr(operands[0])
    for operand in operands[1:]:
        result = binary(op, result, operand)
    return result


def sub(left: ExprLike, right: ExprLike) -> Expr:
    return binary("-", left, right)


def div(left: ExprLike, right: ExprLike) -> Expr:
    """Return `left / right`; on integers truncated, as in C."""
    return binary("/", left, right)


def mod(left: ExprLike, right: ExprLike) -> Expr:
    """Return the remainder of `div`, with the sign of `left`."""
    return binary("%", left, right)


def lt(left: ExprLike, right: ExprLike) -> Expr:
    return binary("<", left, right)


def le(left: ExprLike, right: ExprLike) -> Expr:
    return binary("<=", left, right)


def ge(left: ExprLike, right: ExprLike) -> Expr:
    return binary(">=", left, right)


def eq(left: ExprLike, right: ExprLike) -> Expr:
    return binary("==", left, right)


def ne(left: ExprLike, right: ExprLike) -> Expr:
    return binary("!=", left, right)


def not_(operand: ExprLike) -> Expr:
    return simplify_step(Unary("!", expr(operand)))


def cast(type: ScalarType, operand: ExprLike) -> Expr:
    """Return `operand` as a `type`; itself when it is one already."""
    return simplify_step(Cast(type, expr(operand)))


def select(condition: ExprLike, then: ExprLike, orelse: ExprLike) -> Expr:
    """Return `then` where `condition` holds, else `orelse`."""
    return simplify_step(Select(expr(condition), expr(then), expr(orelse)))


def load(array: Array, index: ExprLike) -> Load:
    """Return `array[index]`, of the array's element type."""
    return Load(array, expr(index))


def load_index(array: Array, index: ExprLike) -> Expr:
    """Return `array[index]` of a pos or crd array, as the 64-bit integer that indices are computed
    in."""
    return cast(INT64, load(array, index))


def call(function: str, type: ScalarType, *args: ExprLike) -> Call:
    """Return `function(args)`, a pure function of C that returns a `type`."""
    return Call(function, tuple(expr(arg) for arg in args), type)


def apply(function: str, *args: ExprLike) -> Expr:
    """Return a scalar function of `codegen.libraries.scalar_functions` of arguments of one type.

    Raises KeyError where there is none of that name, or none for the type.
    """
    operands = tuple(expr(arg) for arg in args)
    common = common_type([type_of(operand) for operand in operands])
    match spelling_of(function, common):
        case CFunction():
            return Apply(function, operands)
        case Operator(op=op) if len(operands) == 1:
            return simplify_step(Unary(op, operands[0]))
        case Operator(op=op):
            return simplify_step(Binary(op, *operands))
        case Itself():
            return operands[0]
        case Fixed(value=value):
            result = function_of(function).result_type(common)
            return Const(_PYTHON[result.kind](value), result)


# ---------------------------------------------------------------- statements


def block(*statements: Stmt | None) -> Block:
    """Return the statements in order; None is left out and a Block gives its own statements.

    A block keeps its scope where it declares a name that is declared beside it too.
    """
    body: list[Stmt] = []
    for place, statement in enumerate(statements):
        inner = block(*statement.body) if isinstance(statement, Block) else None
        if inner is None:
            body += () if statement is None else (statement,)
        elif _is_apart(inner, (*statements[:place], *statements[place + 1 :])):
            body.append(inner)
        else:
            body += inner.body
    return Block(tuple(body))


def _is_apart(inner: Block, siblings: tuple[Stmt | None, ...]) -> bool:
    """Tell whether the scope of `inner` cannot be that of the statements beside it."""
    declared = {stmt.var.name for stmt in inner.body if isinstance(stmt, Declare)}
    outer_names = (var.name for sibling in siblings for var in declared_vars(sibling))
    return bool(declared) and not declared.isdisjoint(outer_names)


def if_(condition: ExprLike, then: Stmt, orelse: Stmt | None = None) -> Stmt:
    """Return an If, or the branch that a constant condition selects."""
    test = expr(condition)
    if test == TRUE:
        return then
    if test == FALSE:
        return block(orelse)
    return If(test, block(then), block(orelse))


def increment(var: Var, by: ExprLike = 1, role: Role = Role.CONTROL) -> Assign:
    """Return `var += by`, where `by` is an integer by default of the type of `var`."""
    amount = Const(by, var.type) if isinstance(by, int) else by
    return Assign(var, amount, "+", role)


def bit(word: Expr, place: Expr) -> Expr:
    """Tell whether a bit of an integer is 1, the lowest at place 0."""
    return ne(binary("&", apply("right_shift", word, place), 1), 0)
