"""Tiles on one diagonal, which threads share: wavefronts.

    for t in a..b:                          for wave in low..high:
      for j in lo(t)..hi(t):         →        parallel for t in a..b:
        S(t, j)                                 j = wave - t
                                                if lo(t) <= j < hi(t): S(t, j)

    low, high = the least t + lo(t), the greatest t + hi(t)

ISL could generate loops over the sum itself, but takes minutes for their bounds where tiles are
skewed; the bounds of the tiles take no time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from codegen.build import add, and_, block, const, if_, le, lt, maximum, minimum, sub
from codegen.ir import Assign, Block, Declare, Expr, For, If, LoopKind, Stmt, Var
from codegen.tree import rewrite
from codegen.variables import substitute
from polyhedral.band_schedule import Row, Schedule, Tag


def by_tiles(schedule: Schedule) -> Schedule:
    """Return the schedule with a wave, the sum of the two loops over tiles, as the first row."""
    rows = tuple(
        (name, tuple(map(_tile_row, rows, (*rows[1:], None)))) for name, rows in schedule.rows
    )
    return replace(schedule, rows=rows)


def _tile_row(row: Row, following: Row | None) -> Row:
    if following is None or row.more != ((following.value, following.size),):
        return row
    return replace(row, more=(), tag=Tag.WAVE) if following.tag is Tag.PARALLEL else row


def along_diagonals(outer: For, fresh: Callable[[str], Var]) -> Stmt:
    """Return the loops `outer` and the one just inside it along their diagonals.

    They stay serial where they are no pair of unit steps.
    """
    inner, guard = _nested(outer.body)
    if inner is None or not inner.is_parallel or (outer.step, inner.step) != (1, 1):
        return rewrite(outer, _serial)  # the other loop over tiles has one iteration, or is split
    low, high, wave = fresh("low"), fresh("high"), fresh("wave")
    number = fresh(outer.var.name)
    least, most = (substitute(bound, {outer.var: number}) for bound in (inner.start, inner.stop))
    extremes = block(
        Assign(low, minimum(low, add(number, least))),
        Assign(high, maximum(high, add(number, most))),
    )
    bounds = For(
        number, outer.start, outer.stop, block(_where(guard, {outer.var: number}, extremes))
    )
    inside = and_(le(inner.start, inner.var), lt(inner.var, inner.stop))
    tile = block(
        Declare(inner.var, sub(wave, outer.var), constant=True),
        _where(guard, {}, block(if_(inside, inner.body))),
    )
    diagonal = replace(outer, body=tile, kind=LoopKind.PARALLEL)
    return block(
        Declare(low, const(2**62)),
        Declare(high, const(-(2**62))),
        bounds,
        For(wave, low, high, block(diagonal)),
    )


def _where(guard: Expr | None, values: dict[Var, Expr], body: Block) -> Stmt:
    return body if guard is None else if_(substitute(guard, values), body)


def _nested(body: Block) -> tuple[For | None, Expr | None]:
    """Return the one loop that is all of `body`, and the condition around it."""
    guard: Expr | None = None
    while len(body.body) == 1:
        (only,) = body.body
        match only:
            case For():
                return only, guard
            case If(condition, then, orelse) if guard is None and not orelse.body:
                guard, body = condition, then
            case Block():
                body = only
            case _:
                break
    return None, None


def _serial(node: Any) -> Any:
    parallel = isinstance(node, For) and node.is_parallel
    return replace(node, kind=LoopKind.SERIAL) if parallel else node
