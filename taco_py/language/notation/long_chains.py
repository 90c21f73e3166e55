"""Long products and sums as balanced trees, whose depth is logarithmic in their length.

    a * b * c * d   →   (a * b) * (c * d)
    a - b + c + d   →   (a - b) + (c + d)        for more than 64 operands

Passes over an expression recurse; a chain that is grouped from the left is as deep as it is long.
"""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.language.notation.nodes import Call, Expr
from taco_py.language.notation.operators import ADD, MUL, SUB
from taco_py.language.notation.tree import is_call_of

LONG = 64
"""The largest number of operands of a product or sum that stays grouped from the left."""


def product(factors: Sequence[Expr]) -> Expr:
    """Return the product of factors: grouped from the left, or balanced where there are many."""
    if len(factors) > LONG:
        return _balanced(factors)
    first, *tail = factors
    for factor in tail:
        first = Call(MUL, (first, factor))
    return first


def rebalanced(expr: Expr) -> Expr:
    """Balance a product that is grouped from the left where it has many factors."""
    factors: list[Expr] = []
    left = expr
    while is_call_of(left, MUL):
        left, right = left.args
        factors.append(right)
    if len(factors) < LONG:
        return expr
    return _balanced((left, *reversed(factors)))


def rebalanced_sum(expr: Expr) -> Expr:
    """Balance a sum that is grouped from the left where it has many terms."""
    terms: list[tuple[bool, Expr]] = []
    left = expr
    while isinstance(left, Call) and left.operator in (ADD, SUB):
        negative = left.operator == SUB
        left, right = left.args
        terms.append((negative, right))
    if len(terms) < LONG:
        return expr
    _, balanced = _balanced_sum(((False, left), *reversed(terms)))
    return balanced


def _balanced(factors: Sequence[Expr]) -> Expr:
    if len(factors) == 1:
        return factors[0]
    half = (len(factors) + 1) // 2
    return Call(MUL, (_balanced(factors[:half]), _balanced(factors[half:])))


def _balanced_sum(terms: Sequence[tuple[bool, Expr]]) -> tuple[bool, Expr]:
    """Balance terms, each with whether it is subtracted; the result has the sign of the first."""
    if len(terms) == 1:
        return terms[0]
    half = (len(terms) + 1) // 2
    (negative, left), (less, right) = _balanced_sum(terms[:half]), _balanced_sum(terms[half:])
    return negative, Call(ADD if negative == less else SUB, (left, right))
