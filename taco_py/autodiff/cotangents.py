"""The cotangent of an argument of an operator, from the operator's table entry.

mul has ("d * b", "a * d"):    y = x * exp(x), cotangent g of y    →    g * exp(x) of x, x * g of exp(x)

A complex value's cotangent is that of torch and PyTorch's users: g = ∂L/∂Re + i ∂L/∂Im of a real L,
so holomorphic entries are applied to conjugates: conj(entry(conj(d))).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from taco_py.autodiff.simplified import is_zero, simplified
from taco_py.diagnostics.errors import DerivativeError
from taco_py.notation.checks import accesses
from taco_py.notation.functions.function_table import FUNCTIONS
from taco_py.notation.nodes import Access, Call, Expr, Literal
from taco_py.notation.parser import parse_assignment
from taco_py.notation.tree import map_accesses

ARGUMENTS = "abc"
TIES = 0.5
"""The share of each of two equal arguments of min and max; a constant has none."""


@lru_cache(maxsize=256)
def entry(text: str) -> Expr:
    """Parse the text of a table entry."""
    return parse_assignment(f"y = {text}").value


def cotangent_of(call: Call, place: int, cotangent: Expr, conjugates: bool) -> Expr | None:
    """Make the cotangent of an argument; None where it is 0.

    cotangent   of the call's value
    conjugates  whether values may be complex

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
    given = dict(zip(ARGUMENTS, call.args, strict=False))
    constant = not all(accesses(arg) for arg in call.args)
    given |= {"f": call, "t": Literal(0.0 if constant else TIES)}
    given["d"] = conjugated(cotangent) if conjugates else cotangent
    made = simplified(_replaced(entry(texts[place]), given))
    made = simplified(conjugated(made)) if conjugates else made
    return None if is_zero(made) else made


def conjugated(expr: Expr) -> Expr:
    """Take the conjugate."""
    return Call(FUNCTIONS["conj"], (expr,))


def _replaced(expr: Expr, given: Mapping[str, Expr]) -> Expr:
    """Put expressions in the place of the names of an entry."""

    def found(access: Access) -> Expr:
        return given[access.tensor]

    return map_accesses(expr, found)
