"""Statements that a result depends on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.nodes import Assignment


def statements_for(
    statements: Sequence[Assignment], names: Collection[str]
) -> tuple[Assignment, ...]:
    """Remove the statements that none of the names depends on."""
    required = {*names}
    result: list[Assignment] = []
    for statement in reversed(statements):
        if statement.target.tensor in required:
            required |= {*operand_names(statement)}
            result.append(statement)
    return tuple(reversed(result))


def names_of(statement: Assignment) -> tuple[str, ...]:
    """List the tensors that a statement reads in order, then the one that it accumulates into."""
    accumulator = () if statement.operator is None else (statement.target.tensor,)
    return (*operand_names(statement), *accumulator)
