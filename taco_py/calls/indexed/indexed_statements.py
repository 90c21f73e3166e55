"""Statements with subscripts → statements with indices alone, and the operands that they read.

    y[i] = x[i+1] - x[i]; z[j] = y[j] * A[p[j],j]
    →  y[i] = x_at_i_1[i] - x_at_i[i]; z[j] = y[j] * A_at_p_j_j[j]

What a statement makes is read at indices alone: it is no operand, from which one could be made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codegen.names import Names
from codegen.records import dataclass
from taco_py.calls.indexed.derived import Derived
from taco_py.calls.indexed.domains import BoundaryOptions
from taco_py.calls.indexed.indexed_call import boundary_options
from taco_py.calls.indexed.make_operands import (
    arrays_of_operands,
    describe_operands,
    layout_of,
    make_operands,
)
from taco_py.language.diagnostics.errors import DimensionError, NotationError, OperandError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text

AMONG_SEVERAL = "of a statement among several"
OVER_SEMIRINGS = "under semiring= or mask="
_ALONE = "compute it by a text of its own, the result of which is an operand of the next text"


@dataclass(frozen=True, slots=True, eq=False)
class PlainStatements:
    """Statements with indices alone, their operands, and how those were got that were made."""

    assignments: tuple[Assignment, ...]
    objects: Mapping[str, Any]
    told: tuple[str, ...]


def boundary_options_of_several(border: Any, shape: Any) -> BoundaryOptions:
    """What a call says of borders for all statements.

    Raises OperandError, DimensionError where it says a shape: each statement has its own.
    """
    if shape is not None:
        raise DimensionError(
            "Expected no shape= for several statements, found one",
            hint="compute the statement that needs it by a text of its own",
        )
    return boundary_options(border, None)


def indexed_statements(
    written: Sequence[Assignment], objects: Mapping[str, Any], boundary: BoundaryOptions
) -> PlainStatements:
    """Make the operands that statements ask for, one statement after the other.

    objects  all that statements read, and nothing else

    Raises NotationError where a left-hand side, or what a statement makes, has more than indices
    for subscripts; OperandError where positions are what a statement makes; what `make_operands`
    raises.
    """
    refuse_computed_positions(written)
    tensors, made = arrays_of_operands(objects), dict[str, tuple[int, ...]]()
    met = {access.tensor for each in written for access in (each.target, *accesses(each))}
    names = Names({*objects, *met})
    assignments, told = [], list[str]()
    found = dict[str, Any]()
    for each in written:
        refuse_scatter(each.target, AMONG_SEVERAL)
        layout = layout_of(each, tensors, boundary, made, names)
        for one in layout.plain.derived:
            _check_is_operand(one, made)
        operands = make_operands(each, objects, tensors, layout, boundary)
        found.update(operands.objects)
        told += describe_operands(layout, operands)
        assignments.append(layout.plain.assignment)
        made[each.target.tensor] = layout.domain.shape
    return PlainStatements(tuple(assignments), found, tuple(told))


def refuse_scatter(target: Access, where: str) -> None:
    """Raise NotationError where a left-hand side has more than indices for subscripts."""
    if target.subscripts:
        raise NotationError(
            f"Expected indices alone on the left-hand side {where}, found {to_text(target)}",
            target.span,
            _ALONE,
        )


def refuse_computed_positions(written: Sequence[Assignment]) -> None:
    """Raise OperandError where a subscript reads what an earlier statement assigns.

    a[i] = argmax(j, A[i,j]); y[i] = x[a[i]]    reads x at a, which is no operand
    """
    assigned = set[str]()
    for each in written:
        modes = (mode for access in accesses(each) for mode in access.subscripts)
        for inner in (access for mode in modes for access, _ in mode.gathered):
            if inner.tensor in assigned:
                raise OperandError(
                    f"Expected an operand for positions, found {to_text(inner)}, which an earlier "
                    "statement assigns",
                    inner.span,
                    f"compute {inner.tensor} in a call of its own, and pass the result as an "
                    "operand",
                )
        assigned.add(each.target.tensor)


def _check_is_operand(one: Derived, made: Mapping[str, tuple[int, ...]]) -> None:
    """Raise NotationError where an operand would be made of what a statement makes."""
    access = one.source_access
    if access.tensor in made:
        raise NotationError(
            f"Expected all of {access.tensor}, which the text assigns, at indices alone, found "
            f"{to_text(access)}",
            access.span,
            _ALONE,
        )
