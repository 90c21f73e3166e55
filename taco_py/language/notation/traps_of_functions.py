"""Warnings about functions of distances around which an index is summed.

    d[i,j] = sqrt((X[i,k] - Y[j,k])**2)                 k is summed around the root
    K[i,j] = exp(-(X[i,k] - Y[j,k])**2)                 k is summed around exp

A distance is a power or the absolute value of a difference, both sides of which have the index.
Inside a root any power counts as one: the sum around the root adds absolute values.
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.language.diagnostics.cautions import NotationWarning, caution
from taco_py.language.notation.functions.function_table import FUNCTIONS, POWER
from taco_py.language.notation.nodes import Call, Expr, Literal, Reduce
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.reduce import Free
from taco_py.language.notation.tree import addends, children, is_additive, is_call_of, walk

SIZE = FUNCTIONS["abs"]


def summed_around_functions(expr: Expr, bound: frozenset[str], free: Free) -> Iterator[UserWarning]:
    """Yield a warning for each index that is summed around a function of a distance along it.

    bound  the indices of the left-hand side and of explicit sums around the expression
    """
    bound = bound | {expr.index} if isinstance(expr, Reduce) else bound
    if isinstance(expr, Call) and expr.operator.closes:
        for index in free[id(expr)]:
            place = None if index in bound else _function_of_distance(expr, index, free)
            if place is not None:
                yield _warning(expr, _name(expr), index, place)
        bound = bound.union(free[id(expr)])
    for child in children(expr):
        yield from summed_around_functions(child, bound, free)


def _warning(expr: Expr, name: str, index: str, place: Expr) -> UserWarning:
    return caution(
        NotationWarning,
        f"{index} is summed around {name}: sum({index}, {to_text(expr)})",
        expr.span,
        f"to sum inside it write sum({index}, {to_text(place)}) there; to keep it as it "
        f"is, write sum({index}, …) around it",
    )


def _name(expr: Call) -> str:
    """Name a function as warnings do: exp; the root; the power; the comparison."""
    if _root(expr):
        return "the root"
    if expr.operator.exponent is not None or expr.operator == POWER:
        return "the power"
    return "the comparison" if expr.operator.compares else expr.operator.symbol


def _function_of_distance(expr: Call, index: str, free: Free) -> Expr | None:
    """Find the distance along an index in an argument of a function, or of functions inside it."""
    if _is_distance(expr, index, free):
        return None
    for node, _ in walk(expr):
        if not isinstance(node, Call) or not node.operator.closes:
            continue
        for arg in children(node):
            place = _root_of_power(node, index, free) or _distance_added(arg, index, free)
            if index in free[id(arg)] and place is not None:
                return place
    return None


def _distance_added(expr: Expr, index: str, free: Free) -> Expr | None:
    """Find the only term of an expression that has an index if it is a distance along it."""
    using = [term for term in addends(expr) if index in free[id(term)]]
    if len(using) != 1:
        return None
    inner = _multiple_of(using[0], index, free)
    if is_additive(inner):
        return _distance_added(inner, index, free)
    return using[0] if _is_distance(inner, index, free) else None


def _is_distance(expr: Expr, index: str, free: Free) -> bool:
    """Tell whether an expression is a power or absolute value of a difference along an index.

    |x[k] - y[k]|, (x[k] - y[k])**2, |x[k] - y[k]|**p
    """
    if not isinstance(expr, Call):
        return False
    power = (expr.operator.exponent or 0) > 1 or (
        expr.operator == POWER and index not in free[id(expr.args[1])]
    )
    if not power and expr.operator != SIZE:
        return False
    base = _multiple_of(expr.args[0], index, free)
    if power and is_call_of(base, SIZE):
        base = _multiple_of(base.args[0], index, free)
    sides = [term for term in addends(base) if index in free[id(term)]]
    return is_additive(base) and len(sides) > 1


def _multiple_of(expr: Expr, index: str, free: Free) -> Expr:
    """Strip the factors, divisors and minuses that do not have an index."""
    while isinstance(expr, Call) and expr.operator.exponent is None and any(expr.operator.linear):
        using = [arg for arg in expr.args if index in free[id(arg)]]
        place = [n for n, arg in enumerate(expr.args) if index in free[id(arg)]]
        if len(using) != 1 or not expr.operator.linear[place[0]]:
            return expr
        if expr.operator.additive and len(expr.args) > 1:
            return expr
        (expr,) = using
    return expr


def _root_of_power(expr: Call, index: str, free: Free) -> Expr | None:
    """Find the n-th power along an index below an n-th root."""
    using = [term for term in addends(expr.args[0]) if index in free[id(term)]]
    root = _root(expr)
    return using[0] if root and len(using) == 1 and _power(using[0], index, free) == root else None


def _root(expr: Expr) -> int:
    """Return n where an expression is an n-th root: 2 for sqrt(x) and x**0.5; else 0."""
    match expr:
        case Call(operator, (_, Literal(value))) if operator == POWER and isinstance(value, float):
            return round(1 / value) if value and 1 / value == round(1 / value) > 1 else 0
        case Call(operator):
            return operator.root
    return 0


def _power(expr: Expr, index: str, free: Free) -> int:
    """Return n where a term is a multiple of an n-th power that has an index; else 0."""
    if not isinstance(expr, Call):
        return 0
    using = [arg for arg in expr.args if index in free[id(arg)]]
    if expr.operator.exponent is None and any(expr.operator.linear) and len(using) == 1:
        return _power(using[0], index, free)
    return expr.operator.exponent or 0
