"""Simplification of derivatives.

0 * x → 0    1 * x → x    x + 0 → x    where(c, 0, 0) → 0    conj(conj(x)) → x    --x → x

A zero here is that of a derivative, which annihilates any factor.
"""

from __future__ import annotations

from taco_py.language.notation.nodes import Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, DIV, MUL, NEG, SUB
from taco_py.language.notation.tree import is_call_of, map_children

ZERO = Literal(0)


def is_number(expr: Expr, value: complex) -> bool:
    """Tell whether an expression is a literal of a value."""
    return isinstance(expr, Literal) and expr.value == value


def is_zero(expr: Expr) -> bool:
    """Tell whether an expression is a literal 0."""
    return is_number(expr, 0)


def simplified(expr: Expr) -> Expr:
    """Simplify an expression bottom-up."""
    result = map_children(expr, simplified)
    if isinstance(result, Reduce):
        return ZERO if is_zero(result.body) and result.operator == ADD else result
    if not isinstance(result, Call):
        return result
    rule = RULES.get(result.operator.name)
    return result if rule is None else rule(result)


def _product(call: Call) -> Expr:
    one, other = call.args
    if is_zero(one) or is_zero(other):
        return ZERO
    if is_number(one, 1):
        return other
    return one if is_number(other, 1) else call


def _sum(call: Call) -> Expr:
    one, other = call.args
    if is_zero(other):
        return one
    if is_zero(one):
        return other if call.operator == ADD else simplified(Call(NEG, (other,)))
    return call


def _quotient(call: Call) -> Expr:
    one, other = call.args
    return ZERO if is_zero(one) else one if is_number(other, 1) else call


def _negation(call: Call) -> Expr:
    (arg,) = call.args
    if is_call_of(arg, NEG):
        return arg.args[0]
    return ZERO if is_zero(arg) else call


def _choice(call: Call) -> Expr:
    _, one, other = call.args
    return ZERO if is_zero(one) and is_zero(other) else call


def _conjugate(call: Call) -> Expr:
    (arg,) = call.args
    if is_call_of(arg, call.operator):
        return arg.args[0]
    return arg if is_zero(arg) else call


RULES = {
    MUL.name: _product, ADD.name: _sum, SUB.name: _sum, DIV.name: _quotient, NEG.name: _negation,
    "where": _choice, "conj": _conjugate,
}  # fmt: skip
"""Rules, by the names of operators."""
