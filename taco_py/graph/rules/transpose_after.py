"""Transpose what functions of elements give, not what they read.

    exp(transpose(x)) * 2                      →   transpose(exp(x) * 2)
    transpose(a) + transpose(b)                →   transpose(a + b)
    transpose(a) * broadcast(v)                →   transpose(a * broadcast(v) of other modes)

Elements are then read and written in the order in which they are stored, as NumPy does, and a
transpose after it cancels (`join_layouts`). Dense values alone: formats say an order of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node, Shape
from taco_py.graph.rules.base import GraphRule


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator != "map" or node.name in builder.sparse:
        return None
    sources = {
        tuple(operand.get("source"))
        for operand in map(builder.nodes.get, node.inputs)
        if operand is not None and operand.operator == "transpose"
    }
    if len(sources) != 1:
        return None
    (source,) = sources
    if None in source or sorted(source) != [*range(len(node.shape))]:
        return None
    back = tuple(source.index(axis) for axis in range(len(source)))
    shape = tuple(node.shape[axis] for axis in back)
    inputs = [_before(builder, name, back, shape) for name in node.inputs]
    if None in inputs:
        return None
    names = [name for name in inputs if name is not None]
    mapped = builder.add("map", names, shape, node.dtype, **dict(node.attributes))
    return builder.layout("transpose", mapped, source, node.shape)


def _before(builder: GraphBuilder, name: str, back: Sequence[int], shape: Shape) -> str | None:
    """Return an operand in the order before the transpose, where that takes nothing."""
    if not builder.facts[name].order:
        return name
    node = builder.nodes.get(name)
    if node is None or node.operator not in ("transpose", "broadcast"):
        return None
    first = node.get("source")
    source = tuple(first[axis] for axis in back)
    return builder.layout(node.operator, node.inputs[0], source, shape)


RULE = GraphRule("transpose_after", "exp(transpose(x))", "transpose(exp(x))", "nothing", _apply)
