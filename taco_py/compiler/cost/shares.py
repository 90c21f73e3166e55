"""At which share of the tuples over a set of indices an expression is not plainly zero.

A[i,j] * (B[j,k] + C[k])  →  A's · min(1, B's + C's)
A[i,j] > 1                →  A's
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as fold
from operator import add, mul
from typing import assert_never

from taco_py.compiler.cost.sets import Bound, Number
from taco_py.language.legal.absent import call_fill, differing, operator_of, reduced_fill
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Number as Fill


def independent(expr: Expr, bound: Bound, access: Callable[[Access], Number]) -> Number:
    """Return the share of `expr` where its accesses are independent of each other.

    Products multiply the shares of what makes them zero; sums add theirs.
    """
    share, fill = _differing(expr, bound, access)
    return share if fill is not None and fill == 0 else 1.0


def _differing(
    expr: Expr, bound: Bound, access: Callable[[Access], Number]
) -> tuple[Number, Fill | None]:
    """Return the share of `expr` where it is not its fill value, and that. A full operand's share
    is 1."""
    match expr:
        case Access():
            return access(expr), 0
        case Literal(value):
            return 0.0, value
        case Reduce(operator, _, body):
            share, fill = _differing(body, bound, access)
            return share, reduced_fill(operator, fill)
        case Call(_, args):
            parts = [_differing(arg, bound, access) for arg in args]
            fills = [fill for _, fill in parts]
            operator = operator_of(expr)
            groups = differing(operator, fills)
            shares = (_sum(bound, [parts[place][0] for place in group]) for group in groups)
            return fold(mul, shares), call_fill(operator, fills)
        case _:
            assert_never(expr)


def _sum(bound: Bound, shares: Sequence[Number]) -> Number:
    """Add up shares, which are no more than 1 together."""
    return shares[0] if len(shares) == 1 else bound.least(1.0, fold(add, shares))
