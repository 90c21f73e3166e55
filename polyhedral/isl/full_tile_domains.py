"""The tiles that are full: every point of their box is an instance.

    for i_tile, j_tile                             for full i_tile, j_tile
      for i in max(0, …)..min(N, …)        →         for i in 32*i_tile..32*i_tile + 32
        for j in max(0, …)..min(M, …): S               for j in 32*j_tile..32*j_tile + 32: S
                                                   the original loops, for the other tiles

ISL generates separate loops for a set that a band of a schedule isolates (Verdoolaege, Grosser
2016); inside, conditions that hold for all full tiles are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from polyhedral.band_schedule import Row, Schedule
from polyhedral.isl.notation import Notation
from polyhedral.model import Nest, Statement

if TYPE_CHECKING:
    import islpy


def isolated(
    context: islpy.Context,
    nest: Nest,
    statements: Sequence[Statement],
    schedule: Schedule,
    places: Sequence[int],
) -> islpy.UnionSet:
    """Return the option of a band that isolates its full tiles.

    The band is the last of `places`, the loops around it are the others. Tiles are isolated that
    are full for each of `statements` that has instances in them.
    """
    import islpy

    names = Notation(nest)
    pairs = [
        _tiles(context, names, s, [schedule.of(s.name)[place] for place in places])
        for s in statements
    ]
    some = reduce(lambda one, other: one.union(other), (used for used, _ in pairs))
    full = reduce(lambda tiles, pair: tiles.subtract(pair[1]), pairs, some).coalesce()
    *outer, band = (f"c{at}" for at in range(len(places)))
    option = f"{{ [{', '.join((*outer, band))}] -> isolate[[{', '.join(outer)}] -> [{band}]] }}"
    return islpy.UnionSet.from_set(full.apply(islpy.Map.read_from_str(context, option)))


def _tiles(
    context: islpy.Context, names: Notation, statement: Statement, rows: Sequence[Row]
) -> tuple[islpy.Set, islpy.Set]:
    """Return the tiles with instances of `statement`, and the partial ones among them.

    A tile is a box in the loops that tiles cut, and has all of the others.
    """
    import islpy

    cut = {name for row in rows for value, _ in row.quotients for name in value.names}
    values = ", ".join(names.row(row, statement, "i") for row in rows)
    instance = names.instance(statement, "i")
    tiles = islpy.Map.read_from_str(context, f"{names.header}{{ {instance} -> [{values}] }}")
    domain = islpy.Set.read_from_str(
        context, f"{names.header}{{ {instance} : {names.domain(statement, 'i')} }}"
    )
    shadow = domain
    for place, loop in enumerate(statement.variables):
        if loop not in cut:
            shadow = shadow.eliminate(islpy.dim_type.set, place, 1)
    used = domain.apply(tiles)
    return used, used.intersect(tiles.subtract_domain(shadow).range())
