"""Reductions: R[i] = sum(j, a[i,j]), and by max, min, prod, any and all.

    sum(a + b), a and b of int8   →   sum(j, int64(1) * (a[i,j] + b[i,j]))

In a text all that is summed is computed in the type of the sum; in NumPy a + b wraps before.
"""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.language.diagnostics.source import Source, Span
from taco_py.language.notation.functions.function_table import make_reduction
from taco_py.language.notation.nodes import Call, Expr, Literal
from taco_py.language.notation.operators import MUL

_NOWHERE = Span(Source(""), 0, 0)


def _express(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    (fact,) = operands.facts
    remaining = iter(indices)
    axes = node.get("axes")
    subscripts: list[Index] = []
    over: list[str] = []
    for axis, size in enumerate(fact.shape):
        if axis not in axes:
            subscripts.append(next(remaining))
        elif size.constant == 1:
            subscripts.append(None)
        else:
            over.append(operands.fresh())
            subscripts.append(over[-1])
    value = operands.read(0, subscripts)
    if fact.dtype != node.dtype and isinstance(value, Call):
        value = Call(MUL, (Literal(1, dtype=node.dtype), value))
    return make_reduction(node.get("function"), tuple(over), value, _NOWHERE)


PRIMITIVES = (Primitive("reduce", "reduce", _express, reads_once=True),)
