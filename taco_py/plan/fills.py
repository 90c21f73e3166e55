"""Operands whose absent elements are not 0: kernels take what is not stored for 0."""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Assignment
from taco_py.plan.ir.nodes import Operand


def refuse_fills(assignment: Assignment, operands: Mapping[str, Operand]) -> None:
    """Raise OperandTypeError where an operand that leaves elements out has another fill value than
    0."""
    for access in accesses(assignment.value):
        type = operands[access.tensor].type
        if type.fill:
            raise OperandTypeError(
                f"Expected operands whose elements are 0 where nothing is stored, found "
                f"{access.tensor} with the fill value {type.fill_value}",
                access.span,
                f"pass {access.tensor}.to_numpy(), which stores all elements; evaluate_dense "
                "computes with fill values",
            )
