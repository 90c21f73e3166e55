"""Graphs of operators: traced functions of arrays, split, rewritten and computed as a whole.

tp.graph.load("attention.json")     a graph that `g.save` wrote
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taco_py.graph.nodes import Constant, Graph, Input, Node, Number
    from taco_py.graph.traced_graph import TracedGraph, load

_HOMES = {
    "Constant": "nodes", "Graph": "nodes", "Input": "nodes", "Node": "nodes", "Number": "nodes",
    "TracedGraph": "traced_graph", "load": "traced_graph",
}  # fmt: skip

__all__ = ["Constant", "Graph", "Input", "Node", "Number", "TracedGraph", "load"]


def __getattr__(name: str) -> Any:
    """Return the names of `_HOMES`, imported when they are first used."""
    if name in _HOMES:
        return getattr(import_module(f"taco_py.graph.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
