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
from dataclasses import dataclass, replace
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
from codegen.tree import fixpoint, rewrite
from codegen.types import INT64
from codegen.variables import count_reads
from taco_py.concrete.nodes import Forall, Statement
from taco_py.levels import Compressed
from taco_py.lower.apart import own_workspaces
from taco_py.lower.counted import Counted, counted, inserted
from taco_py.lower.environment import EMPTY_SCOPE, Environment, Scope, level_functions
from taco_py.lower.ranges import open_positions
from taco_py.lower.result import ZERO, Result, make_result
from taco_py.lower.shares import SMALL, THREADS_64, Shares, coordinates_of, guided
from taco_py.lower.statements import Lowerer
from taco_py.provenance.relations import Interval


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
    kept = tuple(Assign(total, g.counter) for total, g in zip(totals, whole.groups, strict=True))
    yield from setup
    yield from (Declare(total, ZERO) for total in totals)
    yield _count(env, counted(whole, None), statement, EMPTY_SCOPE, kept)
    yield from _room(whole, totals)
    result = inserted(whole, tuple(ZERO for _ in totals), Interval(ZERO, whole.sizes[0]))
    yield Block(tuple(_code(env, result, statement, EMPTY_SCOPE)))


# ---------------------------------------------------------------- threads


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Ranges of the outermost loop that threads take, one of them at a time.

    edges   where each begins, and the last one ends
    first   the values of the loop's variable in the one at hand: from here to below `last`
    starts  for each group, how many entries come before each, and how many there are
    """

    env: Environment
    forall: Forall
    whole: Result
    scope: Scope
    piece: Var
    count: Var
    edges: Array
    first: Var
    last: Var
    starts: tuple[Array, ...]

    @property
    def mine(self) -> Interval:
        return Interval(self.first, self.last)

    @property
    def inner(self) -> Scope:
        return replace(self.scope, piece=(self.forall.index, self.mine))

    @property
    def totals(self) -> tuple[Expr, ...]:
        return tuple(_at(array, self.count) for array in self.starts)

    def team(self, *work: Stmt) -> Team:
        """Threads that do `work` for their pieces, each with workspaces of its own."""
        edges = ((self.first, self.piece), (self.last, _behind(self.piece)))
        known = [Declare(v, _at(self.edges, k), constant=True) for v, k in edges]
        setup = build.block(*own_workspaces(self.env, self.forall))
        return Team(self.piece, self.count, setup, build.block(*known, *work))


def _by_threads(env: Environment, forall: Forall) -> Iterator[Stmt]:
    scope, before = open_positions(env, EMPTY_SCOPE, forall.index)
    pieces = _pieces(env, forall, scope)
    several = build.select(build.eq(THREADS_64, 1), 1, build.mul(THREADS_64, 1 + SMALL))
    yield from before
    yield Declare(pieces.count, several, constant=True)
    yield from Shares(env, forall, scope).edges(pieces.edges, pieces.count, guided)
    yield from (Allocate(array, _behind(pieces.count)) for array in pieces.starts)
    if env.provenance.counts_ranges(forall.index) or pieces.whole.groups[0].first == 0:
        yield from _in_whole_rows(pieces)
    else:
        yield from _in_parts_of_rows(pieces)


def _pieces(env: Environment, forall: Forall, scope: Scope) -> _Pieces:
    fresh = env.names.fresh
    whole = make_result(env)
    edges = Array(fresh("edges"), INT64, Storage.LOCAL)
    starts = tuple(_numbers(env, f"{group.counter.name}_counts") for group in whole.groups)
    piece, count = Var(fresh("piece")), Var(fresh("pieces"))
    first, last = Var(fresh("first")), Var(fresh("last"))
    return _Pieces(env, forall, whole, scope, piece, count, edges, first, last, starts)


def _in_whole_rows(pieces: _Pieces) -> Iterator[Stmt]:
    """Each piece has coordinates of the outermost level that no other has."""
    env, forall, whole = pieces.env, pieces.forall, pieces.whole
    yield pieces.team(_count(env, counted(whole, None), forall, pieces.inner, tuple(_kept(pieces))))
    yield from _sums(pieces)
    yield from _room(whole, pieces.totals)
    starts = tuple(_at(array, pieces.piece) for array in pieces.starts)
    ranges = env.provenance.counts_ranges(forall.index)
    extent = coordinates_of(env, forall.index, pieces.mine) if ranges else None
    result = inserted(whole, starts, extent)
    yield pieces.team(*_code(env, result, forall, pieces.inner))


def _in_parts_of_rows(pieces: _Pieces) -> Iterator[Stmt]:
    """A piece may begin in the middle of a row, or of what else lies above the first group."""
    env, forall, fresh = pieces.env, pieces.forall, pieces.env.names.fresh
    first, *others = pieces.whole.groups
    filled = Var(fresh(f"{first.counter.name}_filled"))
    cut = replace(first, filled=filled)
    whole = replace(pieces.whole, groups=(cut, *others))
    reached = Var(fresh(f"{first.counter.name}_row"))
    rows = _numbers(env, f"{reached.name}s")
    yield Allocate(rows, _behind(pieces.count))
    kept = (*_kept(pieces), Store(rows, _behind(pieces.piece), reached))
    yield pieces.team(_count(env, counted(whole, reached), forall, pieces.inner, kept))
    yield from _sums(pieces)
    yield from _running(env, rows, pieces.count, "max")
    yield from _room(whole, pieces.totals)
    starts = tuple(_at(array, pieces.piece) for array in pieces.starts)
    result = inserted(whole, starts, begun=_at(rows, pieces.piece))
    yield pieces.team(*_code(env, result, forall, pieces.inner))
    yield Declare(cut.counter, pieces.totals[0])
    yield Declare(filled, _at(rows, pieces.count))
    yield from whole.complete(cut, build.mul(*whole.sizes[: cut.first]))


def _kept(pieces: _Pieces) -> Iterator[Stmt]:
    """How many entries the piece at hand has."""
    for array, group in zip(pieces.starts, pieces.whole.groups, strict=True):
        yield Store(array, _behind(pieces.piece), group.counter)


def _sums(pieces: _Pieces) -> Iterator[Stmt]:
    """In place of how many entries each piece has, how many come before it."""
    for array in pieces.starts:
        yield from _running(pieces.env, array, pieces.count, "+")


def _running(env: Environment, numbers: Array, count: Expr, op: str) -> Iterator[Stmt]:
    """Each of the numbers, of which the first is 0, with all before it."""
    place = Var(env.names.fresh("piece"))
    add = Store(numbers, place, _at(numbers, build.sub(place, 1)), op)
    yield Store(numbers, ZERO, ZERO)
    yield For(place, build.const(1), _behind(count), build.block(add))


def _numbers(env: Environment, name: str) -> Array:
    return Array(env.names.fresh(name), INT64, Storage.LOCAL)


def _at(array: Array, place: Expr) -> Expr:
    return build.load_index(array, place)


def _behind(place: Expr) -> Expr:
    return build.add(place, 1)


# ---------------------------------------------------------------- the two phases


def _count(
    env: Environment, result: Counted, statement: Statement, scope: Scope, kept: tuple[Stmt, ...]
) -> Block:
    """The loops of `statement` that count, which asks for no values and in no order; then `kept`,
    what becomes of the numbers."""
    rows = {
        name: replace(arrays, workspace=replace(arrays.workspace, ordered=False))
        for name, arrays in env.workspaces.items()
    }
    code = (*_code(replace(env, workspaces=rows), result, statement, scope), *kept)
    return fixpoint(without_role(Block(code), Role.VALUES), _without_unread)


def _without_unread(code: Block) -> Block:
    """`code` without positions that were for values alone."""
    reads = count_reads(code)

    def is_read(stmt: Stmt) -> bool:
        return not isinstance(stmt, Declare) or reads[stmt.var] > 0

    def reduced(node: Any) -> Any:
        if not isinstance(node, Block) or all(map(is_read, node.body)):
            return node
        return Block(tuple(filter(is_read, node.body)))

    return rewrite(code, reduced)


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
