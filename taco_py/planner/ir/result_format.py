"""The format of a result among Tensors, where nobody asks for one.

    C[i,j] = 2 * A[i,j]             A in ds   →   ds
    C[i,j] = A[i,j] + A[j,i]        A in ds   →   ds, where ss has no use for A's rows are all there
    C[i,j] = A[i,k] * A[j,k]        A in ds   →   ds
    C[i,j] = A[i,j] + B[i,j]        A in ds, B full   →   dd

An index that some term leaves free is dense. So is one of which operands have a position for every
coordinate already, given the indices stored above it; any other is compressed. A result thus has no
dense part that is larger than those of its operands, unless a term fills it.
"""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.iteration.region import Iterator
from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment, Expr
from taco_py.planner.ir.formats import (
    COMPRESSED,
    DENSE,
    compressed_indices,
    default_format,
    levels_of,
    sparse_levels,
    storage_order,
)


def result_format(assignment: Assignment, formats: Mapping[str, Format]) -> Format:
    """Return the format of a result, dense where operands or terms have every coordinate."""
    usual = default_format(assignment, formats)
    sparse = compressed_indices(assignment, levels_of(assignment, formats, every=False))
    restricted = compressed_indices(assignment, _restricting(assignment, formats))
    if not restricted - sparse:
        return usual
    target = assignment.target.indices
    stored = storage_order(assignment, formats)
    levels = []
    for depth, index in enumerate(stored, 1):
        above = stored[:depth]
        full = index not in restricted
        is_dense = index not in sparse and _is_held(
            assignment, formats, above, COMPRESSED in levels
        )
        levels.append(DENSE if full or is_dense else COMPRESSED)
    if COMPRESSED not in levels:
        return usual
    return Format(tuple(levels), tuple(target.index(i) for i in stored))


def _restricting(
    assignment: Assignment, formats: Mapping[str, Format]
) -> dict[Access, dict[str, Iterator]]:
    """Return the levels that omit coordinates, or have such a level below them.

    All levels of an operand that has the result's indices and no others: its entries are those of
    the result, and blocks of them are not spread over other coordinates.
    """
    target = {*assignment.target.indices}
    every = levels_of(assignment, formats, every=True)
    return {
        a: levels if {*a.indices} == target else sparse_levels(a, formats[a.tensor])
        for a, levels in every.items()
    }


def _is_held(
    assignment: Assignment, formats: Mapping[str, Format], above: tuple[str, ...], inside: bool
) -> bool:
    """Tell whether operands have a position for each coordinate of the last index under the others.

    inside  whether others are compressed: each term has an operand that does, else any operand that
            stores all of them densely
    """

    def holds(expr: Expr) -> bool:
        return any(_holds(a, formats[a.tensor], above, inside) for a in accesses(expr))

    if inside:
        return all(holds(term.body) for term in split_terms(assignment.value))
    return holds(assignment.value)


def _holds(access: Access, form: Format, above: tuple[str, ...], inside: bool) -> bool:
    """Tell whether an operand stores these indices first, the last of them, or all, densely."""
    depth = len(above)
    if not is_sparse(form) or depth > form.order:
        return False
    first = form.stored(access.indices)[:depth]
    dense = form.levels[depth - 1 if inside else 0 : depth]
    return (
        {*first} == {*above}
        and all(level == DENSE for level in dense)
        and (not inside or first[-1] == above[-1])
    )
