"""Operators and primitives whose results lie in the memory of their operand, in NumPy."""

from __future__ import annotations

from taco_py.graph.nodes import Node

VIEWS = frozenset((
    "expand", "transpose", "squeeze", "expand_dims", "broadcast", "broadcast_to", "reshape",
    "slice", "diagonal", "real", "imag",
))  # fmt: skip
"""By their names: those that NumPy always shows so, and those that it may."""


def is_view(node: Node) -> bool:
    """Tell whether NumPy computes a node by showing its operand in another way, or may."""
    return node.get("call", node.operator) in VIEWS
