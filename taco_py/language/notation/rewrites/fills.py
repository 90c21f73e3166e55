"""Operands and results with fill values other than 0, expressed by those with 0.

y[i] = S[i,j] * x[j]      S is -1 where nothing is stored
→ y[i] = filled(S[i,j], -1) * x[j]

E[i,j] = exp(A[i,j])      E is 1 where nothing is stored
→ E[i,j] = filled(exp(A[i,j]), 0), which stores what differs from 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import FILLED, Number
from taco_py.language.notation.tree import map_accesses


def with_fills(assignment: Assignment, fills: Mapping[str, Number]) -> Assignment:
    """Wrap operands of an assignment in their fill values, by name; others have 0."""
    if not fills:
        return assignment

    def filled(access: Access) -> Expr:
        if access.tensor not in fills:
            return access
        return Call(FILLED, (access, Literal(fills[access.tensor])), access.span)

    return replace(assignment, value=map_accesses(assignment.value, filled))


def stored_alone(assignment: Assignment) -> Assignment:
    """Replace the fill value of a right-hand side by absence."""
    value = Call(FILLED, (assignment.value, Literal(0)), assignment.value.span)
    return replace(assignment, value=value)


def filled_of_type(expr: Expr, number: Number | None, dtype: DType) -> Expr:
    """Set the fill value of an expression to a number of a type; the default is 0."""
    if number is None or number == 0:
        return expr
    typed = None if number in (1, -1) and dtype.kind != "b" else dtype.name
    return Call(FILLED, (expr, Literal(number, dtype=typed)), expr.span)
