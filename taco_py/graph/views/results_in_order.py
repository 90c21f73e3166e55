"""Values that a reshape shows are stored in the order in which it reads them.

reshape(transpose(exp(x)))     →   reshape(exp(transpose(x)))
reshape(transpose(A @ B))      →   reshape of the product by the other modes
reshape(transpose(x))          →   reshape(transpose(x) * 1): a kernel copies it
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.graph.fission.expressible import are_computed
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Graph, Node

_TURNED = ("transpose", "expand", "squeeze")


def put_results_in_order(graph: Graph) -> Graph:
    """Store values in the order in which reshapes read them, so that these are views."""
    if not any(_reshapes_transpose(graph, node) for node in graph.nodes):
        return graph
    builder = GraphBuilder(graph)
    readers = graph.readers()
    for node in graph.nodes:
        builder.place, builder.origin = node.place, node.origin
        if not _reshapes_transpose(graph, node):
            builder.renamed[node.name] = builder.copy(node)
            continue
        inner = graph.by_name[node.inputs[0]]
        base = graph.by_name.get(inner.inputs[0])
        alone = (
            base is not None and len(readers[base.name]) == 1 and len(readers[inner.name]) == 1
            and base.name not in graph.outputs and inner.name not in graph.outputs
        )  # fmt: skip
        stored = _in_order(builder, base, inner) if alone and base is not None else None
        if stored is None:
            copy = builder.renamed[inner.name]
            one = builder.literal(np.dtype(node.dtype).type(1))
            stored = builder.add("map", (copy, one), inner.shape, node.dtype, function="multiply")
        builder.renamed[node.name] = builder.add(
            "numpy", (stored,), node.shape, node.dtype, **dict(node.attributes)
        )
    return builder.finish()


def _reshapes_transpose(graph: Graph, node: Node) -> bool:
    """Tell whether a reshape reads a real or complex array in another order."""
    if node.get("call") != "reshape":
        return False
    inner = graph.by_name.get(node.inputs[0])
    if inner is None or inner.operator not in _TURNED:
        return False
    axes = [axis for axis in inner.get("source") if axis is not None]
    is_real = np.dtype(node.dtype).kind in "fc" and are_computed((node.fact,))
    return axes != sorted(axes) and is_real


def _in_order(builder: GraphBuilder, base: Node, layout: Node) -> str | None:
    """Make a value with the modes that a layout shows; None where it is to be copied."""
    source: Sequence[int | None] = layout.get("source")
    inputs = [builder.renamed[name] for name in base.inputs]
    if base.operator == "map":
        turned = [
            builder.layout("transpose", name, source, layout.shape) if builder.facts[name].order
            else name
            for name in inputs
        ]  # fmt: skip
        return builder.add("map", turned, layout.shape, base.dtype, **dict(base.attributes))
    if base.operator == "contract" and None not in source and len(source) == base.fact.order:
        output_labels = [base.get("kept")[axis] for axis in source if axis is not None]
        return builder.contract(inputs, base.get("labels"), output_labels, layout.shape, base.dtype)
    return None
