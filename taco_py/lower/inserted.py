"""Assembly by insertion: the entries of a sparse result are counted, then written where they stay.

    team for piece in 0..pieces:              the loops with no values and nothing stored
      for i …: for j …: pC2++
      counts[piece + 1] = pC2
    counts[0] = 0;  counts[p] += counts[p - 1]
    reserve all arrays                        once, as long as they will be
    team for piece in 0..pieces:
      pC2 = counts[piece]
      for i …: for j …: C2_crd[pC2] = j;  C_vals[pC2] = …;  pC2++
        C2_pos[i + 1] = pC2

No part of the result is copied, and no array grows: threads write to it side by side. (Gustavson
1978, Two fast algorithms for sparse matrices: the symbolic phase and the numeric one.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Reserve,
    Role,
    SetLength,
    Stmt,
    Storage,
    Store,
    Team,
    Var,
)
from codegen.passes.phases import without_role
from codegen.types import INT64
from taco_py.concrete.nodes import Forall, Statement
from taco_py.levels import Compressed
from taco_py.lower.apart import own_workspaces
from taco_py.lower.environment import EMPTY_SCOPE, Environment, Scope, level_functions
from taco_py.lower.result import ZERO, Group, Result, make_result
from taco_py.lower.shares import SMALL, THREADS_64, Shares, coordinates_of, guided
from taco_py.lower.statements import Lowerer
from taco_py.provenance.relations import Interval

EMPTY = Interval(ZERO, ZERO)


@dataclass(frozen=True, slots=True)
class Counted(Result):
    """The result while its entries are counted: nothing is stored."""

    def prologue(self) -> Iterator[Stmt]:
        for group in self.groups:
            yield Declare(group.counter, ZERO)

    def epilogue(self) -> Iterator[Stmt]:
        yield from ()

    def enter(self, level: int, bound: Expr) -> Iterator[Stmt]:
        yield from ()

    def open(self, level: int, position: Expr) -> Iterator[Stmt]:
        below = self.group_below(level)
        if below is not None:
            yield Declare(below.start, below.counter)

    def close(self, level: int, position: Expr) -> Iterator[Stmt]:
        group, below = self.group_of(level), self.group_below(level)
        if group is None or group.last != level:
            return
        count = build.increment(group.counter)
        if below is None:
            yield count
        else:
            yield build.if_(build.lt(below.start, below.counter), build.block(count))


@dataclass(frozen=True, slots=True)
class Inserted(Result):
    """The result, or a range of its outermost level, written where there is room for it.

    extent  the coordinates of the outermost level
    starts  how many entries there are before them, a group each
    """

    extent: Interval = EMPTY
    starts: tuple[Expr, ...] = ()

    def prologue(self) -> Iterator[Stmt]:
        above = self._segments(self.extent.lo)
        for (group, segments), start in zip(above, self.starts, strict=True):
            yield Declare(group.counter, start)
            if group.filled is not None:
                yield Declare(group.filled, segments)

    def epilogue(self) -> Iterator[Stmt]:
        for group, segments in self._segments(self.extent.hi):
            yield from self._complete(group, segments)

    def enter(self, level: int, bound: Expr) -> Iterator[Stmt]:
        yield from ()

    def _segments(self, first: Expr) -> Iterator[tuple[Group, Expr]]:
        """Each group with how many positions above it come before the outermost `first`."""
        positions: Expr = build.const(1)
        for level, size in enumerate(self.sizes):
            group = self.group_of(level)
            if group is None:
                positions = build.mul(positions, size) if level else first
                continue
            if level == group.first:
                yield group, positions
            positions = group.counter


def lower_inserted(
    env: Environment, statement: Statement, setup: tuple[Stmt, ...]
) -> Iterator[Stmt]:
    """The code of a kernel whose sparse result is assembled by insertion.

    setup  the allocation of workspaces, where threads do not have their own
    """
    if env.graph.in_pieces and isinstance(statement, Forall):
        yield from _by_threads(env, statement)
        return
    whole = make_result(env)
    totals = tuple(Var(env.names.fresh(f"{g.counter.name}_total")) for g in whole.groups)
    kept = [Assign(total, g.counter) for total, g in zip(totals, whole.groups, strict=True)]
    yield from setup
    yield from (Declare(total, ZERO) for total in totals)
    yield Block((*_count(env, whole, statement, EMPTY_SCOPE), *kept))
    yield from _room(whole, totals)
    result = _inserted(whole, Interval(ZERO, whole.sizes[0]), tuple(ZERO for _ in totals))
    yield Block(tuple(_code(env, result, statement, EMPTY_SCOPE)))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Ranges of the outermost loop that threads take, `mine` being the one at hand."""

    env: Environment
    forall: Forall
    piece: Var
    count: Var
    edges: Array
    mine: Interval

    @property
    def scope(self) -> Scope:
        return replace(EMPTY_SCOPE, piece=(self.forall.index, self.mine))

    def team(self, *work: Stmt) -> Team:
        """Threads that do `work` for their pieces, each with workspaces of its own."""
        assert isinstance(self.mine.lo, Var) and isinstance(self.mine.hi, Var)
        behind = build.add(self.piece, 1)
        body = build.block(
            Declare(self.mine.lo, build.load_index(self.edges, self.piece), constant=True),
            Declare(self.mine.hi, build.load_index(self.edges, behind), constant=True),
            *work,
        )
        setup = build.block(*own_workspaces(self.env, self.forall))
        return Team(self.piece, self.count, setup, body)


