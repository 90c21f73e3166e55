"""Join layouts, and leave those out that change nothing.

transpose(transpose(x))      →   x
squeeze(expand(x))           →   x
broadcast(transpose(x))      →   broadcast(x) of other modes
"""

from __future__ import annotations

from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator not in LAYOUTS:
        return None
    inner = builder.nodes.get(node.inputs[0])
    if inner is None or inner.operator not in LAYOUTS:
        return None
    first = inner.get("source")
    source = tuple(None if axis is None else first[axis] for axis in node.get("source"))
    operator = "broadcast" if "broadcast" in (node.operator, inner.operator) else node.operator
    (name,) = inner.inputs
    if source == tuple(range(builder.facts[name].order)):
        return name
    return builder.layout(operator, name, source, node.shape)


RULE = GraphRule("join_layouts", "transpose(transpose(x))", "x", "nothing", _apply)
