"""A trace with what runs for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.graph.capture.trace_function import Trace
from taco_py.graph.fission.split_operators import split_operators
from taco_py.graph.nodes import Graph
from taco_py.graph.rules.rewrite import rewritten
from taco_py.graph.run.graph_program import GraphProgram, make_program


@dataclass(frozen=True, slots=True, eq=False)
class GraphCall:
    """A trace, its primitives, and the program that computes them."""

    trace: Trace
    primitives: Graph
    program: GraphProgram

    def run(self, operands: Sequence[Any]) -> Any:
        """Compute what the function returns of operands by the trace's names."""
        return self.trace.returned(self.program.run(operands))


def call_of(trace: Trace) -> GraphCall:
    """Split the operators of a trace, rewrite the primitives, and choose what runs."""
    primitives = rewritten(split_operators(trace.graph))
    return GraphCall(trace, primitives, make_program(primitives))
