"""At which share of the tuples over a set of indices an expression is not plainly zero.

A[i,j] * (B[j,k] + C[k])  →  A's · min(1, B's + C's)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold
from operator import add, mul
from typing import assert_never

from taco_py.cost.sets import Bound, Number
from taco_py.notation.nodes import Access, Call, Expr, Literal, Reduce


def independent(expr: Expr, bound: Bound, access: Callable[[Access], Number]) -> Number:
    """The share of `expr` where its accesses are independent of each other.

    Products multiply the shares of what makes them zero; sums add theirs.
    """
    match expr:
        case Access():
            return access(expr)
        case Literal(value):
            return 0.0 if value == 0 else 1.0
        case Reduce(_, _, body):
            return independent(body, bound, access)
        case Call(operator, args):
            parts = [independent(arg, bound, access) for arg in args]
            annihilators = operator.annihilators[: operator.arity]
            restricting = [
                p for p, a in zip(parts, annihilators, strict=True) if a is not None and a == 0
            ]
            if restricting:
                return fold(mul, restricting)
            return bound.least(1.0, fold(add, parts))
        case _:
            assert_never(expr)
