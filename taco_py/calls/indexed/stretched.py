"""Modes of size 1 beside an index of another size, which are read at their one element.

Y[i,j] = A[i,j] - m[i,j]    m of shape (n, 1)   →   Y[i,j] = A[i,j] - m[i,0]

A sparse operand of one element alone keeps an index, for a number is stored everywhere.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from taco_py.calls.indexed.domains import alone
from taco_py.language.notation.checks import accesses, free_indices, unique
from taco_py.language.notation.nodes import Access, Assignment, Subscript
from taco_py.language.notation.tree import all_reductions, map_accesses


def stretched(
    assignment: Assignment,
    shapes: Mapping[str, tuple[int, ...]],
    sparse: Container[str] = frozenset(),
) -> Assignment:
    """Return the assignment with 0 in the place of indices that stretch a mode of size 1; the same
    object where there is none, and where a sum would lose its index.

    shapes  of the operands, the one that is added to among them
    sparse  the names of those that may not store an element
    """
    sizes = _other_sizes(assignment, shapes)

    def at_zero(access: Access) -> Access:
        if access.is_number:
            return access
        shape = shapes[access.tensor]
        if len(shape) != len(access.modes):
            return access
        modes = tuple(
            Subscript() if size == 1 and _unless_repeated(mode.index, access) in sizes else mode
            for mode, size in zip(access.modes, shape, strict=True)
        )
        if modes == access.modes:
            return access
        names = unique(name for mode in modes for name in mode.names)
        if not names and access.tensor in sparse:
            names = access.indices[:1]
        return Access(access.tensor, names, access.span, modes)

    value = map_accesses(assignment.value, at_zero)
    if value is assignment.value:
        return assignment
    sums = all_reductions(value)
    if any(node.index not in free_indices(node.body) for node in sums):
        return assignment
    return replace(assignment, value=value)


def _other_sizes(
    assignment: Assignment, shapes: Mapping[str, tuple[int, ...]]
) -> Mapping[str, int]:
    """Return the sizes but 1 of modes that an index has by itself."""
    uses, target = accesses(assignment), assignment.target
    if assignment.operator is not None and target.tensor in shapes:
        uses = (*uses, target)
    return {
        mode.index: size
        for access in uses
        for mode, size in zip(access.modes, shapes[access.tensor], strict=False)
        if mode.index is not None and mode.index in alone(access) and size != 1
    }


def _unless_repeated(index: str | None, access: Access) -> str | None:
    """Return an index that no other subscript of the access has."""
    uses = sum(index in mode.names for mode in access.modes)
    return index if uses == 1 else None
