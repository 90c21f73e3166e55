"""Transposes and modes of size 1 → layouts; what else moves elements is left to NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node


def transpose(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a transpose."""
    return builder.layout("transpose", inputs[0], node.get("axes"), node.shape)


def expand_dims(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split modes of size 1 that are put in."""
    axes = node.get("axis")
    old_axes = [axis for axis in range(len(node.shape)) if axis not in axes]
    source = [None if axis in axes else old_axes.index(axis) for axis in range(len(node.shape))]
    return builder.layout("expand", inputs[0], source, node.shape)


def squeeze(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split modes of size 1 that are left out."""
    order = builder.facts[inputs[0]].order
    source = [axis for axis in range(order) if axis not in node.get("axis")]
    return builder.layout("squeeze", inputs[0], source, node.shape)


def broadcast_to(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a stretched array: kernels read it so where an operand has each new size."""
    fact = builder.facts[inputs[0]]
    lead = len(node.shape) - fact.order
    source = [
        axis - lead if axis >= lead and fact.units[axis - lead] == (size.constant == 1) else None
        for axis, size in enumerate(node.shape)
    ]
    new = [size for size, old in zip(node.shape, source, strict=True) if old is None]
    if fact.weak or not all(size.constant == 1 or builder.has_size(size) for size in new):
        return builder.numpy(node, inputs)
    return builder.layout("broadcast", inputs[0], source, node.shape)


def subscript(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split subscripts: those that only put modes of size 1 in are a layout."""
    full_slice = ("slice", None, None, None)
    if any(entry not in (("new",), full_slice) for entry in node.get("key")):
        return builder.numpy(node, inputs)
    source: list[int | None] = []
    for entry in node.get("key"):
        old = sum(1 for other in source if other is not None)
        source.append(old if entry == full_slice else None)
    return builder.layout("expand", inputs[0], source, node.shape)


def reshape(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a reshape: one to modes of size 1 more or less is a layout."""
    shape = builder.facts[inputs[0]].shape
    old = [axis for axis, size in enumerate(shape) if size.constant != 1]
    new = [axis for axis, size in enumerate(node.shape) if size.constant != 1]
    if [shape[axis] for axis in old] != [node.shape[axis] for axis in new]:
        return builder.numpy(node, inputs)
    places = dict(zip(new, old, strict=True))
    source = [places.get(axis) for axis in range(len(node.shape))]
    operator = "expand" if len(source) >= len(shape) else "squeeze"
    return builder.layout(operator, inputs[0], source, node.shape)
