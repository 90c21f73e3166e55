"""Rules tried on each primitive of a graph, in order, until none fits.

Equal primitives are one in each graph that is made: common subexpressions need no rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Graph
from taco_py.graph.rules import join_layouts, sum_into_product, values_at_mask
from taco_py.graph.rules.base import GraphRule

CATALOGUE: tuple[GraphRule, ...] = (
    join_layouts.RULE,  # before others look at operands
    sum_into_product.RULE,  # while products are as the user wrote them
    values_at_mask.RULE,
)
"""The rules of graphs, each after those that make sites for it."""

MOST_ROUNDS = 8


def rewritten(graph: Graph, rules: Sequence[GraphRule] = CATALOGUE) -> Graph:
    """Return a graph of primitives after the rules."""
    for _ in range(MOST_ROUNDS):
        after, changed = _once(graph, rules)
        if not changed:
            return after
        graph = after
    return graph


def _once(graph: Graph, rules: Sequence[GraphRule]) -> tuple[Graph, bool]:
    builder = GraphBuilder(graph)
    changed = False
    for node in graph.nodes:
        builder.place = node.place
        name = builder.copy(node)
        for rule in rules:
            made = builder.nodes.get(name)
            found = None if made is None else rule.apply(builder, made)
            if found is not None and found != name:
                name, changed = found, True
        builder.renamed[node.name] = name
    return builder.finish(), changed
