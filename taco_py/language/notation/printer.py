"""Index notation to text, with the fewest parentheses that the parser needs.

    parse_assignment(to_text(a)) == a        for every assignment `a` of the parser

Nodes without syntax in texts print all the same: negative and complex numbers as in Python,
reductions by other operators as calls.
"""

from __future__ import annotations

from typing import assert_never

from taco_py.language.notation.nodes import (
    Access,
    Assignment,
    Call,
    Expr,
    Literal,
    Reduce,
    Subscript,
)
from taco_py.language.notation.operators import NEG
from taco_py.language.notation.rewrites.index_numbers import index_of, is_size
from taco_py.language.notation.tree import peel_reductions

_ATOM = 100  # binds tighter than every operator


REDUCTION_NAMES = {"add": "sum", "mul": "prod", "logical_or": "any", "logical_and": "all"}
"""Names of reductions in texts, by the names of their operators, where these differ."""


def to_text(node: Expr | Assignment) -> str:
    """Return the text of an expression or an assignment.

    to_text(Call(MUL, (Call(ADD, (a, b)), Access("x", ("i",))))) = "(a + b) * x[i]"
    """
    if not isinstance(node, Assignment):
        return _expression(node)
    symbol = node.operator.symbol if node.operator else ""
    return f"{_access(node.target)} {symbol}= {_expression(node.value)}"


def _expression(expr: Expr) -> str:
    match expr:
        case Access():
            return _access(expr)
        case Literal():
            return repr(expr.value)
        case Call():
            return _call(expr)
        case Reduce():
            return _reduce(expr)
        case _:
            assert_never(expr)


def _access(access: Access) -> str:
    if access.is_number:
        name = index_of(access)
        return f"size({name})" if is_size(access) else name
    inside = tuple(map(subscript_text, access.subscripts)) or access.indices
    return f"{access.tensor}[{','.join(inside)}]" if inside else access.tensor


def subscript_text(subscript: Subscript) -> str:
    """Return the text of a subscript: multiples of indices, gathers, then the constant:
    `2*i+p[j]-1`."""
    terms = [(name, factor) for name, factor in subscript.indices]
    for access, factor in subscript.gathered:
        terms.append((_access(access) if access.indices else f"{access.tensor}[]", factor))
    text = ""
    for name, factor in terms:
        sign = "-" if factor < 0 else "+" if text else ""
        text += sign + ("" if abs(factor) == 1 else f"{abs(factor)}*") + name
    if not text:
        return str(subscript.constant)
    return f"{text}{subscript.constant:+d}" if subscript.constant else text


def _call(call: Call) -> str:
    operator = call.operator
    if operator.symbol.isidentifier():
        return f"{operator.symbol}({', '.join(map(_expression, call.args))})"
    if operator.exponent is not None:
        return _parenthesized(call.args[0], operator.precedence + 1) + operator.symbol
    if operator.arity == 1:
        return operator.symbol + _parenthesized(call.args[0], operator.precedence)
    left, right = call.args
    # left associative: an operand of the same precedence needs parentheses on the right alone, and
    # a comparison on both sides
    return (
        f"{_parenthesized(left, operator.precedence + operator.compares)} {operator.symbol} "
        f"{_parenthesized(right, operator.precedence + 1)}"
    )


def _reduce(expr: Reduce) -> str:
    """Write nested reductions by one operator as one: `sum(i, j, …)`."""
    indices, body = peel_reductions(expr, expr.operator)
    name = REDUCTION_NAMES.get(expr.operator.name, expr.operator.name)
    return f"{name}({', '.join(indices)}, {_expression(body)})"


def _parenthesized(expr: Expr, precedence: int) -> str:
    text = _expression(expr)
    return text if _precedence(expr) >= precedence else f"({text})"


def _precedence(expr: Expr) -> int:
    match expr:
        case Call() if not expr.operator.symbol.isidentifier():
            return expr.operator.precedence
        case Literal() if repr(expr.value).startswith("-"):
            return NEG.precedence
        case _:
            return _ATOM
