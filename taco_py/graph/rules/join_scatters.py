"""Put parts of one array into zeros together.

    add(scatter(a, [:, :3]), scatter(b, [:, 3:]))    →   parts(a, b)

So the gradient of an array of which slices are read, as of the gates of a cell, is made once. The
numbers are added up in the same order. Of parts that nothing else reads.
"""

from __future__ import annotations

from typing import Any

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.get("function") != "add" or node.name in builder.sparse:
        return None
    parts = [_parts(builder, name, node) for name in node.inputs]
    inputs: list[str] = []
    key: list[Any] = []
    counts: list[int] = []
    for part in parts:
        if part is None:
            return None
        inputs += part.inputs
        key += part.get("key")
        counts += part.get("counts", (len(part.get("key")),))
    return builder.add(
        "numpy", inputs, node.shape, node.dtype, call="parts", key=tuple(key), counts=tuple(counts)
    )


def _parts(builder: GraphBuilder, name: str, total: Node) -> Node | None:
    """Return the node that puts slices into zeros of the total's shape and type; None of others."""
    node = builder.nodes.get(name)
    if node is None or not builder.is_for_one(name) or node.operator != "numpy":
        return None
    slices = node.get("call") == "parts" or (
        node.get("call") == "scatter" and len(node.inputs) == 1
    )
    alike = node.shape == total.shape and node.dtype == total.dtype
    return node if slices and alike else None


RULE = GraphRule("join_scatters", "add(scatter(a), scatter(b))", "parts(a, b)", "nothing", _apply)
