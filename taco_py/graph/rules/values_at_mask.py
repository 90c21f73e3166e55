"""Compute where a sparse mask is, beside values that are infinite elsewhere.

    where(M, S, -inf) - m          →   where(M, where(M, S, -inf) - m, -inf)
    exp(where(M, S, -inf) - m)     is 0 where M stores nothing, as the fill values then say

A number less another is -inf where the first is, but for an infinite m: a row in which M stores
nothing has no maximum. It stays without values here, where NumPy has NaN.
"""

from __future__ import annotations

from math import isinf

from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator != "map" or node.get("function") not in ("subtract", "add"):
        return None
    for place, name in enumerate(node.inputs):
        masked = mask_of(builder, name)
        if masked is None:
            continue
        mask, fill = masked
        other = mask_of(builder, node.inputs[1 - place])
        if other is not None or not isinf(fill):
            continue
        negated = place == 1 and node.get("function") == "subtract"
        number = builder.literal(-fill if negated else fill)
        twin = builder.add(
            "map", node.inputs, node.shape, node.dtype, function=f"{node.get('function')}",
            masked=True,
        )  # fmt: skip
        return builder.map("where", mask, twin, number, dtype=node.dtype)
    return None


def mask_of(builder: GraphBuilder, name: str) -> tuple[str, float] | None:
    """Find the sparse mask outside of which a value is one number, and that number.

    Layouts of such a value are looked through: their mask is the layout of the mask.
    """
    node = builder.nodes.get(name)
    if node is None:
        return None
    if node.operator in LAYOUTS:
        masked = mask_of(builder, node.inputs[0])
        if masked is None:
            return None
        mask, fill = masked
        return builder.layout(node.operator, mask, node.get("source"), node.shape), fill
    if node.operator != "map" or node.get("function") != "where":
        return None
    condition, _, otherwise = node.inputs
    constant = builder.constants.get(otherwise)
    if constant is None or constant.fact.order or not _is_sparse(builder, condition):
        return None
    value = complex(constant.value)
    return None if value.imag else (condition, value.real)


def _is_sparse(builder: GraphBuilder, name: str) -> bool:
    """Tell whether a condition is a sparse operand that is false where it stores nothing."""
    while name in builder.nodes and builder.nodes[name].operator in LAYOUTS:
        (name,) = builder.nodes[name].inputs
    fact = builder.facts[name]
    return bool(fact.sparsity) and not fact.fill


RULE = GraphRule(
    "values_at_mask",
    "where(M, S, -inf) - m",
    "where(M, where(M, S, -inf) - m, -inf)",
    "NaN where a row of the mask stores nothing",
    lambda builder, node: None if node.get("masked") else _apply(builder, node),
)
