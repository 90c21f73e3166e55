"""Write a sum over modes of a product as a product with ones, which joins the product before it.

sum(A[i,j] * B[j,k] over k)              →   A[i,j] * B[j,k] * 1[k]     one contraction
sum(broadcast(a) * broadcast(b))         →   contract(a, b)
"""

from __future__ import annotations

from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule

MULTIPLIED = ("multiply",)


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator != "reduce" or node.get("function") != "sum":
        return None
    inner = builder.nodes.get(node.inputs[0])
    if inner is None or inner.dtype != node.dtype:
        return None
    if inner.operator == "contract":
        return _of_contraction(builder, node, inner)
    if inner.operator == "map" and inner.get("function") in MULTIPLIED:
        return _of_map(builder, node, inner)
    return None


def _of_contraction(builder: GraphBuilder, node: Node, inner: Node) -> str:
    axes = node.get("axes")
    output = tuple(label for axis, label in enumerate(inner.get("kept")) if axis not in axes)
    return builder.contract(inner.inputs, inner.get("labels"), output, node.shape, node.dtype)


def _of_map(builder: GraphBuilder, node: Node, inner: Node) -> str | None:
    inputs, labels = [], []
    for name in inner.inputs:
        source = tuple(range(inner.fact.order))
        operand = builder.nodes.get(name)
        if operand is not None and operand.operator in LAYOUTS:
            source, (name,) = operand.get("source"), operand.inputs
        fact = builder.facts[name]
        places = {old: axis for axis, old in enumerate(source) if old is not None}
        if fact.weak or fact.dtype != node.dtype or not fact.order or len(places) != fact.order:
            return None
        inputs.append(name)
        labels.append(tuple(places[mode] for mode in range(fact.order)))
    if all(len(group) == inner.fact.order for group in labels):
        return None  # nothing is stretched: the loops of the sum make the product as well
    axes = node.get("axes")
    output_labels = tuple(axis for axis in range(inner.fact.order) if axis not in axes)
    bound = {label for group in labels for label in group}
    if not bound >= {axis for axis, size in enumerate(inner.shape) if size.constant != 1}:
        return None
    return builder.contract(inputs, labels, output_labels, node.shape, node.dtype)


RULE = GraphRule("sum_into_product", "sum(A * B)", "A @ B", "rounding", _apply)
