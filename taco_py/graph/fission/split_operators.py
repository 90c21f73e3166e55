"""Operators → primitives, by a table: graphs of operators → graphs of primitives.

    softmax: exp(S - max(S)) / sum(…)   →   reduce max, broadcast, map subtract, map exp,
                                            reduce sum, broadcast, map divide

(Hu, Xu et al. 2024, Optimal Kernel Orchestration for Tensor Programs with Korch, section 3.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from taco_py.graph.fission.of_elements import astype, function_of_elements
from taco_py.graph.fission.of_gathers import index
from taco_py.graph.fission.of_layouts import (
    broadcast_to,
    expand_dims,
    reshape,
    squeeze,
    subscript,
    transpose,
)
from taco_py.graph.fission.of_products import matrix_of_diagonal, product, text
from taco_py.graph.fission.of_reductions import mean, reduction, variance
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Graph, Node, Origin
from taco_py.graph.primitives.functions_of_elements import spelled
from taco_py.graph.primitives.primitive_table import PRIMITIVES

Split = Callable[[GraphBuilder, Node, Sequence[str]], str]

SPLITS: Mapping[str, Split] = MappingProxyType({
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all"), reduction),
    "mean": mean, "var": variance, "std": variance, "astype": astype,
    "transpose": transpose, "expand_dims": expand_dims, "squeeze": squeeze, "slice": subscript,
    "index": index,
    "reshape": reshape, "broadcast_to": broadcast_to,
    **dict.fromkeys(
        ("einsum", "matmul", "tensordot", "outer", "diagonal", "contract"), product
    ),
    "copy": lambda builder, node, inputs: inputs[0],  # see separate_results
    **dict.fromkeys(("custom_derivative", "argument"), lambda builder, node, inputs: inputs[0]),
    "primitive": lambda builder, node, inputs: primitive(builder, node, inputs),
    "diag": matrix_of_diagonal, "evaluate": text,
})  # fmt: skip
"""How operators are split, but for primitives and functions of elements; others are NumPy's."""


def itself(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Make the primitive that an operator is."""
    return builder.add(node.operator, inputs, node.shape, node.dtype, **dict(node.attributes))


def primitive(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Make a primitive that a gradient inside of the function has noted."""
    attributes = dict(node.attributes)
    return builder.add(attributes.pop("primitive"), inputs, node.shape, node.dtype, **attributes)


def split_operators(graph: Graph, unsplit: Collection[str] = ()) -> Graph:
    """Return the graph of primitives that computes the same as a graph of operators.

    unsplit  operators that are left as they are
    """
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.place = node.place
        has_origin = node.origin.operator or node.operator == "primitive"
        builder.origin = node.origin if has_origin else Origin(node.name)
        inputs = [builder.renamed[operand] for operand in node.inputs]
        if node.operator in unsplit:
            builder.renamed[node.name] = builder.copy(node)
            continue
        split = SPLITS.get(node.operator)
        if split is None and node.operator in PRIMITIVES:
            split = itself
        elif split is None:
            elements = spelled(node.operator, len(inputs)) or node.operator == "square"
            split = function_of_elements if elements else GraphBuilder.numpy
        builder.renamed[node.name] = split(builder, node, inputs)
    return builder.finish()
