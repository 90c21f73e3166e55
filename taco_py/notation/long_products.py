"""Products of many factors as balanced trees, whose depth grows with the logarithm of their number.

    a * b * c * d   →   (a * b) * (c * d)        for more than 64 factors

Passes over an expression recurse; a product that is grouped from the left is as deep as it is long.
"""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.notation.nodes import Call, Expr
from taco_py.notation.operators import MUL

LONG = 64
"""Factors up to which a product is grouped from the left, as it is written."""


def product(factors: Sequence[Expr]) -> Expr:
    """Return the product of factors, grouped from the left unless there are many."""
    if len(factors) > LONG:
        return _balanced(factors)
    first, *others = factors
    for factor in others:
        first = Call(MUL, (first, factor))
    return first


def rebalanced(expr: Expr) -> Expr:
    """Return a product that is grouped from the left, balanced where it has many factors."""
    factors: list[Expr] = []
    left = expr
    while isinstance(left, Call) and left.operator == MUL:
        left, right = left.args
        factors.append(right)
    if len(factors) < LONG:
        return expr
    return _balanced((left, *reversed(factors)))


def _balanced(factors: Sequence[Expr]) -> Expr:
    if len(factors) == 1:
        return factors[0]
    half = (len(factors) + 1) // 2
    return Call(MUL, (_balanced(factors[:half]), _balanced(factors[half:])))
