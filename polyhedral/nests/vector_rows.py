"""Which innermost loops of a plan run in vectors.

    for i: for j:  C[i,j] += A[i,k] * B[k,j]      j: C and B advance by one element, A stays

A loop does whose iterations are independent but for sums, where every access suits vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyhedral.band_schedule import Row, Schedule, Tag
from polyhedral.isl.held import Held, carried
from polyhedral.model import Nest, Statement
from polyhedral.nests.tile_size import advances_by_one, changes


def vector_rows(held: Held, schedule: Schedule, statement: Statement) -> tuple[Row, ...]:
    """Return the rows of `statement`, the innermost loop marked where its iterations are
    independent but for sums, and the accesses of all statements in it suit vectors."""
    rows = schedule.of(statement.name)
    places = [place for place, row in enumerate(rows) if row.name]
    if not places:
        return rows
    place = places[-1]
    inside = _sharing(held.names.nest, schedule, statement, place)
    if not all(_runs_in_vectors(held, schedule, each, place) for each in inside):
        return rows
    return (*rows[:place], replace(rows[place], tag=Tag.VECTOR), *rows[place + 1 :])


def _sharing(
    nest: Nest, schedule: Schedule, statement: Statement, place: int
) -> tuple[Statement, ...]:
    """Return the statements inside the loop that row `place` of `statement` is."""
    mine = schedule.of(statement.name)[:place]

    def together(rows: Sequence[Row]) -> bool:
        pairs = zip(mine, rows, strict=False)
        return all(one.name or other.name or one == other for one, other in pairs)

    return tuple(each for each in nest.statements if together(schedule.of(each.name)))


def _runs_in_vectors(held: Held, schedule: Schedule, statement: Statement, place: int) -> bool:
    rows = schedule.of(statement.name)
    loop = rows[place].name
    innermost = not any(row.name for row in rows[place + 1 :])
    if not innermost or loop not in statement.variables or not _suits_vectors(statement, loop):
        return False
    return not carried(held, schedule, place, statement.name, commuting=False)


def _suits_vectors(statement: Statement, loop: str) -> bool:
    """Tell whether every access advances by one element or stays; what is written may stay only
    where it is a sum."""
    accesses = statement.accesses
    straight = all(advances_by_one(a, loop) or not changes(a, loop) for a in accesses)
    writes = (access for access in accesses if access.writes)
    return straight and all(changes(each, loop) or each.operator for each in writes)
