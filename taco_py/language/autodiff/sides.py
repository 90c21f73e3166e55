"""Sides of ties: what enclosing comparisons imply about the values that an expression reads.

    where(x > 0, x, expm1(min(x, 0)))    the min is used where x <= 0: there its derivative is 1

Where both sides of a comparison are equal, each branch has half of the cotangent: the mean of the
derivatives on both sides. Inside a branch, ties of the same two values have the derivative of its
side. Sides are pairs of values as text, of which the first is at most the second, in a normal form
of their difference:

    2 - 2 * x and 0    0 and x - 1    1 and x    →    "0" and "x + -1.0"
"""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.language.notation.functions.function_table import FUNCTIONS, LADDER, MAX, MIN
from taco_py.language.notation.nodes import Call, Expr, Literal
from taco_py.language.notation.operators import ADD, DIV, MUL, NEG, SUB
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import is_call_of

Sides = frozenset[tuple[str, str]]
Linear = Mapping[str, float]
"""A linear form: factors of values as text; the factor of "" is the constant."""

NO_SIDES: Sides = frozenset()
ORDERS = LADDER[0][:4]
"""The order comparisons <, <=, >, >=."""
HALF = 0.5
ZERO = "0"


def combined(one: Linear, other: Linear, factor: float) -> Linear:
    """Add a multiple of a linear form to another."""
    sums = {key: one.get(key, 0.0) + factor * other.get(key, 0.0) for key in {**one, **other}}
    return {key: number for key, number in sums.items() if number}


def linear_of(expr: Expr) -> Linear:
    """Write an expression as a linear form: 2 * (x - 1) → {"x": 2.0, "": -2.0}."""
    number = _number(expr)
    if number is not None:
        return {"": number} if number else {}
    if isinstance(expr, Call):
        operator, args = expr.operator, expr.args
        if operator in (ADD, SUB):
            one, other = map(linear_of, args)
            return combined(one, other, 1.0 if operator == ADD else -1.0)
        if operator == NEG:
            return combined({}, linear_of(args[0]), -1.0)
        if operator in (MUL, DIV) and (factor := _number(args[1])):
            return combined({}, linear_of(args[0]), factor if operator == MUL else 1 / factor)
        if operator == MUL and (factor := _number(args[0])):
            return combined({}, linear_of(args[1]), factor)
    return {to_text(expr): 1.0}


def _number(expr: Expr) -> float | None:
    """Return the real number of a constant expression, None for others."""
    if is_call_of(expr, NEG):
        number = _number(expr.args[0])
        return None if number is None else -number
    plain = isinstance(expr, Literal) and isinstance(expr.value, bool | int | float)
    return float(expr.value.real) if plain else None  # type: ignore[union-attr]


def ordered_pair(one: Linear, other: Linear) -> tuple[str, str]:
    """Name two values as an ordered pair in normal form.

    Pairs whose differences are equal up to a positive factor have the same name.
    """
    difference = combined(one, other, -1.0)
    values = sorted(key for key in difference if key)
    leading = difference[values[0]] if values else 1.0
    name = " + ".join(
        f"{difference.get(key, 0.0) / leading + 0.0!r} {key}" for key in (*values, "")
    )
    return (name, ZERO) if leading > 0 else (ZERO, name)


def pair_of(one: Expr, other: Expr) -> tuple[str, str]:
    """Name two expressions as an ordered pair in normal form."""
    return ordered_pair(linear_of(one), linear_of(other))


def compares_order(call: Call) -> bool:
    """Tell whether an order comparison chooses the value of a call."""
    condition = call.args[0]
    return call.operator.chooses and isinstance(condition, Call) and condition.operator in ORDERS


def sides_below(call: Call, place: int, sides: Sides) -> Sides:
    """Return the sides on which an argument is used, from the sides of its call."""
    if not compares_order(call) or not place:
        return sides
    condition = call.args[0]
    assert isinstance(condition, Call)
    one, other = pair_of(*condition.args)
    return sides | {(one, other) if (condition.operator in ORDERS[:2]) == (place == 1)
                    else (other, one)}  # fmt: skip


def share_of_tie(call: Call, place: int, sides: Sides) -> float:
    """Return the share of the cotangent that an argument gets at a tie."""
    if call.operator in (MIN, MAX):
        one, other = pair_of(*call.args)
        first = 0 if call.operator == MIN else 1
    else:
        condition = call.args[0]
        assert isinstance(condition, Call)
        one, other = pair_of(*condition.args)
        first = 1 if condition.operator in ORDERS[:2] else 2
    last = 1 - first if call.operator in (MIN, MAX) else 3 - first
    if (one, other) in sides:
        return float(place == first)
    return float(place == last) if (other, one) in sides else HALF


def sign_of_tie(call: Call, sides: Sides) -> int:
    """Return the derivative of abs at 0: 0, or that of a known side."""
    one, other = pair_of(call.args[0], Literal(0))
    return ((other, one) in sides) - ((one, other) in sides)


def is_size(call: Call) -> bool:
    """Tell whether a call is abs."""
    return call.operator == FUNCTIONS["abs"]
