"""Cotangents of functions of elements, by the entries of the operator table, as primitives.

y = map maximum(x, 0), cotangent g    →    map where(map greater(x, 0), g, 0)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import permutations
from types import MappingProxyType

import numpy as np

from taco_py.graph.fission.dense_values import is_dense
from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.primitives.functions_of_elements import OTHER_NAMES, call
from taco_py.language.autodiff.cotangents import cotangent_of
from taco_py.language.autodiff.sides import (
    HALF,
    NO_SIDES,
    Linear,
    Sides,
    combined,
    linear_of,
    ordered_pair,
)
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.functions.function_table import ALIASES
from taco_py.language.notation.nodes import Access, Call, Expr, Literal

NUMPY_NAMES: Mapping[str, str] = MappingProxyType({
    ours: numpys for numpys, ours in (*ALIASES.items(), *OTHER_NAMES.items())
})  # fmt: skip
"""What maps call functions of index notation, where NumPy's ufunc does not have that name."""
OF_SCIPY = ("expit", "erf")
ORDERS = ("less", "less_equal", "greater", "greater_equal")
EXTREMA = ("maximum", "minimum", "fmax", "fmin")
CHOICES = (*EXTREMA, "where")
"""Functions that take one of their arguments."""

Pairs = Sides
"""Pairs of values that are compared, each in both orders."""


def cotangents_of_map(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], cotangent: str
) -> Iterator[tuple[int, str]]:
    """Make the cotangents of a map's operands, each with the place of the operand.

    Raises DerivativeError for a function without a derivative.
    """
    names = [f"a{place}" for place in range(len(inputs))]
    args: list[Expr] = [
        Literal(builder.constants[name].value)
        if name in builder.constants and not builder.facts[name].order
        else Access(letter, ())
        for letter, name in zip(names, inputs, strict=True)
    ]
    values = {**dict(zip(names, inputs, strict=True)), "d": cotangent}
    expression = call(node.get("function"), args)
    is_complex = any(builder.facts[n].dtype.startswith("complex") for n in (*inputs, cotangent))
    real = {
        letter
        for letter, name in zip(names, inputs, strict=True)
        if np.dtype(builder.facts[name].dtype).kind in "fc"
    }
    expressions = dict(zip(inputs, args, strict=True))
    sides = sides_at(builder, expressions)
    share, tied = _tied(builder, node, inputs)
    for name, derivative in _below(expression, Access("d", ()), is_complex, real, sides):
        place = names.index(name)
        result = build(builder, derivative, values)
        if tied:
            half = builder.map("multiply", cotangent, builder.literal(share[place]))
            result = builder.map("where", tied, half, result)
        if node.get("function") in CHOICES:
            result = _where_stored(builder, inputs[place], result)
        yield place, result


def sides_at(builder: GraphBuilder, expressions: Mapping[str, Expr]) -> Sides:
    """Return the sides on which a function is used, of its arguments and of these and 0."""
    if not builder.sides:
        return NO_SIDES
    forms = [(linear_value(builder, name), linear_of(arg)) for name, arg in expressions.items()]
    pairs = permutations((*forms, ({}, {})), 2)
    return frozenset(
        ordered_pair(form, other_form)
        for (one, form), (other, other_form) in pairs
        if ordered_pair(one, other) in builder.sides
    )


def linear_value(builder: GraphBuilder, name: str, depth: int = 8) -> Linear:
    """Write a value as numbers times others, through sums and multiples made of it.

    depth  of functions that are looked through
    """
    number = _number(builder, name)
    if number is not None:
        return {"": number} if number else {}
    node = builder.nodes.get(name)
    if node is None or node.operator != "map" or not depth:
        return {name: 1.0}
    function = node.get("function")
    if function in ("add", "subtract"):
        first, second = (linear_value(builder, operand, depth - 1) for operand in node.inputs)
        return combined(first, second, 1.0 if function == "add" else -1.0)
    if function == "negative":
        return combined({}, linear_value(builder, node.inputs[0], depth - 1), -1.0)
    if function in ("multiply", "divide", "true_divide"):
        one, other = node.inputs
        if function == "multiply" and _number(builder, one):
            one, other = other, one
        if factor := _number(builder, other):
            factor = factor if function == "multiply" else 1 / factor
            return combined({}, linear_value(builder, one, depth - 1), factor)
    return {name: 1.0}


def _number(builder: GraphBuilder, name: str) -> float | None:
    """Return the real number that a value is, None for others."""
    constant = builder.constants.get(name)
    plain = constant is not None and isinstance(constant.value, bool | int | float | np.number)
    if constant is None or not plain or np.iscomplexobj(constant.value):
        return None
    return float(constant.value)


def pair_of_values(builder: GraphBuilder, names: Sequence[str]) -> tuple[str, str]:
    """Name two values in this order."""
    one, other = (linear_value(builder, name) for name in names)
    return ordered_pair(one, other)


