"""Positions as operands of kernels: matrices of one entry a row.

p = [2, 0, 2], below 4    →    0 0 1 0
                               1 0 0 0
                               0 0 1 0

They are stored by the modes of the positions, which are the coordinates: a kernel loads one and
reads, or adds to, the element there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.graph.nodes import Node

POSITIONS = "positions"
"""The call of NumPy that checks positions."""


def is_positions(node: Node | None) -> bool:
    """Tell whether a node makes such an operand."""
    return node is not None and node.get("call") == POSITIONS


def letters_of(attributes: Mapping[str, Any], order: int) -> str:
    """Write the format of a node of these attributes, "" where it is dense."""
    return "d" * (order - 1) + "s" if attributes.get("call") == POSITIONS else ""
