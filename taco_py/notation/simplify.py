"""Simplification by the operators' own algebra, where an operand is absent.

    before                after       because
    f(x, e), f(e, x)      x           e is an identity: x + 0, 0 + x, x - 0, x * 1, 1 * x, x / 1
    f(.., a, ..)          a           a annihilates f there: x * 0, 0 * x, 0 / x, -0
    0 - x                 -x          subtraction adds the negation
    sum(i, 0)             0           the sum of identities is the identity

The literals e and a are integers, or of a stated dtype as the lowerer writes them for absent
operands; a 1.0 or 0.0 of the user's may be there to widen the dtype, and stays. 0 * inf is 0 here,
as it is wherever a sparse operand stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.notation.dtypes import DType, expression_dtype, is_weak
from taco_py.notation.nodes import Call, Expr, Literal, Reduce
from taco_py.notation.operators import NEG, SUB, Number
from taco_py.notation.tree import map_children

Rule = Callable[[Expr], Expr | None]


def simplify(expr: Expr, dtypes: Mapping[str, DType] | None = None) -> Expr:
    """`expr` after the rules above, innermost first; the same object when none applies.

    With the operands' `dtypes` the value keeps its dtype: an operand is left beside a zero when
    dropping the zero would narrow the arithmetic around it (`int8 + 0` where the zero stands for an
    absent float64), and a literal that takes the place of an expression has its dtype. Without them
    the rules look at structure alone, which is exact where all operands have one dtype that is not
    bool.

        simplify(A[i,j] * x[j] + 0) = A[i,j] * x[j]
    """
    below = map_children(expr, lambda child: simplify(child, dtypes))
    for rule in RULES:
        after = rule(below)
        if after is not None:
            return after if dtypes is None else _keeping_dtype(below, after, dtypes)
    return below


def _keeping_dtype(before: Expr, after: Expr, dtypes: Mapping[str, DType]) -> Expr:
    """`after` if it promotes as `before` does, made to if it is a literal, otherwise `before`."""
    needed = expression_dtype(before, dtypes)
    if _dtype_if_defined(after, dtypes) == needed and is_weak(after) == is_weak(before):
        return after
    return Literal(after.value, after.span, str(needed)) if isinstance(after, Literal) else before


def _dtype_if_defined(expr: Expr, dtypes: Mapping[str, DType]) -> DType | None:
    """The dtype of `expr`, or None: 0 - x is an int8 for an int8 0 and a bool x, but has no -x."""
    try:
        return expression_dtype(expr, dtypes)
    except OperandTypeError:
        return None


def _without_identity(expr: Expr) -> Expr | None:
    """f(x, e) -> x and f(e, x) -> x."""
    match expr:
        case Call(operator=operator, args=(left, right)):
            if _is(right, operator.right_identity):
                return left
            return right if _is(left, operator.identity) else None
        case _:
            return None


def _annihilated(expr: Expr) -> Expr | None:
    """f(.., a, ..) -> a."""
    if not isinstance(expr, Call):
        return None
    pairs = zip(expr.args, expr.operator.annihilators, strict=True)
    return next((arg for arg, annihilator in pairs if _is(arg, annihilator)), None)


def _negated(expr: Expr) -> Expr | None:
    """0 - x -> -x."""
    match expr:
        case Call(operator=operator, args=(left, right)) if operator == SUB and _is(left, 0):
            return Call(NEG, (right,), expr.span)
        case _:
            return None


def _empty_sum(expr: Expr) -> Expr | None:
    """sum(i, e) -> e for the identity e of the reduction."""
    match expr:
        case Reduce(operator=operator, body=body) if _is(body, operator.identity):
            return body
        case _:
            return None


RULES: tuple[Rule, ...] = (_annihilated, _without_identity, _negated, _empty_sum)


def _is(expr: Expr, value: Number | None) -> bool:
    """Whether `expr` is a literal of this value, an integer or of a stated dtype."""
    if value is None or not isinstance(expr, Literal):
        return False
    return expr.value == value and (isinstance(expr.value, int) or expr.dtype is not None)
