"""Broadcasts and layouts: R[i,j] = a[j], R[i,j] = a[j,i], modes of size 1 put in and left out."""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.language.notation.nodes import Expr


def _express(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    (fact,) = operands.facts
    subscripts: list[Index] = [None] * fact.order
    for index, source in zip(indices, node.get("source"), strict=True):
        if source is not None:
            subscripts[source] = index
    return operands.read(0, subscripts)


PRIMITIVES = (
    Primitive("broadcast", "broadcast", _express),
    Primitive("transpose", "layout", _express),
    Primitive("expand", "layout", _express),
    Primitive("squeeze", "layout", _express),
)
