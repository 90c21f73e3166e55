"""Leave out of derivatives what sums to 0 by algebra: a pass over arrays that others wait for.

sum(x - mean(x))                     →   0
sum(g + d * (x - mean(x)))           →   sum(g)         d does not depend on what is summed over
sum(e * (g / s + d)), s = sum(e)     →   0              where d = -sum(e * g) / (s * s)
g - sum(e * g / s)                   →   0              g does not depend on what is summed over

`sum_terms` finds out. A sum is left out as a whole, or terms of it that are 0 each: the others are
added as before, and none is subtracted from another that was not, so nothing cancels that did not
cancel before. Of what derivatives add alone: a function that sums the differences from a mean is
written so to see how they round. A NaN or an infinity among what is left out is also in the other
parts of the derivative, which are made of the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from types import MappingProxyType

import numpy as np

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule
from taco_py.graph.rules.sum_terms import SumTerms

TERM_SIGNS = MappingProxyType({"add": (1, 1), "subtract": (1, -1), "negative": (-1,)})
"""By the functions that add, the sign of each term."""

MOST_ADDED = 16
"""Terms of a sum that are looked at one by one."""


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    terms: SumTerms = builder.memo.setdefault(RULE.name, SumTerms(builder))
    terms.of(node.name)  # what it reads is known by then
    if not node.origin.derivative or np.dtype(node.dtype).kind != "f":
        return None
    if node.operator == "reduce" and node.get("function") == "sum":
        if terms.vanishing_sum(node.inputs[0], node.get("axes")):
            return zeros(builder, node)
        return _with_fewer_terms(builder, node, terms)
    adds = node.operator == "map" and node.get("function") in ("add", "subtract")
    if (adds or node.operator == "contract") and terms.vanishes(node.name):
        return zeros(builder, node)
    return None


def zeros(builder: GraphBuilder, node: Node) -> str:
    """Make zeros of the shape and type of a primitive."""
    zero = builder.literal(np.dtype(node.dtype).type(0))
    return builder.layout("broadcast", zero, (None,) * node.fact.order, node.shape)


def _with_fewer_terms(builder: GraphBuilder, node: Node, terms: SumTerms) -> str | None:
    """Return a sum without the terms that are 0 each, summed."""
    (name,), axes = node.inputs, node.get("axes")
    gone: list[str] = []
    left = [
        *islice(_left(builder, name, 1, lambda e: terms.vanishing_sum(e, axes), gone), MOST_ADDED)
    ]
    if not gone or not left or len(left) == MOST_ADDED:
        return None
    shape = builder.facts[name].shape
    combined, positive = left[0][0], left[0][1] > 0
    for term, sign in left[1:]:
        function = "add" if (sign > 0) == positive else "subtract"
        combined = builder.map(function, combined, term, dtype=node.dtype)
    total = builder.reduce("sum", builder.spread(combined, shape), axes, node.dtype)
    return total if positive else builder.map("negative", total)


def _left(
    builder: GraphBuilder, name: str, sign: int, vanishes: Callable[[str], bool], gone: list[str]
) -> Iterator[tuple[str, int]]:
    """Yield the terms that are added and are not 0, each with its sign.

    gone  takes those that are
    """
    if vanishes(name):
        gone.append(name)
        return
    node = builder.nodes.get(name)
    signs = None if node is None or node.operator != "map" else TERM_SIGNS.get(node.get("function"))
    if node is None or signs is None or not _is_split(builder, node):
        yield name, sign
        return
    for operand, factor in zip(node.inputs, signs, strict=True):
        yield from _left(builder, operand, sign * factor, vanishes, gone)


def _is_split(builder: GraphBuilder, node: Node) -> bool:
    """Tell whether the terms of a sum are looked at: of one type, and of a derivative."""
    alike = all(builder.facts[operand].dtype == node.dtype for operand in node.inputs)
    return alike and node.origin.derivative


RULE = GraphRule(
    "cancelled_sums",
    "sum(g + d * (x - mean(x)))",
    "sum(g)",
    "rounding; a NaN is in other parts of the derivative alone",
    _apply,
)
"""Of derivatives."""
