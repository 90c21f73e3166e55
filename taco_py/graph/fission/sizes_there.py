"""Broadcasts to sizes that no operand of a graph has are NumPy's.

    broadcast(g) to 3, the size of an array whose values nothing reads    →   broadcast_to(g, 3)

Derivatives read less than what they are of: that of a product with ones reads no ones.
"""

from __future__ import annotations

from taco_py.graph.extents import ONE
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Constant, Graph, Input, Node


def with_sizes_there(graph: Graph) -> Graph:
    """Return a graph of primitives of whose broadcasts operands have the sizes."""
    numpy_nodes = (node for node in graph.nodes if node.operator == "numpy")
    values: tuple[Input | Constant | Node, ...] = (*graph.inputs, *graph.constants, *numpy_nodes)
    sizes = {size for value in values for size in value.fact.shape}
    missing = {
        node.name
        for node in graph.nodes
        if node.operator == "broadcast"
        and any(
            old is None and size.constant != 1 and size.operator != "size" and size not in sizes
            for size, old in zip(node.shape, node.get("source"), strict=True)
        )
    }
    if not missing:
        return graph
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.place, builder.origin = node.place, node.origin
        if node.name not in missing:
            builder.renamed[node.name] = builder.copy(node)
            continue
        (name,) = (builder.renamed[operand] for operand in node.inputs)
        source = node.get("source")
        units = tuple(
            ONE if old is None else size for size, old in zip(node.shape, source, strict=True)
        )
        expanded = (
            builder.layout("expand", name, source, units) if builder.facts[name].order else name
        )
        builder.renamed[node.name] = builder.add(
            "numpy", (expanded,), node.shape, node.dtype, call="broadcast_to"
        )
    return builder.finish()
