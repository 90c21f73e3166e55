"""Rows as hash tables, each as large as what is added to it, for threads without own memory.

    parallel for i in 0..m:                   how much is added to the row of each piece
      for k …: for j …: bound += 1
      rooms[i + 1] = the power of 2 that is at least min(2 * bound, n)
    rooms[…] = where each table begins, and the length of them all
    for batch in 0..rooms[m] / PLACES + 1:    one, unless all tables take more memory than that
      parallel for i in 0..m:
        if rooms[i] / PLACES == batch:
          w_keys[rooms[i] - batch * PLACES ..] = -1
          for k …: for j …: find or enter j;  w[place] += A[i,k] * B[k,j]
          sort w_list;  w_ranked[…] = w[…]    where that is asked for

Additions come in the order of the loops, whatever threads do. (Nagasaka et al. 2017,
High-performance and memory-saving sparse general matrix-matrix multiplication for NVIDIA Pascal
GPU, section III.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Stmt,
    Storage,
    Store,
    Team,
    Var,
    While,
)
from codegen.passes.phases import without_values
from codegen.records import dataclass
from codegen.running_totals import running_totals
from codegen.types import INT64
from taco_py.concrete.nodes import Forall, Where, Workspace, WorkspaceKind
from taco_py.concrete.tree import read_in, walk, workspaces_of
from taco_py.lower.environment import Environment, WorkspaceArrays
from taco_py.lower.threads.value_ranges import own_workspaces

ZERO = build.const(0)

Loops = Callable[[Environment], Iterator[Stmt]]
"""The loops of a piece, in an environment."""


PLACES = 1 << 27
"""Places of the tables that there are at a time, but for one that is larger."""


@dataclass(frozen=True, slots=True)
class RowTables:
    """The tables of a loop's rows.

    env      where rows are tables
    before   what makes the memory that they lie in
    known    what each piece declares: where its tables begin, and how large they are
    mine     whether the piece at hand is one of the batch at hand
    batch    the number of that, of `batches`
    """

    env: Environment
    before: tuple[Stmt, ...] = ()
    known: tuple[Stmt, ...] = ()
    mine: Expr = build.const(True)
    batch: Var | None = None
    batches: Expr = build.const(1)

    def team(
        self, piece: Var, count: Expr, setup: Block, ends: tuple[Stmt, ...], work: tuple[Stmt, ...]
    ) -> Stmt:
        """The pieces, a batch at a time."""
        inside = build.if_(self.mine, Block((*ends, *self.known, *work)))
        team = Team(piece, count, setup, build.block(inside))
        if self.batch is None:
            return team
        return For(self.batch, ZERO, self.batches, Block((team,)))


def row_tables(
    env: Environment, forall: Forall, piece: Var, count: Var, ends: tuple[Stmt, ...], loops: Loops
) -> RowTables:
    """Tables for the rows that are filled in the pieces of `forall`.

    ends  declare where a piece begins and ends
    """
    rows = tuple(table_rows(forall))
    if not rows:
        return RowTables(env)
    fresh = env.names.fresh
    rooms = Array(fresh("rooms"), INT64, Storage.LOCAL)
    places, batch = Var(fresh("places")), Var(fresh("batch"))
    begin, room = Var(fresh("table")), Var(fresh("room"))
    most = Var(fresh("most"))
    counting = {
        row.name: replace(env.workspaces[row.name], bound=(Var(fresh(f"{row.name}_bound")), most))
        for row in rows
    }
    sizing = _team(_with(env, counting), forall, (piece, count), ends, loops, most)
    total, here = build.load(rooms, count), build.load(rooms, piece)
    longest = build.maximum(*(env.sizes[row.indices[0]] for row in rows))
    length = build.minimum(places, build.add(build.mul(longest, 2), PLACES))
    tables = {row.name: _table(env, env.workspaces[row.name], begin, room) for row in rows}
    before: tuple[Stmt, ...] = (
        Allocate(rooms, build.add(count, 1)),
        replace(sizing, body=Block((*sizing.body.body, *_room(rooms, piece, most, longest)))),
        running_totals(rooms, count),
        Declare(places, total, constant=True),
        *(Allocate(each, length) for table in tables.values() for each in _arrays(table)),
    )
    first = build.sub(here, build.mul(batch, PLACES))
    size = build.sub(build.load(rooms, build.add(piece, 1)), here)
    known = (Declare(begin, first, constant=True), Declare(room, size, constant=True))
    mine = build.eq(build.div(here, PLACES), batch)
    batches = build.add(build.div(places, PLACES), 1)
    return RowTables(_with(env, tables), before, known, mine, batch, batches)


def _team(
    env: Environment,
    forall: Forall,
    pieces: tuple[Var, Var],
    ends: tuple[Stmt, ...],
    loops: Loops,
    most: Var,
) -> Team:
    """The loops that count how much is added to the rows of a piece, at most."""
    code = without_values(Block(tuple(loops(env))))
    setup = build.block(*own_workspaces(env, forall))
    return Team(*pieces, setup, Block((*ends, Declare(most, ZERO), code)))


def _with(env: Environment, arrays: dict[str, WorkspaceArrays]) -> Environment:
    return replace(env, workspaces={**env.workspaces, **arrays})


def table_rows(forall: Forall) -> Iterator[Workspace]:
    """The rows whose producers read no other row, so that what is added to them can be counted."""
    rows = {w.name: w for w in workspaces_of(forall) if w.kind is WorkspaceKind.ROW}
    for part in walk(forall):
        if isinstance(part, Where) and part.workspace.name in rows:
            read = {access.tensor for access in read_in(part.producer)}
            if not read & set(rows):
                yield part.workspace


def _room(rooms: Array, piece: Var, most: Var, longest: Expr) -> Iterator[Stmt]:
    """A power of 2 for each piece: at most half of the places are taken, or each coordinate has a
    place of its own."""
    size = Var(f"{most.name}_places")
    enough = build.minimum(build.mul(most, 2), longest)
    more = build.and_(build.lt(ZERO, size), build.lt(size, enough))
    yield Declare(size, build.minimum(most, 1))
    yield While(more, build.block(Assign(size, build.mul(size, 2))))
    yield Store(rooms, build.add(piece, 1), size)


def _table(env: Environment, arrays: WorkspaceArrays, begin: Var, room: Var) -> WorkspaceArrays:
    """The arrays of a row as a table."""
    assert arrays.list is not None
    name, fresh = arrays.workspace.name, env.names.fresh
    keys = Array(fresh(f"{name}_keys"), arrays.list.element, Storage.LOCAL)
    ranked = Array(fresh(f"{name}_ranked"), arrays.element, Storage.LOCAL)
    return replace(arrays, marks=None, keys=keys, ranked=ranked, base=begin, room=room)


def _arrays(table: WorkspaceArrays) -> tuple[Array, ...]:
    found = (table.values, table.keys, table.list, table.ranked)
    return tuple(array for array in found if array is not None)
