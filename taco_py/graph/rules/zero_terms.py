"""Leave out of derivatives what is 0 in all calls.

x + 0, x - 0, 0 - x              →   x, x, -x
x * 0, 0 / x, where(c, 0, 0)     →   0
sum(0), -0, contract(x, 0)       →   0

Of what derivatives add alone, where such a 0 says that a value does not depend on another: nothing
is multiplied by it then, neither an infinity nor a NaN.
"""

from __future__ import annotations

import numpy as np

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.algebra import is_number
from taco_py.graph.rules.base import GraphRule
from taco_py.graph.rules.cancelled_sums import zeros


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if not node.origin.derivative or np.dtype(node.dtype).kind != "f":
        return None
    is_zero = [is_number(builder, name, 0) for name in node.inputs]
    if not any(is_zero):
        return None
    if node.operator == "contract" or (node.operator, node.get("function")) == ("reduce", "sum"):
        return zeros(builder, node)
    return _of_map(builder, node, is_zero) if node.operator == "map" else None


def _of_map(builder: GraphBuilder, node: Node, is_zero: list[bool]) -> str | None:
    function = node.get("function")
    if function == "multiply" or (function == "divide" and is_zero[0] and not is_zero[1]):
        return zeros(builder, node)
    if function in ("add", "subtract", "negative") and all(is_zero):
        return zeros(builder, node)
    if function == "where" and is_zero[1] and is_zero[2]:
        return zeros(builder, node)
    if function not in ("add", "subtract"):
        return None
    other = node.inputs[is_zero.index(False)]
    if builder.facts[other].dtype != node.dtype:
        return None
    if function == "subtract" and is_zero[0]:
        other = builder.map("negative", other)
    return builder.spread(other, node.shape)


RULE = GraphRule("zero_terms", "x + 0", "x", "nothing that depends on another value", _apply)
"""Of derivatives."""
