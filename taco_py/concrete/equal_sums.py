"""Sums that are equal but for the names of the indices that they bind."""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.concrete.terms import reductions
from taco_py.notation.nodes import Access, Expr, Reduce
from taco_py.notation.tree import exchange, map_accesses, map_children


def equal_sums(expr: Expr, sum_: Reduce) -> Iterator[Reduce]:
    """Find the outermost sums of an expression that are equal to one of them, itself included."""
    form = with_numbers(sum_)
    return (other for other in reductions(expr) if other is sum_ or with_numbers(other) == form)


def exchange_equal(expr: Expr, sum_: Reduce, new: Expr) -> Expr:
    """Put `new` in the place of a sum, which is told by identity, and of those equal to it.

    b[i] - sum(j, A[i,j]) * sum(k, A[i,k])  →  b[i] - T[i] * T[i]
    """
    equal = tuple(equal_sums(_term_of(expr), sum_))
    for other in equal or (sum_,):
        expr = exchange(expr, other, new)
    return expr


def with_numbers(expr: Expr, bound: int = 0) -> Expr:
    """Name the indices that sums bind by their depth, so that equal sums are equal values.

    sum(j, A[i,j] * x[j])  →  sum(0, A[i,0] * x[0])
    """
    if isinstance(expr, Reduce):
        old, new = expr.index, str(bound)
        body = map_accesses(expr.body, lambda access: _renamed(access, old, new))
        return Reduce(expr.operator, new, with_numbers(body, bound + 1))
    return map_children(expr, lambda child: with_numbers(child, bound))


def _renamed(access: Access, old: str, new: str) -> Access:
    indices = tuple(new if index == old else index for index in access.indices)
    return Access(access.tensor, indices)


def _term_of(expr: Expr) -> Expr:
    """What is inside the sums around an expression."""
    while isinstance(expr, Reduce):
        expr = expr.body
    return expr
