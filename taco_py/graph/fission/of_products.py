"""Products → contract: a sum of products, by a label for each mode.

np.diag(x) @ A    →   contract x[i] A[i,j]: of a matrix with a diagonal alone that is read
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.graph.extents import ONE
from taco_py.graph.fission.expressible import are_computed
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.language.notation.checks import has_subscripts
from taco_py.language.notation.parser import parse_assignment

Labels = tuple[int, ...]


def product(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a product of matrices, an einsum and others, of types that sums do not widen."""
    facts = [builder.facts[operand] for operand in inputs]
    narrow = [
        np.dtype(fact.dtype).kind in "biu" and np.dtype(fact.dtype).itemsize < 8
        for fact in (*facts, node.fact)
    ]
    if not are_computed((*facts, node.fact)) or any(narrow) or any(fact.weak for fact in facts):
        return builder.numpy(node, inputs)
    output_labels = node.get("kept")
    inputs, labels = _by_diagonals(builder, inputs, node.get("labels"), output_labels)
    return builder.contract(inputs, labels, output_labels, node.shape, node.dtype)


def _by_diagonals(
    builder: GraphBuilder, inputs: Sequence[str], labels: Sequence[Labels], output_labels: Labels
) -> tuple[Sequence[str], Sequence[Labels]]:
    """Read the diagonals of matrices that have nothing else, unless both modes are kept."""
    names, lists = [*inputs], [*labels]
    for place, name in enumerate(inputs):
        if name not in builder.diagonals or {*lists[place]} <= {*output_labels}:
            continue
        row, column = lists[place]
        kept_one, gone = (row, column) if row in output_labels else (column, row)
        names[place], lists[place] = builder.diagonals[name], (row,)
        lists = [tuple(kept_one if label == gone else label for label in group) for group in lists]
    return names, lists


def matrix_of_diagonal(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split np.diag of a vector: its elements where both positions are equal, else 0."""
    (vector,) = inputs
    (size, _), dtype = node.shape, node.dtype
    places = builder.add("numpy", (), (size,), "int64", call="places")
    rows = builder.layout("expand", places, (0, None), (size, ONE))
    columns = builder.layout("expand", places, (None, 0), (ONE, size))
    wide = builder.layout("expand", vector, (0, None), (size, ONE))
    inside = builder.map("equal", rows, columns)
    zero = builder.literal(np.dtype(dtype).type(0))
    matrix = builder.map("where", inside, wide, zero, dtype=dtype)
    builder.diagonals[matrix] = vector
    return matrix


def text(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a text in index notation: it is a primitive as it is; with subscripts that are more
    than indices, a call of its own."""
    facts = [builder.facts[operand] for operand in inputs]
    statement = parse_assignment(node.get("text"))
    is_call = has_subscripts(statement) or statement.operator is not None
    if is_call or not are_computed((*facts, node.fact)) or any(fact.weak for fact in facts):
        return builder.numpy(node, inputs)
    attributes = dict(node.attributes)
    return builder.add("notation", inputs, node.shape, node.dtype, **attributes)
