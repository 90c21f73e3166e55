"""Functions of elements → broadcasts and maps.

add(a, b), a of a row     →   b_ = broadcast(a), map add(b_, b)
astype(x, float64)        →   map multiply(x, float64(1)), where no number changes
astype(x, complex128)     →   map subtract(x, 0j), for 0 times an infinite x is not 0
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.graph.fission.expressible import are_computed, is_computed_alike, literal_of
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Fact, Node


def map_or_numpy(
    builder: GraphBuilder, function: str, inputs: Sequence[str], node: Node, dtype: str
) -> str:
    """Make a map where index notation has the function, else leave the operator to NumPy."""
    if function == "positive":
        return inputs[0]
    name = builder.map(function, *inputs, dtype=dtype)
    if name not in builder.nodes:
        return name
    mapped = builder.nodes[name]
    facts = [builder.facts[operand] for operand in mapped.inputs]
    literals = [
        literal_of(builder.constants[operand])
        if operand in builder.constants and not facts[place].order
        else None
        for place, operand in enumerate(mapped.inputs)
    ]
    wide = all(
        literal is not None or not fact.weak for literal, fact in zip(literals, facts, strict=True)
    )
    if wide and is_computed_alike(function, facts, literals, dtype) and _is_safe(function, facts):
        return name
    return builder.numpy(node, inputs)


def _is_safe(function: str, facts: Sequence[Fact]) -> bool:
    """Tell whether values are NumPy's for all numbers: powers of integers may raise there."""
    kinds = [np.dtype(fact.dtype).kind for fact in facts]
    return function not in ("power", "float_power") or kinds[0] not in "iub"


def function_of_elements(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split one of NumPy's functions of elements."""
    return map_or_numpy(builder, node.operator, inputs, node, node.dtype)


def astype(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a conversion: by a product with 1 where that gives the type and keeps numbers.

    Sparse truths and whole numbers are left to NumPy: entries with equal coordinates wrap before.
    """
    (name,) = inputs
    fact = builder.facts[name]
    target = np.dtype(node.dtype)
    keeps = np.can_cast(fact.dtype, target, "safe") and np.result_type(fact.dtype, target) == target
    adds_alike = not fact.sparsity or np.dtype(fact.dtype).kind in "fc"
    if not (keeps and adds_alike and are_computed((fact, node.fact))):
        return builder.numpy(node, inputs)
    if fact.weak or target.kind == "b":
        return builder.numpy(node, inputs)
    if target.kind == "c" and np.dtype(fact.dtype).kind == "f":
        return builder.map("subtract", name, builder.literal(target.type(0)), dtype=node.dtype)
    return builder.map("multiply", name, builder.literal(target.type(1)), dtype=node.dtype)
