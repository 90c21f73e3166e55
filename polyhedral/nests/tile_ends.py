"""Separation of full tiles from partial tiles at the ends of loops.

Loops in a full tile have a constant number of iterations, which lets a C compiler unroll short rows
and omit the remainder after the last vector. Measured with tiles of n^3 on a product of matrices,
separate loops are 1.9 times as fast for n = 8, 1.4 for 16, 1.3 for 32 and 64, 1.05 for 128 and 256;
in skewed tiles, such as those of stencils, at most 1.02. The code and the time of gcc are three
times as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyhedral.affine import Affine
from polyhedral.band_schedule import Row, Schedule, Tag
from polyhedral.model import Statement

SHORT = 64
"""The most iterations of the innermost loop for which separation pays."""

SEPARATED = "full tiles: in loops of their own"

Bands = Sequence[tuple[Statement, Sequence[Affine]]]
"""Statements with the planes that are tiled."""


def separates_full_tiles(
    statements: Bands, sizes: Sequence[int], innermost: Mapping[str, str | None]
) -> tuple[bool, str]:
    """Tell whether full tiles of those sizes along the planes run in separate loops, and why.

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
    tiled_rows = [row for row in rows if row is not None]
    if len(tiled_rows) < len(rows):
        return False, "full tiles: in the same loops as the others, for rows are not tiled"
    longest = max(tiled_rows)
    if longest > SHORT:
        return False, f"full tiles: in the same loops as the others, for rows of {longest} are long"
    return True, f"{SEPARATED}, for rows of {longest} are short"


def _row(planes: Sequence[Affine], sizes: Sequence[int], loop: str | None) -> int | None:
    """Return the iterations of `loop` in a tile; None where no tile cuts it."""
    sizes_along = [size for plane, size in zip(planes, sizes, strict=False) if loop in plane.names]
    return min(sizes_along, default=None)


def separate_full_tiles(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows of tiles with full tiles separated.

    Unchanged where threads share the last of the rows.
    """
    *before, last = rows
    return (*before, last if last.tag is Tag.PARALLEL else replace(last, separates=True))


def join_tiles(schedule: Schedule) -> Schedule:
    """Return the same order, with all tiles in the same loops."""
    return Schedule(
        tuple(
            (name, tuple(replace(r, separates=False) for r in rows)) for name, rows in schedule.rows
        )
    )
