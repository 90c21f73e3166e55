"""The innermost loops of a plan that run in vectors.

    for i: for j:  C[i,j] += A[i,k] * B[k,j]      j: C and B advance by one element, A stays

These are loops whose iterations are independent except for sums, where every access suits vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyhedral.band_schedule import Row, Schedule, Tag
from polyhedral.isl.nest_relations import Relations, carried
from polyhedral.model import Nest, Statement
from polyhedral.nests.tile_size import advances_by_one, changes


def vector_rows(relations: Relations, schedule: Schedule, statement: Statement) -> tuple[Row, ...]:
    """Return the rows of `statement`, the innermost loop marked where it can run in vectors.

    Its iterations must be independent except for sums, and the accesses of all statements in it
    must suit vectors.
    """
    rows = schedule.of(statement.name)
    places = [place for place, row in enumerate(rows) if row.name]
    if not places:
        return rows
    place = places[-1]
    inside = _sharing(relations.names.nest, schedule, statement, place)
    if not all(_runs_in_vectors(relations, schedule, sibling, place) for sibling in inside):
        return rows
    return (*rows[:place], replace(rows[place], tag=Tag.VECTOR), *rows[place + 1 :])


def _sharing(
    nest: Nest, schedule: Schedule, statement: Statement, place: int
) -> tuple[Statement, ...]:
    """Return the statements inside the loop of row `place` of `statement`."""
    mine = schedule.of(statement.name)[:place]

    def is_inside(rows: Sequence[Row]) -> bool:
        pairs = zip(mine, rows, strict=False)
        return all(one.name or other.name or one == other for one, other in pairs)

    return tuple(s for s in nest.statements if is_inside(schedule.of(s.name)))


def _runs_in_vectors(
    relations: Relations, schedule: Schedule, statement: Statement, place: int
) -> bool:
    rows = schedule.of(statement.name)
    loop = rows[place].name
    innermost = not any(row.name for row in rows[place + 1 :])
    if not innermost or loop not in statement.variables or not _suits_vectors(statement, loop):
        return False
    return not carried(relations, schedule, place, statement.name, commuting=False)


def _suits_vectors(statement: Statement, loop: str) -> bool:
    """Tell whether every access advances by one element, or stays.

    Only sums may write to an element that stays.
    """
    accesses = statement.accesses
    straight = all(advances_by_one(a, loop) or not changes(a, loop) for a in accesses)
    writes = (access for access in accesses if access.writes)
    return straight and all(changes(write, loop) or write.operator for write in writes)
