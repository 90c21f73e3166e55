"""Tiled and strip-mined orders of a band of loops.

    for i: for j: S      ->      for i_tile: for j_tile: for i in tile: for j in tile: S

One level of tiles for each mapping of sizes, the outermost first; loops without a size in it are
not split there. With `planes`, the band runs along other directions: skewed, for stencils.
`legality` checks whether the order is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyhedral.affine import Affine, affine
from polyhedral.band_schedule import Row, Schedule, checked_size, rearrange
from polyhedral.errors import ScheduleError
from polyhedral.model import Nest


def tile(
    nest: Nest,
    loops: Sequence[str],
    *levels: Mapping[str, int],
    points: Sequence[str] | None = None,
    planes: Mapping[str, Affine | str] | None = None,
) -> Schedule:
    """Return the band of `loops` tiled; the loops inside the innermost tile in the order `points`.

    `planes` gives a loop another direction, e.g. `{"i": "i + t"}`; tiles and points both follow it,
    and the directions together must be a unimodular combination of the loops.

    >>> from polyhedral.model import nest, statement
    >>> gemm = nest(statement("S", "i in 0..N, j in 0..N, k in 0..N", "C[i,j] +=; A[i,k]; B[k,j]"))
    >>> print(tile(gemm, "ijk", {"i": 32, "k": 64}, points="ikj"))
    S -> [0, i/32, k/64, i, k, j, 0]
    """
    inner = tuple(points if points is not None else loops)
    if sorted(inner) != sorted(loops):
        raise ScheduleError(f"Expected the loops {', '.join(loops)}, found {', '.join(inner)}.")
    foreign = [name for name in planes or {} if name not in loops]
    if foreign:
        raise ScheduleError(f"Expected planes of {', '.join(loops)}, found one of {foreign[0]}.")
    directions = {name: affine((planes or {}).get(name, name)) for name in loops}
    rows = []
    for level, sizes in enumerate(levels):
        _check_loops(sizes, loops)
        rows += [
            Row(_tile_name(name, level), directions[name], checked_size(sizes[name]))
            for name in loops
            if name in sizes
        ]
    return rearrange(nest, loops, [*rows, *(Row(name, directions[name]) for name in inner)])


def strip_mine(nest: Nest, loop: str, size: int) -> Schedule:
    """Return `for i` as `for i_tile: for i in tile`, at its place."""
    return tile(nest, (loop,), {loop: size})


def _tile_name(loop: str, level: int) -> str:
    return f"{loop}_tile{level + 1 if level else ''}"


def _check_loops(sizes: Mapping[str, int], loops: Sequence[str]) -> None:
    foreign = [name for name in sizes if name not in loops]
    if foreign:
        raise ScheduleError(f"Expected sizes of {', '.join(loops)}, found one of {foreign[0]}.")
