"""A primitive where others store something: R[i,j] = kept(sum(k, a[i,k] * b[j,k]), stored(M[i,j])).

    contract(Q, K)   →   sampled(Q, K, M), of contract, at ((2, (0, 1)),)

An attribute `of` names the primitive, whose operands come first, and `at` says for each operand
after them which mode of the result each of its modes is, None for one of size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taco_py.graph.nodes import Node
from taco_py.graph.primitives import functions_of_elements, gathers, linear_forms
from taco_py.graph.primitives import reductions_over_modes as reductions
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.language.legal.needed_places import kept_where
from taco_py.language.notation.nodes import Expr

OPERATOR = "sampled"

At = tuple[tuple[int, tuple[int | None, ...]], ...]
"""Operands whose stored elements say where, each with the modes of the result that it has."""

_OF = {
    primitive.operator: primitive
    for family in (functions_of_elements, reductions, linear_forms, gathers)
    for primitive in family.PRIMITIVES
}


def operator_of(node: Node) -> str:
    """Return the operator of a node, also where it is sampled."""
    return str(node.get("of", node.operator))


def everywhere(node: Node) -> Node:
    """Return a primitive without the places where it is computed.

    sampled(Q, K, M), of contract   →   contract(Q, K)
    """
    at: At = node.get("at", ())
    if not at:
        return node
    inputs = node.inputs[: at[0][0]]
    return replace(node, operator=operator_of(node), inputs=inputs)


def _express(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    inner = everywhere(node)
    facts = operands.facts[: len(inner.inputs)]
    value = _OF[inner.operator].express(inner, indices, replace(operands, facts=facts))
    stored = []
    for place, modes in node.get("at"):
        subscripts = [None if mode is None else indices[mode] for mode in modes]
        stored.append(operands.read(place, subscripts))
    return kept_where(value, stored)


PRIMITIVES = (Primitive(OPERATOR, "sampled", _express),)