def _pieces(env: Environment, forall: Forall) -> _Pieces:
    fresh = env.names.fresh
    mine = Interval(Var(fresh("first")), Var(fresh("last")))
    edges = Array(fresh("edges"), INT64, Storage.LOCAL)
    return _Pieces(env, forall, Var(fresh("piece")), Var(fresh("pieces")), edges, mine)


def _by_threads(env: Environment, forall: Forall) -> Iterator[Stmt]:
    pieces, whole, fresh = _pieces(env, forall), make_result(env), env.names.fresh
    counts = tuple(
        Array(fresh(f"{group.counter.name}_counts"), INT64, Storage.LOCAL) for group in whole.groups
    )
    behind = build.add(pieces.piece, 1)
    kept = [Store(c, behind, g.counter) for c, g in zip(counts, whole.groups, strict=True)]
    several = build.select(build.eq(THREADS_64, 1), 1, build.mul(THREADS_64, 1 + SMALL))
    yield Declare(pieces.count, several, constant=True)
    yield from Shares(env, forall).edges(pieces.edges, pieces.count, guided)
    yield from (Allocate(array, build.add(pieces.count, 1)) for array in counts)
    yield pieces.team(*_count(env, whole, forall, pieces.scope), *kept)
    for array in counts:
        yield from _sums(array, pieces.count, Var(fresh("piece")))
    yield from _room(whole, tuple(build.load_index(array, pieces.count) for array in counts))
    starts = tuple(build.load_index(array, pieces.piece) for array in counts)
    result = _inserted(whole, coordinates_of(env, forall.index, pieces.mine), starts)
    yield pieces.team(*_code(env, result, forall, pieces.scope))


def _sums(counts: Array, pieces: Var, piece: Var) -> Iterator[Stmt]:
    """In place of how many entries each piece has, how many come before it, and all at the end."""
    before = build.load_index(counts, build.sub(piece, 1))
    add = Store(counts, piece, before, "+")
    yield Store(counts, ZERO, ZERO)
    yield For(piece, build.const(1), build.add(pieces, 1), build.block(add))


# ---------------------------------------------------------------- the two phases


def _count(env: Environment, whole: Result, statement: Statement, scope: Scope) -> tuple[Stmt, ...]:
    """The loops of `statement` that count, which asks for no values and in no order."""
    rows = {
        name: replace(arrays, workspace=replace(arrays.workspace, ordered=False))
        for name, arrays in env.workspaces.items()
    }
    result = Counted(**_fields(whole))
    code = _code(replace(env, workspaces=rows), result, statement, scope)
    return without_role(Block(tuple(code)), Role.VALUES).body


def _inserted(whole: Result, extent: Interval, starts: tuple[Expr, ...]) -> Inserted:
    return Inserted(**_fields(whole), extent=extent, starts=starts)


def _fields(whole: Result) -> dict[str, Any]:
    return {each.name: getattr(whole, each.name) for each in fields(whole)}


def _code(env: Environment, result: Result, statement: Statement, scope: Scope) -> Iterator[Stmt]:
    yield from result.prologue()
    yield from Lowerer(env, result).statement(statement, scope)
    yield from result.epilogue()


def _room(whole: Result, totals: tuple[Expr, ...]) -> Iterator[Stmt]:
    """Room for exactly so many entries, the lengths of all arrays, and their first edges."""
    positions: Expr = build.const(1)
    for level, size in enumerate(whole.sizes):
        group = whole.group_of(level)
        if group is None:
            positions = build.mul(positions, size)
            continue
        functions = level_functions(whole.arrays, level)
        total = totals[whole.groups.index(group)]
        if isinstance(functions, Compressed) and level == group.first:
            pos = functions.pos
            yield Reserve(pos, build.add(positions, 1), Role.ASSEMBLY)
            yield SetLength(pos, build.add(positions, 1), Role.ASSEMBLY)
            yield Store(pos, ZERO, build.zero(pos.element), role=Role.ASSEMBLY)
            if level == 0:
                yield functions.append_edges(ZERO, total)
        positions = total
        yield SetLength(functions.crd, positions, Role.ASSEMBLY, whole.most_positions)
        yield Reserve(functions.crd, positions, Role.ASSEMBLY)
    yield Reserve(whole.arrays.values, positions, Role.VALUES)
    yield SetLength(whole.arrays.values, positions, Role.VALUES)
