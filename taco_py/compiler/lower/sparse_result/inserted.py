"""Assembly by insertion: the entries of a sparse result are counted, then written in place.

    counts[…] = the number of entries before each range of the outermost loop
    reserve all arrays                        once, in their final lengths
    team for piece in 0..pieces:
      pC2 = counts[piece]
      for i …: for j …: C2_crd[pC2] = j;  C_vals[pC2] = …;  pC2++
        C2_pos[i + 1] = pC2

No part of the result is copied, and no array grows: threads write to it side by side. (Gustavson
1978, Two fast algorithms for sparse matrices: the symbolic phase and the numeric one.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import (
    Allocate,
    Assign,
    Block,
    Declare,
    Expr,
    Reserve,
    Role,
    SetLength,
    Stmt,
    Store,
    Var,
)
from taco_py.compiler.concrete.nodes import Forall, Statement
from taco_py.compiler.levels import Compressed
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment, level_functions
from taco_py.compiler.lower.sparse_result.counted import counted, inserted
from taco_py.compiler.lower.sparse_result.result import ZERO, Result, make_result
from taco_py.compiler.lower.threads.teams import (
    Pieces,
    at,
    count,
    loops,
    next_to,
    numbers,
    running,
    share_out,
)
from taco_py.language.provenance.relations import Interval


def lower_inserted(
    env: Environment, statement: Statement, setup: tuple[Stmt, ...]
) -> Iterator[Stmt]:
    """Yield the code of a kernel whose sparse result is assembled by insertion.

    setup  the allocation of workspaces that are not private to threads
    """
    if env.graph.in_pieces and isinstance(statement, Forall):
        yield from _by_threads(env, statement)
        return
    full = make_result(env)
    totals = tuple(Var(env.names.fresh(f"{g.counter.name}_total")) for g in full.groups)
    sums = tuple(Assign(total, g.counter) for total, g in zip(totals, full.groups, strict=True))
    yield from setup
    yield from (Declare(total, ZERO) for total in totals)
    yield count(env, counted(full, None), statement, EMPTY_SCOPE, sums)
    yield from _room(full, totals)
    result = inserted(full, tuple(ZERO for _ in totals), Interval(ZERO, full.sizes[0]))
    yield Block(tuple(loops(env, result, statement, EMPTY_SCOPE)))


def _by_threads(env: Environment, forall: Forall) -> Iterator[Stmt]:
    pieces, before = share_out(env, forall)
    yield from before
    if pieces.extent is not None or pieces.result.groups[0].first == 0:
        yield from _in_full_rows(pieces)
    else:
        yield from _in_parts_of_rows(pieces)


def _in_full_rows(pieces: Pieces) -> Iterator[Stmt]:
    """Yield the code of pieces with disjoint coordinates of the outermost level."""
    yield from pieces.counting(None)
    yield from _room(pieces.result, pieces.totals)
    result = inserted(pieces.result, pieces.offsets, pieces.extent)
    yield pieces.team(*loops(pieces.env, result, pieces.forall, pieces.inner))


def _in_parts_of_rows(pieces: Pieces) -> Iterator[Stmt]:
    """Yield the code of pieces that may begin in the middle of a row."""
    env, fresh = pieces.env, pieces.env.names.fresh
    first, *rest = pieces.result.groups
    filled = Var(fresh(f"{first.counter.name}_filled"))
    cut = replace(first, filled=filled)
    full = replace(pieces.result, groups=(cut, *rest))
    reached = Var(fresh(f"{first.counter.name}_row"))
    rows = numbers(env, f"{reached.name}s")
    yield Allocate(rows, next_to(pieces.count))
    yield from pieces.counting(reached, Store(rows, next_to(pieces.piece), reached))
    yield from running(env, rows, pieces.count, "max")
    yield from _room(full, pieces.totals)
    result = inserted(full, pieces.offsets, segments_before=at(rows, pieces.piece))
    yield pieces.team(*loops(env, result, pieces.forall, pieces.inner))
    yield Declare(cut.counter, pieces.totals[0])
    yield Declare(filled, at(rows, pieces.count))
    yield from full.complete(cut, build.mul(*full.sizes[: cut.first]))


def _room(result: Result, totals: tuple[Expr, ...]) -> Iterator[Stmt]:
    """Yield the allocation and the final lengths of all arrays, and their first edges."""
    positions: Expr = build.const(1)
    for level, size in enumerate(result.sizes):
        group = result.group_of(level)
        if group is None:
            positions = build.mul(positions, size)
            continue
        functions = level_functions(result.arrays, level)
        total = totals[result.groups.index(group)]
        if isinstance(functions, Compressed) and level == group.first:
            pos = functions.pos
            yield Reserve(pos, build.add(positions, 1))
            yield SetLength(pos, build.add(positions, 1))
            yield Store(pos, ZERO, build.zero(pos.element))
            if level == 0:
                yield functions.append_edges(ZERO, total)
        positions = total
        yield SetLength(functions.crd, positions, limit=result.most_positions)
        yield Reserve(functions.crd, positions)
    yield Reserve(result.arrays.values, positions, Role.VALUES)
    yield SetLength(result.arrays.values, positions, Role.VALUES)
