"""Products → contract: a sum of products, by a label for each mode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.graph.fission.expressible import are_computed
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node


def product(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a product of matrices, an einsum and others, of types that sums do not widen."""
    facts = [builder.facts[each] for each in inputs]
    narrow = [
        np.dtype(each.dtype).kind in "biu" and np.dtype(each.dtype).itemsize < 8
        for each in (*facts, node.fact)
    ]
    if not are_computed((*facts, node.fact)) or any(narrow) or any(each.weak for each in facts):
        return builder.numpy(node, inputs)
    labels, kept = node.get("labels"), node.get("kept")
    return builder.contract(inputs, labels, kept, node.shape, node.dtype)


def text(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a text in index notation: it is a primitive as it is."""
    facts = [builder.facts[each] for each in inputs]
    if not are_computed((*facts, node.fact)) or any(each.weak for each in facts):
        return builder.numpy(node, inputs)
    attributes = dict(node.attributes)
    return builder.add("notation", inputs, node.shape, node.dtype, **attributes)
