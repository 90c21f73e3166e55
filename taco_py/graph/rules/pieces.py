"""Arrays that are put together of others along an axis, which are their pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.records import dataclass
from taco_py.graph.extents import Extent, bounds
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node, Shape
from taco_py.graph.rules.slice_tiles import FULL_SLICE, Key
from taco_py.graph.view_operators import is_view

MOST_PIECES = 8
"""Pieces for which operations on the array are written."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of an array along an axis."""

    axis: int
    names: tuple[str, ...]
    sizes: Shape

    def key(self, place: int, axis: int, order: int) -> Key:
        """Return the subscripts of the elements beside a piece, along an axis of an array."""
        ends = bounds(self.sizes)
        part = ("slice", ends[place], ends[place + 1], None)
        return tuple(part if mode == axis else FULL_SLICE for mode in range(order))


def pieces_of(builder: GraphBuilder, name: str) -> Pieces | None:
    """Return the pieces of a value that is put together; None of others."""
    node = builder.nodes.get(name)
    if node is None or node.get("call") != "concatenate" or name in builder.sparse:
        return None
    if len(node.inputs) > MOST_PIECES:
        return None
    axis = node.get("axis")
    sizes = tuple(builder.facts[piece].shape[axis] for piece in node.inputs)
    return Pieces(axis, node.inputs, sizes)


def concatenate(builder: GraphBuilder, names: Sequence[str], axis: int, node: Node) -> str:
    """Put pieces together to the shape and type of a node; one piece is itself."""
    if len(names) == 1:
        return names[0]
    return builder.add("numpy", names, node.shape, node.dtype, call="concatenate", axis=axis)


def zeros(builder: GraphBuilder, shape: Shape, dtype: str) -> str:
    """Make an array of zeros, of one element of memory."""
    zero = builder.literal(np.dtype(dtype).type(0))
    return builder.add("numpy", (zero,), shape, dtype, call="broadcast_to")


def is_operand(builder: GraphBuilder, name: str) -> bool:
    """Tell whether a value is a dense operand or a view of one, of which slices are free."""
    if name in builder.sparse:
        return False
    while name in builder.nodes:
        node = builder.nodes[name]
        if not is_view(node) or len(node.inputs) != 1 or node.get("call") == "reshape":
            return False
        (name,) = node.inputs
    return not builder.facts[name].sparsity


def with_size(shape: Shape, axis: int, size: Extent) -> Shape:
    """Return a shape with another size of an axis."""
    return tuple(size if mode == axis else other for mode, other in enumerate(shape))
