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
    by_label: dict[int, Index] = dict(zip(node.get("kept"), indices, strict=True))
    over: list[str] = []
    for fact, group in zip(operands.facts, labels, strict=True):
        for label, size in zip(group, fact.shape, strict=True):
            if by_label.get(label) is None and label not in node.get("kept") and size.constant != 1:
                by_label[label] = operands.fresh()
                over.append(str(by_label[label]))
    factors = [
        operands.read(
            place,
            [
                None if size.constant == 1 else by_label.get(label)
                for label, size in zip(group, fact.shape, strict=True)
            ],
        )
        for place, (group, fact) in enumerate(zip(labels, operands.facts, strict=True))
    ]
    result = reduce(lambda one, other: Call(MUL, (one, other)), factors)
    for index in reversed(over):
        result = Reduce(ADD, index, result)
    return result


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
    by_index: dict[str, Index] = dict(zip(assignment.target.indices, indices, strict=True))
    by_index.update(dict.fromkeys(units - wide - by_index.keys()))

    def express(expr: Expr) -> Expr:
        match expr:
            case Access(tensor, own):
                place = places[tensor]
                sizes = operands.facts[place].shape
                return operands.read(
                    place,
                    [
                        None if size.constant == 1 else by_index[index]
                        for index, size in zip(own, sizes, strict=True)
                    ],
                )
            case Literal():
                return expr
            case Call(operator, args):
                return Call(operator, tuple(map(express, args)))
            case Reduce(operator, index, body):
                before = by_index.get(index)
                by_index[index] = fresh = None if index in units - wide else operands.fresh()
                inner = express(body)
                by_index[index] = before
                return inner if fresh is None else Reduce(operator, fresh, inner)

    return express(assignment.value)


PRIMITIVES = (
    Primitive("contract", "linear", _express),
    Primitive("notation", "linear", _express_notation),
)
