"""Operators and primitives whose results lie in the memory of their operand, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.graph.nodes import Graph, Node
from taco_py.graph.position_operands import is_positions

VIEWS = frozenset((
    "expand", "transpose", "squeeze", "expand_dims", "broadcast", "broadcast_to", "reshape",
    "slice", "diagonal", "real", "imag",
))  # fmt: skip
"""By their names: those that NumPy always shows so, and those that it may."""

ROWS_KEPT = ("expand", "squeeze", "reshape", "expand_dims")
"""Views whose elements lie as those of their operand do."""


def is_view(node: Node) -> bool:
    """Tell whether NumPy computes a node by showing its operand in another way, or may."""
    return node.get("call", node.operator) in VIEWS


def is_places(node: Node) -> bool:
    """Tell whether a node is the positions 0, 1, … along a mode."""
    return "places" in (node.operator, node.get("call"))


def free_views(graph: Graph) -> frozenset[str]:
    """Return the views of dense values that take no copy.

    A reshape takes none where it splits modes alone, or of elements that lie in a row: those of an
    operand that lies so, and of what kernels and NumPy make.
    """
    nodes = graph.by_name
    sparse = {leaf.name for leaf in graph.leaves if leaf.fact.sparsity}
    free: set[str] = set()
    for node in graph.nodes:
        if not sparse.isdisjoint(node.inputs):
            sparse.add(node.name)
        elif is_view(node) and len(node.inputs) == 1:
            copies = node.get("call", node.operator) == "reshape" and not _is_shown(nodes, node)
            if not copies:
                free.add(node.name)
    return frozenset(free)


def _is_shown(nodes: Mapping[str, Node], node: Node) -> bool:
    """Tell whether a reshape shows its operand: no copy is made of an array that lies in a row."""
    factors = node.get("factors")
    if factors is not None and all(len(group) <= 1 for group in factors[1]):
        return True
    (name,) = node.inputs
    while name in nodes and is_view(nodes[name]):
        call = nodes[name].get("call", nodes[name].operator)
        axes = [axis for axis in nodes[name].get("source", ()) if axis is not None]
        if call not in ROWS_KEPT or axes != sorted(axes):
            return False
        (name,) = nodes[name].inputs
    return True


def operand_views(graph: Graph) -> frozenset[str]:
    """Return the values that are made of operands before kernels run.

    Views of dense operands, checked positions, and the positions along modes.
    """
    free = free_views(graph)
    ready = {leaf.name for leaf in graph.leaves}
    views: set[str] = set()
    for node in graph.nodes:
        if not ready.issuperset(node.inputs):
            continue
        if node.name in free or is_positions(node) or is_places(node):
            ready.add(node.name)
            views.add(node.name)
    return frozenset(views)
