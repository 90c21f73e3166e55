"""Write a product of which a diagonal or a trace is taken as one of the elements that are read.

trace(A @ B)        →   sum(A[i,j] * B[j,i])      n² products instead of n³
diagonal(A @ B)     →   sum(A[i,j] * B[j,i] over j)
"""

from __future__ import annotations

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator != "contract" or len(node.inputs) != 1 or node.name in builder.sparse:
        return None
    inner = builder.nodes.get(node.inputs[0])
    if inner is None or inner.operator != "contract" or not builder.is_for_one(inner.name):
        return None
    if inner.dtype != node.dtype:
        return None
    (outer,) = node.get("labels")
    renamed = dict(zip(inner.get("kept"), outer, strict=True))
    fresh = max((*outer, *node.get("kept"), -1)) + 1
    labels = []
    for group in inner.get("labels"):
        for label in group:
            if label not in renamed:
                renamed[label] = fresh
                fresh += 1
        labels.append(tuple(renamed[label] for label in group))
    return builder.contract(inner.inputs, labels, node.get("kept"), node.shape, node.dtype)


RULE = GraphRule("join_products", "trace(A @ B)", "sum(A * B.T)", "rounding", _apply)
