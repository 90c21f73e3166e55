"""What comparisons around an expression say of which side of a tie it is used on.

    where(x > 0, x, expm1(min(x, 0)))    the min is used where x <= 0: there its derivative is 1

Where both sides of a comparison are equal each branch has half of the cotangent: the mean of the
derivatives on both sides. A branch is that of its own side, and so is what it has of the same two
values. Sides are pairs of values as text, of which the first is not more than the second.
"""

from __future__ import annotations

from taco_py.notation.functions.function_table import FUNCTIONS, LADDER, MAX, MIN
from taco_py.notation.nodes import Call, Expr, Literal
from taco_py.notation.printer import to_text

Sides = frozenset[tuple[str, str]]

NO_SIDES: Sides = frozenset()
ORDERS = LADDER[0][:4]
"""Comparisons by order: <, <=, >, >=."""
HALF = 0.5


def key_of(expr: Expr) -> str:
    """Name a value: numbers of different types are one."""
    plain = isinstance(expr, Literal) and isinstance(expr.value, bool | int | float)
    return str(float(expr.value.real)) if plain else to_text(expr)  # type: ignore[union-attr]


def compares_order(call: Call) -> bool:
    """Tell whether a comparison of two numbers by their order chooses a value."""
    condition = call.args[0]
    return call.operator.chooses and isinstance(condition, Call) and condition.operator in ORDERS


def sides_below(call: Call, place: int, sides: Sides) -> Sides:
    """Return the sides of an argument of a call, given those of the call."""
    if not compares_order(call) or not place:
        return sides
    condition = call.args[0]
    assert isinstance(condition, Call)
    one, other = map(key_of, condition.args)
    return sides | {(one, other) if (condition.operator in ORDERS[:2]) == (place == 1)
                    else (other, one)}  # fmt: skip


def share_of_tie(call: Call, place: int, sides: Sides) -> float:
    """Return the share of the cotangent that an argument has where what is compared is equal."""
    if call.operator in (MIN, MAX):
        one, other = map(key_of, call.args)
        first = 0 if call.operator == MIN else 1
    else:
        condition = call.args[0]
        assert isinstance(condition, Call)
        one, other = map(key_of, condition.args)
        first = 1 if condition.operator in ORDERS[:2] else 2
    last = 1 - first if call.operator in (MIN, MAX) else 3 - first
    if (one, other) in sides:
        return float(place == first)
    return float(place == last) if (other, one) in sides else HALF


def sign_of_tie(call: Call, sides: Sides) -> int:
    """Return the derivative of a size where its argument is 0: 0, or that of a side."""
    own = key_of(call.args[0])
    return ((str(0.0), own) in sides) - ((own, str(0.0)) in sides)


def is_size(call: Call) -> bool:
    """Tell whether a call is abs."""
    return call.operator == FUNCTIONS["abs"]
