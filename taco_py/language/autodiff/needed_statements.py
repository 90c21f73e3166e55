"""Which statements a result depends on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.nodes import Assignment


def needed(statements: Sequence[Assignment], names: Collection[str]) -> tuple[Assignment, ...]:
    """Leave out the statements that none of the names depends on."""
    wanted = {*names}
    found: list[Assignment] = []
    for each in reversed(statements):
        if each.target.tensor in wanted:
            wanted |= {*operand_names(each)}
            found.append(each)
    return tuple(reversed(found))


def names_of(statement: Assignment) -> set[str]:
    """Return the tensors that a statement reads, and what it adds to."""
    own = {statement.target.tensor} if statement.operator is not None else set()
    return {*operand_names(statement)} | own
