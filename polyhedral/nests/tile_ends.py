"""Whether full tiles run in loops of their own, apart from those that the ends of loops cut.

The bounds of loops in a full tile are constants apart, which lets a C compiler unroll short rows
and leave out what comes after the last vector. Measured with tiles of n^3 on a product of matrices,
loops of their own are 1.9 times as fast for n = 8, 1.4 for 16, 1.3 for 32 and 64, 1.05 for 128 and
256; in skewed tiles, as stencils have them, nowhere more than 1.02. The code is three times as
much, and takes gcc as much longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyhedral.affine import Affine
from polyhedral.band_schedule import Row, Schedule, Tag
from polyhedral.model import Statement

SHORT = 64
"""Iterations of the innermost loop up to which it pays."""

OWN_LOOPS = "full tiles: in loops of their own"

Bands = Sequence[tuple[Statement, Sequence[Affine]]]
"""Statements with the planes that are tiled."""


def told_apart(
    statements: Bands, sizes: Sequence[int], innermost: Mapping[str, str | None]
) -> tuple[bool, str]:
    """Tell whether full tiles of those sizes along the planes run in loops of their own, and why.

    innermost   the loop of each statement that is the innermost one
    """
    if any(len(plane.terms) > 1 for _, planes in statements for plane in planes):
        return False, "full tiles: in the same loops as the others, for they are skewed"
    deepest = max(len(statement.loops) for statement, _ in statements)
    rows = [
        _row(planes, sizes, innermost.get(statement.name))
        for statement, planes in statements
        if len(statement.loops) == deepest
    ]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows):
        return False, "full tiles: in the same loops as the others, for rows are not tiled"
    longest = max(known)
    if longest > SHORT:
        return False, f"full tiles: in the same loops as the others, for rows of {longest} are long"
    return True, f"{OWN_LOOPS}, for rows of {longest} are short"


def _row(planes: Sequence[Affine], sizes: Sequence[int], loop: str | None) -> int | None:
    """Return the iterations of `loop` in a tile; None where no tile cuts it."""
    found = [size for plane, size in zip(planes, sizes, strict=False) if loop in plane.names]
    return min(found, default=None)


def apart(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows of tiles whose full ones run apart; the same where threads share the last of
    them."""
    *before, last = rows
    return (*before, last if last.tag is Tag.PARALLEL else replace(last, apart=True))


def together(schedule: Schedule) -> Schedule:
    """Return the same order, with all tiles in the same loops."""
    return Schedule(
        tuple((name, tuple(replace(r, apart=False) for r in rows)) for name, rows in schedule.rows)
    )
