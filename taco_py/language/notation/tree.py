"""One step down an expression: its parts, and the same expression with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard, assert_never

from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Operator


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions of `expr`, left to right."""
    match expr:
        case Access() | Literal():
            return ()
        case Call():
            return expr.args
        case Reduce():
            return (expr.body,)
        case _:
            assert_never(expr)


def map_children(expr: Expr, function: Callable[[Expr], Expr]) -> Expr:
    """Return `expr` with `function(child)` for each child; the same object when no child changed.

    map_children(a + b, f) = f(a) + f(b)
    """
    match expr:
        case Access() | Literal():
            return expr
        case Call():
            args = tuple(map(function, expr.args))
            same = all(new is old for new, old in zip(args, expr.args, strict=True))
            return expr if same else replace(expr, args=args)
        case Reduce():
            body = function(expr.body)
            return expr if body is expr.body else replace(expr, body=body)
        case _:
            assert_never(expr)


def map_accesses(expr: Expr, function: Callable[[Access], Expr]) -> Expr:
    """Return `expr` with `function(access)` for each access; the same object when none changed."""
    if isinstance(expr, Access):
        return function(expr)
    return map_children(expr, lambda child: map_accesses(child, function))


def exchange(expr: Expr, old: Expr, new: Expr) -> Expr:
    """Replace the node `old` in `expr`, which is identified by `is`, by `new`."""
    if expr is old:
        return new
    return map_children(expr, lambda child: exchange(child, old, new))


def walk(expr: Expr) -> Iterator[tuple[Expr, int]]:
    """Yield every node of `expr` with its depth (the root's is 1), parents first, left to right.

    It does not recurse, so that it also takes expressions too deep for recursive functions.
    """
    pending: list[tuple[Expr, int]] = [(expr, 1)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        pending.extend((child, depth + 1) for child in reversed(children(node)))


def addends(expr: Expr) -> Iterator[Expr]:
    """Yield the terms of nested sums, whatever their signs: a, b and c of a - (b + c)."""
    if isinstance(expr, Call) and expr.operator.additive:
        for arg in expr.args:
            yield from addends(arg)
    else:
        yield expr


# ---------------------------------------------------------------- nodes of one sort


def is_additive(expr: object) -> TypeGuard[Call]:
    """Tell whether an expression adds or subtracts its arguments."""
    return isinstance(expr, Call) and expr.operator.additive


def is_call_of(expr: object, operator: Operator) -> TypeGuard[Call]:
    """Tell whether an expression is a call of an operator."""
    return isinstance(expr, Call) and expr.operator == operator


def is_sum(expr: object) -> TypeGuard[Reduce]:
    """Tell whether an expression sums over an index."""
    return isinstance(expr, Reduce) and expr.operator.additive


def is_reduction_by(expr: object, operator: Operator) -> TypeGuard[Reduce]:
    """Tell whether an expression reduces by an operator."""
    return isinstance(expr, Reduce) and expr.operator == operator


def all_calls(expr: Expr) -> Iterator[Call]:
    """Yield every call of an operator in an expression, parents first."""
    return (node for node, _ in walk(expr) if isinstance(node, Call))


def all_reductions(expr: Expr) -> Iterator[Reduce]:
    """Yield every reduction in an expression, parents first, those inside others too."""
    return (node for node, _ in walk(expr) if isinstance(node, Reduce))


def has_reductions(expr: Expr) -> bool:
    """Tell whether an expression reduces over an index anywhere."""
    return any(True for _ in all_reductions(expr))


def peel_reductions(expr: Expr, operator: Operator) -> tuple[tuple[str, ...], Expr]:
    """Return the indices of the reductions by one operator around an expression, and their body.

    peel_reductions(sum(i, sum(j, a)), ADD) = (i, j), a
    """
    indices: list[str] = []
    while is_reduction_by(expr, operator):
        indices.append(expr.index)
        expr = expr.body
    return tuple(indices), expr
