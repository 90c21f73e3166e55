"""Make the transpose of a product as the product of other modes.

    transpose(A[i,k] * B[k,j])    →   contract A[i,k] B[k,j], by j and i

Of products that are results in that order alone, as gradients of a matrix that was read transposed:
kernels read values through layouts. Dense values alone: formats say an order of their own.
"""

from __future__ import annotations

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator != "transpose" or node.name not in builder.handed:
        return None
    inner = builder.nodes.get(node.inputs[0])
    if inner is None or inner.operator != "contract" or not builder.is_for_one(inner.name):
        return None
    source, output_labels = node.get("source"), inner.get("kept")
    if inner.name in builder.sparse or {*source} != {*range(len(output_labels))}:
        return None  # a layout that puts modes in, or leaves some out
    modes = [output_labels[axis] for axis in source]
    return builder.contract(inner.inputs, inner.get("labels"), modes, node.shape, node.dtype)


RULE = GraphRule("transpose_of_product", "(A @ B).T", "sum(A * B), by j, i", "nothing", _apply)
