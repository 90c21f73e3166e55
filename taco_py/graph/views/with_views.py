"""Graphs whose views are index maps: of operands, of results, and inside of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Graph
from taco_py.graph.rules.base import GraphRule
from taco_py.graph.rules.rewrite import CATALOGUE, rewritten
from taco_py.graph.views import concatenate_after, scatter_as_concatenate
from taco_py.graph.views.results_in_order import put_results_in_order
from taco_py.graph.views.split_modes import split_modes
from taco_py.graph.views.stored_pieces import with_stored_pieces

CALLS = ("reshape", "slice", "scatter", "parts", "concatenate")
"""What moves elements of arrays."""

OF_PIECES = (scatter_as_concatenate.RULE, concatenate_after.RULE)
"""Rules of arrays that are put together, once derivatives are taken."""


def with_views(graph: Graph, rules: Sequence[GraphRule] = CATALOGUE) -> Graph:
    """Return a graph of primitives in which reshapes split no region of kernels.

    rules  that are applied to what comes of it
    """
    if not any(node.get("call") in CALLS for node in graph.nodes):
        return graph
    catalogue = (*rules, *OF_PIECES)
    after = split_modes(rewritten(with_broadcasts(graph), catalogue))
    return with_stored_pieces(put_results_in_order(rewritten(after, catalogue)))


def with_broadcasts(graph: Graph) -> Graph:
    """Return a graph in which NumPy stretches no array that is computed: a layout does."""
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.place, builder.origin = node.place, node.origin
        fact = graph.facts[node.inputs[0]] if node.inputs else None
        if node.get("call") != "broadcast_to" or fact is None or fact.weak:
            builder.renamed[node.name] = builder.copy(node)
            continue
        lead = len(node.shape) - fact.order
        source = [
            axis - lead if axis >= lead and fact.units[axis - lead] == (size.constant == 1)
            else None
            for axis, size in enumerate(node.shape)
        ]  # fmt: skip
        name = builder.renamed[node.inputs[0]]
        builder.renamed[node.name] = builder.layout("broadcast", name, source, node.shape)
    return builder.finish()
