"""The cotangents of what a text in index notation reads, in graphs: its statements are texts.

y = notation "y[i] = sum(j, A[i,j] * x[j])" of A, x
→   d_x = notation "d_x[j] = sum(i, d_y[i] * A[i,j])" of d_y, A
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from taco_py.graph.extents import Extent
from taco_py.graph.fission.of_products import text
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import NOWHERE, Fact, Node, Shape
from taco_py.language.autodiff.needed_statements import statements_for
from taco_py.language.autodiff.reverse_mode import Reverser
from taco_py.language.diagnostics.errors import DerivativeError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import result_dtype
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.reduce import insert_reductions


def cotangents_of_text(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    """Make the cotangents of a text's operands. Raises DerivativeError."""
    statement = insert_reductions(parse_assignment(node.get("text")))
    values = dict(zip(node.get("names"), inputs, strict=True))
    facts = {name: builder.facts[operand] for name, operand in values.items()}
    targets = tuple(
        name for name, fact in facts.items()
        if np.dtype(fact.dtype).kind in "fc" and values[name] in builder.active
    )  # fmt: skip
    masks = {name for name, fact in facts.items() if fact.sparsity and not fact.fill}
    is_complex = any(fact.dtype.startswith("complex") for fact in (*facts.values(), node.fact))
    target = statement.target.tensor
    reverser = Reverser(
        (statement,), (target,), targets, (), facts, masks, is_complex
    )  # fmt: skip
    try:
        derivatives = reverser.cotangents()
    except DerivativeError as error:
        place = f", in {node.place}" if node.place else ""
        raise DerivativeError(f"{error.message}{place}", error.span, error.hint) from None
    if statement.operator is None:
        values[target] = value
    values[derivatives.seeds[target]] = cotangent
    real = str(np.zeros(0, node.dtype).real.dtype)
    for name, (tensor, mode) in derivatives.sizes.items():
        values[name] = builder.number(builder.facts[values[tensor]].shape[mode], real)
    for name, operand in derivatives.scattered.items():
        fact = builder.facts[values[operand]]
        zero = builder.literal(np.dtype(node.dtype).type(0))
        values[name] = builder.add("numpy", (zero,), fact.shape, node.dtype, call="broadcast_to")
    outputs = [name for name in derivatives.cotangents.values() if name]
    for step in statements_for(derivatives.statements, outputs):
        if step.target.tensor != target:
            values[step.target.tensor] = note_statement(builder, step, values)
    for name in targets:
        gradient = derivatives.cotangents[name]
        if gradient:
            yield node.get("names").index(name), values[gradient]


def note_statement(builder: GraphBuilder, statement: Assignment, values: Mapping[str, str]) -> str:
    """Make the primitive of a statement over values by name."""
    target = statement.target.tensor
    before = (target,) if statement.operator is not None else ()
    names = tuple(dict.fromkeys((*before, *(access.tensor for access in accesses(statement)))))
    facts = {name: builder.facts[values[name]] for name in names}
    dtypes = {name: np.dtype(fact.dtype) for name, fact in facts.items()}
    dtype = facts[target].dtype if before else str(result_dtype(statement, dtypes))
    shape = facts[target].shape if before else shape_of(statement, facts)
    attributes = (("names", names), ("text", to_text(statement)))
    inputs = tuple(values[name] for name in names)
    node = Node("", "evaluate", inputs, attributes, Fact(shape, dtype), builder.place, NOWHERE)
    return text(builder, node, inputs)


def shape_of(statement: Assignment, facts: Mapping[str, Fact]) -> Shape:
    """Return the shape of the result of a statement without subscripts on the left."""
    sizes: dict[str, Extent] = {}
    for access in accesses(statement):
        for mode, size in zip(access.modes, facts[access.tensor].shape, strict=True):
            if mode.index is not None and (mode.index not in sizes or size.constant != 1):
                sizes[mode.index] = size
    return tuple(sizes[index] for index in statement.target.indices)
