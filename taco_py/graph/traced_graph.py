"""What a call of a traced function computes, to look at, to keep, and to call again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taco_py.graph.graph_call import GraphCall
from taco_py.graph.nodes import Graph


class TracedGraph:
    """The graph of a call: its operators, its primitives, and what runs."""

    def __init__(self, call: GraphCall, operands: Sequence[Any], name: str) -> None:
        self.call = call
        self.operands = tuple(operands)
        self.name = name

    @property
    def operators(self) -> Graph:
        """The operators that the function calls."""
        return self.call.trace.graph

    @property
    def primitives(self) -> Graph:
        """The primitives that they were split into."""
        return self.call.primitives

    def __call__(self, *operands: Any) -> Any:
        """Compute what the graph does of operands, by default those that it was traced with."""
        return self.call.run(operands or self.operands)

    def __str__(self) -> str:
        """Write the operators, a line each."""
        return str(self.operators)
