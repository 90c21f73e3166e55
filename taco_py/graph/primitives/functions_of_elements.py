"""Elementwise primitives: R[i,j] = f(a[i,j], b[i,j])."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from taco_py.arrays.spelling import arguments, expression, is_spelled
from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.language.notation.nodes import Call, Expr, Literal
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.tree import map_accesses

OTHER_NAMES: Mapping[str, str] = MappingProxyType({"expit": "sigmoid"})
"""Names of index notation for functions that are called otherwise in NumPy and SciPy."""

MOST_FACTORS = 4
"""The largest power that is written as a product."""


def spelled(function: str, count: int) -> bool:
    """Tell whether index notation has a function of so many arguments."""
    name = OTHER_NAMES.get(function, function)
    return is_spelled(name) and arguments(name) == count


def call(function: str, args: Sequence[Expr]) -> Expr:
    """Write a function of expressions.

    >>> call("add", (Access("x", ("i",)), Literal(1)))
    Call(ADD, (x[i], 1))
    """
    if function == "square":
        return Call(MUL, (args[0], args[0]))
    if function == "power" and (factors := factor_count(args[1])):
        product = args[0]
        for _ in range(factors - 1):
            product = Call(MUL, (product, args[0]))
        return product
    name = OTHER_NAMES.get(function, function)
    operands = {f"a{place}": arg for place, arg in enumerate(args)}
    text = "pow(a0, a1)" if function == "power" else expression(name, tuple(operands))
    template = parse_assignment(f"R = {text}").value
    return map_accesses(template, lambda access: operands[access.tensor])


def factor_count(exponent: Expr) -> int:
    """Return the exponent of a power that is a product, 0 of others."""
    if not isinstance(exponent, Literal) or isinstance(exponent.value, bool | complex):
        return 0
    is_product = exponent.value == int(exponent.value) and 1 <= exponent.value <= MOST_FACTORS
    return int(exponent.value) if is_product else 0


def _express(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    args = [
        operands.read(place, indices if fact.order else ())
        for place, fact in enumerate(operands.facts)
    ]
    return call(node.get("function"), args)


PRIMITIVES = (Primitive("map", "elementwise", _express, reads_once=True),)
