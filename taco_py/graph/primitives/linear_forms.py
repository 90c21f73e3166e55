"""Linear primitives: R[i,k] = sum(j, a[i,j] * b[j,k]), and assignments of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.rewrites.reduce import insert_reductions


def _express(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    labels = node.get("labels")
    named: dict[int, Index] = dict(zip(node.get("kept"), indices, strict=True))
    over: list[str] = []
    for fact, own in zip(operands.facts, labels, strict=True):
        for label, size in zip(own, fact.shape, strict=True):
            if named.get(label) is None and label not in node.get("kept") and size.constant != 1:
                named[label] = operands.fresh()
                over.append(str(named[label]))
    factors = [
        operands.read(
            place,
            [
                None if size.constant == 1 else named.get(label)
                for label, size in zip(own, fact.shape, strict=True)
            ],
        )
        for place, (own, fact) in enumerate(zip(labels, operands.facts, strict=True))
    ]
    found = reduce(lambda one, other: Call(MUL, (one, other)), factors)
    for index in reversed(over):
        found = Reduce(ADD, index, found)
    return found


def _express_notation(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    """Return the right-hand side of a text, over the indices that are asked for."""
    assignment = insert_reductions(parse_assignment(node.get("text")))
    places = {name: place for place, name in enumerate(node.get("names"))}
    units = {
        index
        for access in accesses(assignment.value)
        for index, size in zip(
            access.indices, operands.facts[places[access.tensor]].shape, strict=True
        )
        if size.constant == 1
    }
    wide = {
        index
        for access in accesses(assignment.value)
        for index, size in zip(
            access.indices, operands.facts[places[access.tensor]].shape, strict=True
        )
        if size.constant != 1
    }
    named: dict[str, Index] = dict(zip(assignment.target.indices, indices, strict=True))
    named.update(dict.fromkeys(units - wide - named.keys()))

    def written(expr: Expr) -> Expr:
        match expr:
            case Access(tensor, own):
                place = places[tensor]
                sizes = operands.facts[place].shape
                return operands.read(
                    place,
                    [
                        None if size.constant == 1 else named[index]
                        for index, size in zip(own, sizes, strict=True)
                    ],
                )
            case Literal():
                return expr
            case Call(operator, args):
                return Call(operator, tuple(map(written, args)))
            case Reduce(operator, index, body):
                before = named.get(index)
                named[index] = fresh = None if index in units - wide else operands.fresh()
                inner = written(body)
                named[index] = before
                return inner if fresh is None else Reduce(operator, fresh, inner)

    return written(assignment.value)


PRIMITIVES = (
    Primitive("contract", "linear", _express),
    Primitive("notation", "linear", _express_notation),
)
