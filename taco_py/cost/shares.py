"""At which share of the tuples over a set of indices an expression is not plainly zero.

Sets are numbers, a bit an index. Loops are compared over many sets of the same few indices, so that
what an expression asks of its accesses is put together once:

    share_of(A[i,j] * (B[j,k] + C[k])) = bound → A(bound) · min(1, B(bound) + C(bound))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import assert_never

from taco_py.notation.nodes import Access, Call, Expr, Literal, Reduce

Share = Callable[[int], float]


def bits_of(bits: Mapping[str, int], names: Iterable[str]) -> int:
    """A set of indices as a number; names that have no bit are left out."""
    found = 0
    for name in names:
        found |= bits.get(name, 0)
    return found


def share_of(expr: Expr, access: Callable[[Access], Share]) -> Share:
    """The share of `expr` where its accesses are independent of each other.

    Products multiply the shares of what makes them zero; sums add theirs.
    """
    match expr:
        case Access():
            return access(expr)
        case Literal(value):
            return _zero if value == 0 else _one
        case Reduce(_, _, body):
            return share_of(body, access)
        case Call(operator, args):
            parts = [share_of(arg, access) for arg in args]
            annihilators = operator.annihilators[: operator.arity]
            restricting = [
                p for p, a in zip(parts, annihilators, strict=True) if a is not None and a == 0
            ]
            return _multiplied(restricting) if restricting else _added(parts)
        case _:
            assert_never(expr)


def _zero(_: int) -> float:
    return 0.0


def _one(_: int) -> float:
    return 1.0


def _multiplied(parts: list[Share]) -> Share:
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        left, right = parts
        return lambda bound: left(bound) * right(bound)
    return lambda bound: prod([part(bound) for part in parts])


def _added(parts: list[Share]) -> Share:
    return lambda bound: min(1.0, sum([part(bound) for part in parts]))
