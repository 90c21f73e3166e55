"""Take out of the sums of derivatives the factors that what is summed over does not have.

sum(x * broadcast(b))       →   sum(x) * b
sum(-g * d / broadcast(b))  →   -(sum(d * g) / b)
sum(broadcast(b))           →   b * n,  n the number of its elements

What is left is multiplied in one order, so that sums of equal products are one: those of a scale
and of what it scales. Of what derivatives add alone, of one real type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import numpy as np

from codegen.records import dataclass
from taco_py.graph.extents import product
from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.algebra import is_number
from taco_py.graph.rules.base import GraphRule

POWERS = {"multiply": (1, 1), "divide": (1, -1), "negative": (1,)}

MOST_FACTORS = 12


@dataclass(frozen=True, slots=True)
class PowerOf:
    """A factor: a value, or one by it."""

    name: str
    power: int


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if not node.origin.derivative or np.dtype(node.dtype).kind != "f":
        return None
    if node.operator != "reduce" or node.get("function") != "sum":
        return None
    (name,), axes = node.inputs, node.get("axes")
    factors, sign = [*_factors(builder, name, node.dtype)], 1
    for factor in factors:
        sign *= -1 if factor.name == "" else 1
    factors = [factor for factor in factors if factor.name]
    outer = [factor for factor in factors if _is_outside(builder, factor.name, axes)]
    if len(factors) > MOST_FACTORS or (not outer and sign > 0):
        return None
    inner = [factor for factor in factors if factor not in outer]
    total = _sum_of(builder, node, inner)
    rest = [axis for axis in range(builder.facts[name].order) if axis not in axes]
    scaled = _times(builder, total, [_outside(builder, factor, rest, node) for factor in outer])
    scaled = scaled if sign > 0 else builder.map("negative", scaled)
    return builder.spread(scaled, node.shape)  # after that: numbers of leaves are not stretched


def _factors(builder: GraphBuilder, name: str, dtype: str, power: int = 1) -> Iterator[PowerOf]:
    """Yield the factors of a product; one without a name is -1."""
    node = builder.nodes.get(name)
    if is_number(builder, name, 1):
        return
    powers = None if node is None or node.operator != "map" else POWERS.get(node.get("function"))
    if node is None or powers is None or not _is_alike(builder, node, dtype):
        yield PowerOf(name, power)
        return
    if node.get("function") == "negative":
        yield PowerOf("", 1)
    for operand, exponent in zip(node.inputs, powers, strict=True):
        yield from _factors(builder, operand, dtype, power * exponent)


def _is_alike(builder: GraphBuilder, node: Node, dtype: str) -> bool:
    """Tell whether a product is of one type, Python's numbers apart."""
    facts = [builder.facts[operand] for operand in node.inputs]
    return all(fact.weak or fact.dtype == dtype for fact in (*facts, node.fact))


def _is_outside(builder: GraphBuilder, name: str, axes: Sequence[int]) -> bool:
    """Tell whether a factor is the same for all elements that are summed."""
    node = builder.nodes.get(name)
    if not builder.facts[name].order:
        return True
    if node is None or node.operator not in LAYOUTS:
        return False
    source, units = node.get("source"), builder.facts[node.inputs[0]].units
    return all(source[axis] is None or units[source[axis]] for axis in axes)


def _outside(builder: GraphBuilder, factor: PowerOf, rest: Sequence[int], node: Node) -> PowerOf:
    """Return a factor without the modes that are summed over."""
    name = factor.name
    if not builder.facts[name].order:
        return factor
    layout = builder.nodes[name]
    source = tuple(layout.get("source")[axis] for axis in rest)
    return PowerOf(builder.layout("broadcast", layout.inputs[0], source, node.shape), factor.power)


def _sum_of(builder: GraphBuilder, node: Node, inner: Sequence[PowerOf]) -> str:
    """Return the sum of a product, a number where nothing is left of it."""
    (name,), axes = node.inputs, node.get("axes")
    shape = builder.facts[name].shape
    if not inner:
        return builder.number(product([shape[axis] for axis in axes]), node.dtype)
    ordered = sorted(inner, key=lambda factor: (factor.power < 0, factor.name))
    first = ordered[0].name if ordered[0].power > 0 else builder.literal(_one(node))
    rest = ordered[1:] if ordered[0].power > 0 else ordered
    spread_product = builder.spread(_times(builder, first, rest), shape)
    return builder.reduce("sum", spread_product, axes, node.dtype)


def _one(node: Node) -> np.generic:
    one: np.generic = np.dtype(node.dtype).type(1)
    return one


def _times(builder: GraphBuilder, first: str, factors: Iterable[PowerOf]) -> str:
    def apply_factor(one: str, other: PowerOf) -> str:
        return builder.map("multiply" if other.power > 0 else "divide", one, other.name)

    return reduce(apply_factor, factors, first)


RULE = GraphRule(
    "factors_of_sums", "sum(x * broadcast(b))", "sum(x) * b", "rounding; overflow", _apply
)
"""Of derivatives."""
