"""Pieces of arrays are made by kernels, which write them where they belong.

    concatenate(exp(a), b)   →   concatenate(exp(a), b * 1)

A piece that is an operand, a result of its own, or a piece of another array is copied by a kernel.
"""

from __future__ import annotations

import numpy as np

from taco_py.graph.fission.expressible import are_computed
from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.run.result_parts import is_concatenate, same_elements


def with_stored_pieces(graph: Graph) -> Graph:
    """Return a graph in which kernels compute each piece of a real or complex array."""
    if not any(map(is_concatenate, graph.nodes)):
        return graph
    builder = GraphBuilder(graph)
    pieces: set[str] = set()
    outputs = {*graph.outputs}
    for node in graph.nodes:
        builder.place, builder.origin = node.place, node.origin
        if not is_concatenate(node) or not _is_real(builder, node):
            builder.renamed[node.name] = builder.copy(node)
            continue
        inputs = []
        for name in node.inputs:
            base = same_elements(graph.by_name, name)
            if _is_computed(graph, base) and base not in pieces | outputs:
                fits = graph.facts[base].dtype == node.dtype
                pieces.add(base)
            else:
                fits = False
            new = builder.renamed[name]
            inputs.append(new if fits else _copy(builder, new, node))
        attributes = dict(node.attributes)
        builder.renamed[node.name] = builder.add(
            "numpy", inputs, node.shape, node.dtype, **attributes
        )
    return builder.finish()


def _is_real(builder: GraphBuilder, node: Node) -> bool:
    """Tell whether kernels compute in the type of an array and of its pieces, which are dense."""
    inputs = [builder.renamed[name] for name in node.inputs]
    facts = [node.fact, *(builder.facts[name] for name in inputs)]
    real = all(np.dtype(fact.dtype).kind in "fc" and not fact.weak for fact in facts)
    return real and are_computed(facts) and builder.sparse.isdisjoint(inputs)


def _is_computed(graph: Graph, name: str) -> bool:
    """Tell whether kernels make a value, or put it together."""
    node = graph.by_name.get(name)
    return node is not None and (is_concatenate(node) or node.operator not in ("numpy", *LAYOUTS))


def _copy(builder: GraphBuilder, name: str, node: Node) -> str:
    """Copy a piece by a product with 1, in the type of the array."""
    one = builder.literal(np.dtype(node.dtype).type(1))
    shape, place = builder.facts[name].shape, len(builder.nodes)
    return builder.add("map", (name, one), shape, node.dtype, function="multiply", place=place)
