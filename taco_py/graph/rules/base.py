"""What a rule of graphs is: before → after on one primitive and what it reads.

    join_layouts    transpose(transpose(x))   →   x

A rule is a file: its docstring shows the rewrite, its `apply` makes the new primitive in a builder,
or returns None where it does not fit. No rule knows another one.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.records import dataclass
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node


@dataclass(frozen=True, slots=True)
class GraphRule:
    """A rewrite of a primitive.

    numbers  what may change in the numbers of results: "nothing", "rounding", …
    apply    from the graph that is made and a primitive of it to the name of what takes its place
    """

    name: str
    before: str
    after: str
    numbers: str
    apply: Callable[[GraphBuilder, Node], str | None]
