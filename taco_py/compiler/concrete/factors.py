"""Occurrences of one expression in another, up to the order of factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from codegen.records import dataclass
from taco_py.language.notation.nodes import Access, Call, Expr, Literal
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.tree import is_call_of


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A value with an access in place of the part that was searched.

    linear  whether the value is additive in that part, so that sums move through it
    """

    value: Expr
    linear: bool


def occurrences(value: Expr, part: Expr, replacement: Access) -> Iterator[Occurrence]:
    """Yield `value` with `replacement` for `part`, for each occurrence of the latter.

    Factors may stand in any order: A * x is in (A * C) * x, which is left as w * C.
    """
    if value == part:
        yield Occurrence(replacement, True)
        return
    if not isinstance(value, Call):
        return
    if value.operator.distributes and isinstance(part, Call):
        left = _without(value.operator, value, part)
        if left is not None:
            product: Expr = replacement
            for factor in left:
                product = Call(value.operator, (product, factor))
            yield Occurrence(product, True)
            return
    for place, arg in enumerate(value.args):
        for inner in occurrences(arg, part, replacement):
            args = (*value.args[:place], inner.value, *value.args[place + 1 :])
            linear = inner.linear and _linear(value, place)
            yield Occurrence(Call(value.operator, args), linear)


def _without(operator: Operator, value: Expr, part: Call) -> list[Expr] | None:
    """Return the factors of `value` without the factors of `part`; None if some of these are
    missing."""
    if part.operator != operator:
        return None
    factors, divisors = list(_factors(operator, value)), list(_factors(operator, part))
    if Counter(divisors) - Counter(factors):
        return None
    for factor in divisors:
        factors.remove(factor)
    return factors


def _factors(operator: Operator, expr: Expr) -> Iterator[Expr]:
    if is_call_of(expr, operator):
        for arg in expr.args:
            yield from _factors(operator, arg)
    else:
        yield expr


def _linear(call: Call, place: int) -> bool:
    if not call.operator.additive:
        return call.operator.linear[place]
    rest = (*call.args[:place], *call.args[place + 1 :])
    return all(isinstance(other, Literal) and other.value == 0 for other in rest)
