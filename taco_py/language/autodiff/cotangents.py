"""The cotangent of an argument of an operator, from the operator's table entry.

    y = x * exp(x), cotangent g of y, ("d * b", "a * d")    →    g * exp(x) of x, x * g of exp(x)

A complex value's cotangent is ∂L/∂Re + i ∂L/∂Im of a real L, as torch has it; so the entries of
holomorphic functions are applied to conjugates: conj(entry(conj(d))).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from taco_py.language.autodiff.sides import (
    HALF,
    NO_SIDES,
    Sides,
    is_size,
    share_of_tie,
    sign_of_tie,
)
from taco_py.language.autodiff.simplified import is_zero, simplified
from taco_py.language.diagnostics.errors import DerivativeError
from taco_py.language.notation.functions.function_table import (
    AND,
    EQUAL,
    FUNCTIONS,
    MAX,
    MIN,
    WHERE,
)
from taco_py.language.notation.nodes import Access, Call, Expr, Literal
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.tree import map_accesses

ARGUMENTS = "abc"
REAL_VALUES = ("abs", "real", "imag", "angle")
"""Functions of complex numbers whose values are real."""


@lru_cache(maxsize=256)
def entry(text: str) -> Expr:
    """Parse the text of a table entry."""
    return parse_assignment(f"y = {text}").value


def tie_of(call: Call) -> Expr:
    """Build the condition of a tie: both sides of the comparison and both values are equal."""
    condition, one, other = call.args
    assert isinstance(condition, Call)
    sides = Call(EQUAL, condition.args)
    return Call(AND, (sides, Call(EQUAL, (one, other))))


def cotangent_of(
    call: Call,
    place: int,
    cotangent: Expr,
    conjugates: bool,
    joint: bool = False,
    sides: Sides = NO_SIDES,
) -> Expr | None:
    """Build the cotangent of an argument; None where it is 0.

    cotangent   of the call's value
    conjugates  whether values may be complex
    joint       whether a comparison of differentiated values chooses the value: where both sides
                and both values are equal, each has half of the cotangent, as for min and max
    sides       of comparisons on which the call is used

    Raises DerivativeError for an operator without a derivative.
    """
    texts = call.operator.cotangents
    if not texts:
        raise DerivativeError(
            f"Expected an operator with a derivative, found {call.operator.name}",
            call.span,
            "leave the operands that it reads out of wrt=, or write it by functions that have one",
        )
    if texts[place] == "0":
        return None
    replacements = dict(zip(ARGUMENTS, call.args, strict=False))
    replacements["f"] = call
    replacements["d"] = conjugated(cotangent) if conjugates else cotangent
    result = simplified(_replaced(entry(_sided(call, place, texts[place], sides)), replacements))
    if joint:
        share = Call(MUL, (Literal(share_of_tie(call, place, sides)), replacements["d"]))
        result = Call(WHERE, (tie_of(call), simplified(share), result))
    result = simplified(conjugated(result)) if conjugates else result
    return None if is_zero(result) else result


def _sided(call: Call, place: int, text: str, sides: Sides) -> str:
    """Return the text of an entry, with the one-sided derivative where the side of a tie is
    known."""
    if not sides:
        return text
    if call.operator in (MIN, MAX):
        return text.replace(f"{HALF} * d", f"{share_of_tie(call, place, sides)} * d")
    sign = sign_of_tie(call, sides) if is_size(call) else 0
    return f"where(a == 0, {sign} * d, {text})" if sign else text


def tangent_of(
    call: Call, place: int, tangent: Expr, joint: bool = False, sides: Sides = NO_SIDES
) -> Expr | None:
    """Build the term that the tangent of an argument, possibly complex, adds to a value's tangent.

    A real value c of a complex argument has the tangent Re(conj(g) * t), with the cotangent g of 1.
    """
    if call.operator.name not in REAL_VALUES:
        return cotangent_of(call, place, tangent, conjugates=False, joint=joint, sides=sides)
    gradient = cotangent_of(call, place, Literal(1.0), conjugates=True)
    if gradient is None:
        return None
    return Call(FUNCTIONS["real"], (Call(MUL, (conjugated(gradient), tangent)),))


def conjugated(expr: Expr) -> Expr:
    """Return the complex conjugate of an expression."""
    return Call(FUNCTIONS["conj"], (expr,))


def _replaced(expr: Expr, replacements: Mapping[str, Expr]) -> Expr:
    """Substitute expressions for the names of an entry."""

    def replacement(access: Access) -> Expr:
        return replacements[access.tensor]

    return map_accesses(expr, replacement)
