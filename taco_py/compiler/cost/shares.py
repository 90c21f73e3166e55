"""At which share of the tuples over a set of indices an expression is not plainly zero.

A[i,j] * (B[j,k] + C[k])  →  A's · min(1, B's + C's)
A[i,j] > 1                →  A's
A[i,j] * A[i,j]           →  A's
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce as fold
from operator import add, mul
from typing import assert_never

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.cost.sets import Bound, Number
from taco_py.language.legal.absent import call_fill, differing, operator_of, reduced_fill
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Number as Fill


@dataclass(frozen=True, slots=True)
class _Share:
    """Where an expression is not its fill value: where certain accesses all store something, and
    of these tuples at a share.

    fill  None where it has none
    """

    certain: frozenset[Access]
    rest: Number
    fill: Fill | None


def independent(expr: Expr, bound: Bound, access: Callable[[Access], Number]) -> Number:
    """Return the share of `expr` where its accesses are independent of each other.

    Products multiply the shares of what makes them zero, each access once; sums add theirs.
    """
    share = _differing(expr, bound, access)
    if share.fill is None or share.fill != 0:
        return 1.0
    return fold(mul, map(access, share.certain), share.rest)


def _differing(expr: Expr, bound: Bound, access: Callable[[Access], Number]) -> _Share:
    """Return the share of `expr` where it is not its fill value. A full operand's share is 1."""
    match expr:
        case Access():
            return _Share(frozenset((expr,)), 1.0, 0)
        case Literal(value):
            return _Share(frozenset(), 0.0, value)
        case Reduce(operator, _, body):
            share = _differing(body, bound, access)
            return replace(share, fill=reduced_fill(operator, share.fill))
        case Call(_, args):
            parts = [_differing(arg, bound, access) for arg in args]
            fills = [part.fill for part in parts]
            operator = operator_of(expr)
            groups = [
                _any_of([parts[place] for place in group], bound, access)
                for group in differing(operator, fills)
            ]
            certain = frozenset(a for group in groups for a in group.certain)
            rest = fold(mul, (group.rest for group in groups), 1.0)
            return _Share(certain, rest, call_fill(operator, fills))
        case _:
            assert_never(expr)


def _any_of(parts: Sequence[_Share], bound: Bound, access: Callable[[Access], Number]) -> _Share:
    """Return the share where any of several expressions differs: all of it at most."""
    parts = [part for part in parts if part.certain or np.any(part.rest)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    certain = frozenset.intersection(*(part.certain for part in parts))
    shares = (fold(mul, map(access, part.certain - certain), part.rest) for part in parts)
    return _Share(certain, bound.least(1.0, fold(add, shares)), None)
