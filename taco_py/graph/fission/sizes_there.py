"""Broadcasts have sizes that operands of kernels have.

    broadcast(2.0) to 3, the size of an array whose values nothing reads    →   broadcast_to(2.0, 3)
    broadcast(g) to x.shape[0] - 1, g computed   →   positions along a mode of that size, beside it

Derivatives read less than what they are of: that of a product with ones reads no ones.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.graph.extents import ONE, Extent
from taco_py.graph.graph_builder import GraphBuilder, is_layout
from taco_py.graph.nodes import Fact, Graph, Leaf, Node
from taco_py.graph.position_operands import is_positions
from taco_py.graph.view_operators import operand_views


def with_sizes_there(graph: Graph) -> Graph:
    """Return a graph of primitives of whose broadcasts operands have the sizes."""
    missing = _missing(graph)
    if not missing:
        return graph
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.place, builder.origin = node.place, node.origin
        if node.name not in missing or node.inputs[0] in graph.by_name:
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
    return _with_positions(builder.finish())


def _missing(graph: Graph) -> dict[str, tuple[Extent, ...]]:
    """Return the broadcasts to sizes that no operand has, with these sizes."""
    views = operand_views(graph)
    leaves: tuple[Leaf, ...] = (*graph.inputs, *graph.constants)
    facts = [leaf.fact for leaf in leaves]
    facts += [
        node.fact for node in graph.nodes
        if node.name in views and not is_positions(node) and not is_layout(node)
    ]  # fmt: skip
    sizes = {size for fact in facts for size in fact.shape}
    missing = {}
    for node in graph.nodes:
        if node.operator == "broadcast":
            new = zip(node.shape, node.get("source"), strict=True)
            absent = tuple(
                size for size, old in new
                if old is None and size.constant != 1
                and size.operator != "size" and size not in sizes
            )  # fmt: skip
            if absent:
                missing[node.name] = absent
    return missing


def _with_positions(graph: Graph) -> Graph:
    """Add positions along modes of the sizes that are still missing."""
    sizes = dict.fromkeys(size for absent in _missing(graph).values() for size in absent)
    names = {value.name for value in (*graph.leaves, *graph.nodes)}
    numbered = (f"size{number}" for number in range(len(names) + len(sizes)))
    fresh = (name for name in numbered if name not in names)
    new = tuple(
        Node(name, "numpy", (), (("call", "places"),), Fact((size,), "int64"))
        for size, name in zip(sizes, fresh, strict=False)
    )
    return replace(graph, nodes=(*new, *graph.nodes))