def comparison_of(builder: GraphBuilder, name: str) -> tuple[Node | None, list[Node]]:
    """Return the comparison by order that a condition is, and the layouts of it."""
    layouts = []
    while name in builder.nodes and builder.nodes[name].operator in LAYOUTS:
        layouts.append(builder.nodes[name])
        (name,) = builder.nodes[name].inputs
    test = builder.nodes.get(name)
    is_order = test is not None and test.operator == "map" and test.get("function") in ORDERS
    return test if is_order else None, layouts


def kinks_above(builder: GraphBuilder) -> dict[str, Pairs]:
    """Find the pairs of values whose ties are kinks of each value, through functions of elements.

    e = exp(-abs(x))    →    the pair of x and 0, in both orders
    """
    kinks: dict[str, Pairs] = {}
    for node in builder.nodes.values():
        if node.operator == "map":
            kinks[node.name] = _direct_kinks(builder, node).union(
                *(kinks.get(operand, NO_SIDES) for operand in node.inputs)
            )
    return kinks


def _direct_kinks(builder: GraphBuilder, node: Node) -> Pairs:
    """Return the pairs of values that a function compares, of which it chooses one."""
    function = node.get("function")
    if function == "absolute":
        value = linear_value(builder, node.inputs[0])
        return frozenset((ordered_pair(value, {}), ordered_pair({}, value)))
    if function in (*EXTREMA, "clip"):
        compared: Sequence[str] = node.inputs
    elif function == "where":
        comparison, layouts = comparison_of(builder, node.inputs[0])
        compared = () if comparison is None or layouts else comparison.inputs
    else:
        return NO_SIDES
    return frozenset(pair_of_values(builder, pair) for pair in permutations(compared, 2))


def sides_of_operand(builder: GraphBuilder, node: Node, inputs: Sequence[str], place: int) -> Sides:
    """Return the sides that an operand is used on, by the sides of the value in the builder."""
    if node.operator != "map":
        return NO_SIDES
    if node.get("function") != "where" or not place:
        return builder.sides
    comparison, layouts = comparison_of(builder, inputs[0])
    if comparison is None or layouts:
        return builder.sides
    one, other = pair_of_values(builder, comparison.inputs)
    ahead = comparison.get("function") in ORDERS[:2]
    return builder.sides | {(one, other) if ahead == (place == 1) else (other, one)}


def _tied(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> tuple[Sequence[float], str]:
    """Return how arguments share a cotangent at ties, and the condition of a tie.

    A tie is where both sides of an active comparison that chooses are equal, and both values too;
    the condition is empty for other functions.
    """
    if node.get("function") != "where":
        return (), ""
    comparison, layouts = comparison_of(builder, inputs[0])
    if comparison is None or builder.active.isdisjoint(comparison.inputs):
        return (), ""
    sides = builder.map("equal", *comparison.inputs)
    for layout in reversed(layouts):
        sides = builder.layout(layout.operator, sides, layout.get("source"), layout.shape)
    outer_sides = builder.sides
    one, other = pair_of_values(builder, comparison.inputs)
    ahead = comparison.get("function") in ORDERS[:2]
    share = [0.0, HALF, HALF]
    if (one, other) in outer_sides or (other, one) in outer_sides:
        first = ((one, other) in outer_sides) == ahead
        share = [0.0, float(first), float(not first)]
    return share, builder.map("logical_and", sides, builder.map("equal", *inputs[1:]))


def _where_stored(builder: GraphBuilder, name: str, cotangent: str) -> str:
    """Return a cotangent where a value that may be sparse stores something: elsewhere it is no
    variable, though it equals what it is compared with."""
    if name not in builder.sparse or is_dense(builder, name):
        return cotangent
    stored = builder.map("stored", name, dtype="bool")
    return builder.map("multiply", stored, cotangent, dtype=builder.facts[cotangent].dtype)


def _below(
    expr: Expr, cotangent: Expr, is_complex: bool, real: Collection[str], sides: Sides
) -> Iterator[tuple[str, Expr]]:
    """Yield the cotangents of the accesses in an expression that are real or complex."""
    if isinstance(expr, Access):
        yield expr.tensor, cotangent
    elif isinstance(expr, Call):
        for place, arg in enumerate(expr.args):
            if any(access.tensor in real for access in accesses(arg)):
                part = cotangent_of(expr, place, cotangent, is_complex, sides=sides)
                if part is not None:
                    yield from _below(arg, part, is_complex, real, sides)


def build(builder: GraphBuilder, expr: Expr, values: Mapping[str, str]) -> str:
    """Make the primitives of an expression of numbers."""
    if isinstance(expr, Access):
        return values[expr.tensor]
    if isinstance(expr, Literal):
        return builder.literal(expr.value)
    assert isinstance(expr, Call)
    inputs = [build(builder, arg, values) for arg in expr.args]
    operator = expr.operator
    name = NUMPY_NAMES.get(operator.name) or operator.evaluate.__name__
    dtype = builder.facts[inputs[0]].dtype if name in OF_SCIPY else None
    return builder.map(name, *inputs, dtype=dtype)
