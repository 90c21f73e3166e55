"""Sums inside a term: which of them are equal, and where the loops of non-restricting ones run.

    A[i,j] * sum(k, A[i,k] * A[j,k]) / (d[i] + d[j] - sum(l, A[j,l] * A[i,l]))

Both sums are equal, and computed once. Their loops run where A[i,j] is stored: the term is zero
elsewhere, whatever is in its divisor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from taco_py.compiler.concrete.terms import reductions
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.tree import (
    all_reductions,
    children,
    exchange,
    peel_reductions,
)


def sum_key(sum_: Expr) -> Hashable:
    """Return a key that is equal for sums up to names of indices and order of commuting
    arguments."""
    return _key(sum_, {})


def equal_sums(expr: Expr, sum_: Expr) -> Iterator[Reduce]:
    """Return the outermost sums of an expression that are equal to one of them, itself included."""
    key = sum_key(sum_)
    return (other for other in reductions(expr) if other is sum_ or sum_key(other) == key)


def exchange_equal(expr: Expr, sum_: Expr, new: Expr) -> Expr:
    """Put `new` in the place of a sum, which is compared by identity, and of equal ones.

    b[i] - sum(j, A[i,j]) * sum(k, A[i,k])  →  b[i] - T[i] * T[i]
    """
    inside = expr
    while isinstance(inside, Reduce):
        inside = inside.body
    for other in tuple(equal_sums(inside, sum_)) or (sum_,):
        expr = exchange(expr, other, new)
    return expr


def distinct(sums: Iterator[Reduce]) -> tuple[Reduce, ...]:
    """Return the first of each group of equal sums."""
    firsts: dict[Hashable, Reduce] = {}
    for sum_ in sums:
        firsts.setdefault(sum_key(sum_), sum_)
    return tuple(firsts.values())


def _key(expr: Expr, names: Mapping[str, str]) -> Hashable:
    match expr:
        case Access(tensor, indices):
            return "access", tensor, tuple(names.get(i, i) for i in indices)
        case Literal():
            return "literal", expr
        case Reduce(operator, index, body):
            return "sum", operator.name, _key(body, {**names, index: f"#{len(names)}"})
        case Call(operator, args):
            parts = [_key(arg, names) for arg in args]
            if operator.commutative:
                parts.sort(key=repr)
            return "call", operator.name, tuple(parts)
    raise AssertionError(expr)


def loose_sums(body: Expr) -> tuple[Reduce, ...]:
    """Return the sums of a body that may be zero where it is not: in divisors, and beside other
    terms."""
    return tuple(sum_ for sum_ in reductions(body) if not _needs(body, sum_))


def around_loose(body: Expr, sums: tuple[Reduce, ...]) -> Expr:
    """Return an expression that is stored where the loops of some of a body's sums run.

    A[i,j] / (1 + sum(k, B[i,k] * C[k,j]))  →  A[i,j] / (1 + 1) * (B[i,k] * C[k,j])
    """
    outer = body
    for sum_ in sums:
        outer = exchange(outer, sum_, Literal(1.0))
    for sum_ in sums:
        outer = Call(MUL, (outer, sum_.body))
    return outer


def summed_indices(sum_: Reduce) -> frozenset[str]:
    """Return the indices of a sum, and of the sums just inside it with the same operator.

    sum(j, sum(k, A[i,j] * sum(l, B[k,l])))  →  j and k
    """
    indices, _ = peel_reductions(sum_, sum_.operator)
    return frozenset(indices)


def bound_in(sum_: Reduce) -> frozenset[str]:
    """Return the indices over which a sum and its inner sums add up."""
    return frozenset(node.index for node in all_reductions(sum_))


def _needs(expr: Expr, sum_: Reduce) -> bool:
    """Tell whether an expression is zero wherever a sum in it is."""
    if expr is sum_:
        return True
    if not isinstance(expr, Call):
        return isinstance(expr, Reduce) and any(_needs(child, sum_) for child in children(expr))
    zeros = zip(expr.args, expr.operator.annihilators, strict=False)
    return any(zero is not None and zero == 0 and _needs(arg, sum_) for arg, zero in zeros)
