"""Which values of a graph are stored as arrays, though they depend on sparse operands."""

from __future__ import annotations

from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node


def is_dense(builder: GraphBuilder, name: str) -> bool:
    """Tell whether a value is stored as an array, so far as is known of it.

    A @ X is, of a sparse A; A * 2 is not
    """
    if name not in builder.sparse:
        return not builder.facts[name].sparsity
    node = builder.nodes.get(name)
    if node is None:
        return False
    if node.operator == "contract":
        return _is_dense_product(builder, node)
    if node.operator == "reduce":
        return node.fact.order < 2
    elementwise = node.operator in ("map", "gather", "scatter", *LAYOUTS)
    return node.get("call") == "to_dense" or (
        elementwise and all(is_dense(builder, operand) for operand in node.inputs)
    )


def _is_dense_product(builder: GraphBuilder, node: Node) -> bool:
    """Tell whether a product sums over a mode of its sparse factors, which lack one that is
    kept."""
    output = {*node.get("kept")}
    labels = zip(node.inputs, node.get("labels"), strict=True)
    sparse = {label for name, group in labels if not is_dense(builder, name) for label in group}
    return not sparse or (bool(sparse - output) and (len(output) < 2 or not output <= sparse))
