"""Reductions: R[i] = sum(j, a[i,j]), and by max, min, prod, any and all."""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.diagnostics.source import Source, Span
from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.notation.functions.function_table import make_reduction
from taco_py.notation.nodes import Expr

_NOWHERE = Span(Source(""), 0, 0)


def _express(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    (fact,) = operands.facts
    kept = iter(indices)
    axes = node.get("axes")
    whole: list[Index] = []
    over: list[str] = []
    for axis, size in enumerate(fact.shape):
        if axis not in axes:
            whole.append(next(kept))
        elif size.constant == 1:
            whole.append(None)
        else:
            over.append(operands.fresh())
            whole.append(over[-1])
    return make_reduction(node.get("function"), tuple(over), operands.read(0, whole), _NOWHERE)


PRIMITIVES = (Primitive("reduce", "reduce", _express),)
