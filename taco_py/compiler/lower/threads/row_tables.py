"""Rows as hash tables, each as large as its additions require, for threads without private memory.

    parallel for i in 0..m:                   the number of additions to each piece's row
      for k …: for j …: bound += 1
      rooms[i + 1] = the power of 2 that is at least min(2 * bound, n)
    rooms[…] = the begin of each table, and the length of all
    for batch in 0..rooms[m] / PLACES + 1:    one, unless all tables take more memory than that
      parallel for i in 0..m:
        if rooms[i] / PLACES == batch:
          w_keys[rooms[i] - batch * PLACES ..] = -1
          for k …: for j …: find or enter j;  w[place] += A[i,k] * B[k,j]
          sort w_list;  w_ranked[…] = w[…]    where the order matters

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
from taco_py.compiler.concrete.nodes import Forall, Where, Workspace, WorkspaceKind
from taco_py.compiler.concrete.tree import read_in, walk, workspaces_of
from taco_py.compiler.iteration.units_share import rows_in_blocks
from taco_py.compiler.lower.environment import Environment, WorkspaceArrays
from taco_py.compiler.lower.threads.row_classes import (
    RowClasses,
    arrays_of_table,
    in_blocks,
    row_classes,
)
from taco_py.compiler.lower.threads.value_ranges import private_workspaces

ZERO = build.const(0)

Loops = Callable[[Environment], Iterator[Stmt]]
"""The loops of a piece, in an environment."""


PLACES = 1 << 27
"""Slots of the tables of a batch, unless a single table is larger."""


@dataclass(frozen=True, slots=True)
class RowTables:
    """The tables of a loop's rows.

    env      the environment in which rows are tables
    before   the allocation of their memory
    declared  the declarations of each piece: the begin and the size of its tables
    mine     whether the current piece is in the current batch
    batch    the number of that batch, one of `batches`
    classes  rows by size, where blocks fill them
    """

    env: Environment
    before: tuple[Stmt, ...] = ()
    declared: tuple[Stmt, ...] = ()
    mine: Expr = build.const(True)
    batch: Var | None = None
    batches: Expr = build.const(1)
    classes: RowClasses | None = None

    def team(
        self, piece: Var, count: Expr, setup: Block, ends: tuple[Stmt, ...], work: tuple[Stmt, ...]
    ) -> Stmt:
        """Return the loop over pieces, a batch at a time."""
        if self.classes is not None:
            large = self.classes.blocks(piece, count, (*ends, *self.declared, *work), self.mine)
            assert self.batch is not None
            batches = For(self.batch, ZERO, self.batches, Block((large,)))
            return Block((*self.classes.shared(piece, count, ends, work), batches))
        inside = build.if_(self.mine, Block((*ends, *self.declared, *work)))
        team = Team(piece, count, setup, build.block(inside))
        if self.batch is None:
            return team
        return For(self.batch, ZERO, self.batches, Block((team,)))


def row_tables(
    env: Environment, forall: Forall, piece: Var, count: Var, ends: tuple[Stmt, ...], loops: Loops
) -> RowTables:
    """Return tables for the rows that are filled in the pieces of `forall`.

    ends  declarations of the begin and the end of a piece
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
    total, table_begin = build.load(rooms, count), build.load(rooms, piece)
    longest = build.maximum(*(env.sizes[row.indices[0]] for row in rows))
    length = build.minimum(places, build.add(build.mul(longest, 2), PLACES))
    tables = {row.name: _table(env, env.workspaces[row.name], begin, room) for row in rows}
    classes = None
    if rows_in_blocks(env.graph):
        tables = {name: in_blocks(env.names, table) for name, table in tables.items()}
        classes = row_classes(env.names, tuple(tables.values()), begin, room)
    size = Var(f"{most.name}_places")
    stores = _store_sizes(rooms, piece, size, classes)
    before: tuple[Stmt, ...] = (
        Allocate(rooms, build.add(count, 1)),
        *(() if classes is None else (Allocate(classes.sizes, count),)),
        replace(sizing, body=Block((*sizing.body.body, *_room(size, most, longest), *stores))),
        running_totals(rooms, count),
        Declare(places, total, constant=True),
        *(Allocate(array, length) for table in tables.values() for array in arrays_of_table(table)),
    )
    first = build.sub(table_begin, build.mul(batch, PLACES))
    declared = (
        Declare(begin, first, constant=True),
        Declare(room, size_of(rooms, piece), constant=True),
    )
    mine = build.eq(build.div(table_begin, PLACES), batch)
    batches = build.add(build.div(places, PLACES), 1)
    if classes is not None:
        mine = build.and_(mine, build.lt(0, size_of(rooms, piece)))
        batches = build.div(build.add(places, PLACES - 1), PLACES)
    return RowTables(_with(env, tables), before, declared, mine, batch, batches, classes)


def size_of(rooms: Array, piece: Var) -> Expr:
    """Return the number of slots of a piece's tables in global memory."""
    return build.sub(build.load(rooms, build.add(piece, 1)), build.load(rooms, piece))


def _team(
    env: Environment,
    forall: Forall,
    pieces: tuple[Var, Var],
    ends: tuple[Stmt, ...],
    loops: Loops,
    most: Var,
) -> Team:
    """Return the loops that count the most additions to the rows of a piece."""
    code = without_values(Block(tuple(loops(env))))
    setup = build.block(*private_workspaces(env, forall))
    return Team(*pieces, setup, Block((*ends, Declare(most, ZERO), code)))


def _with(env: Environment, arrays: dict[str, WorkspaceArrays]) -> Environment:
    return replace(env, workspaces={**env.workspaces, **arrays})


def table_rows(forall: Forall) -> Iterator[Workspace]:
    """Yield the rows whose producers read no other row, so that their additions can be counted."""
    rows = {w.name: w for w in workspaces_of(forall) if w.kind is WorkspaceKind.ROW}
    for part in walk(forall):
        if isinstance(part, Where) and part.workspace.name in rows:
            read = {access.tensor for access in read_in(part.producer)}
            if not read & set(rows):
                yield part.workspace


def _room(size: Var, most: Var, longest: Expr) -> Iterator[Stmt]:
    """Yield the size of each piece's tables: a power of 2.

    At most half of the slots are used, or each coordinate has a slot.
    """
    enough = build.minimum(build.mul(most, 2), longest)
    more = build.and_(build.lt(ZERO, size), build.lt(size, enough))
    yield Declare(size, build.minimum(most, 1))
    yield While(more, build.block(Assign(size, build.mul(size, 2))))


def _store_sizes(rooms: Array, piece: Var, size: Var, classes: RowClasses | None) -> Iterator[Stmt]:
    """Yield code that stores the number of slots of a piece's tables, and of those in global
    memory."""
    if classes is None:
        yield Store(rooms, build.add(piece, 1), size)
        return
    yield Store(classes.sizes, piece, size)
    yield Store(rooms, build.add(piece, 1), classes.large(size))


def _table(env: Environment, arrays: WorkspaceArrays, begin: Var, room: Var) -> WorkspaceArrays:
    """Return the arrays of a row as a table."""
    assert arrays.list is not None
    name, fresh = arrays.workspace.name, env.names.fresh
    keys = Array(fresh(f"{name}_keys"), arrays.list.element, Storage.LOCAL)
    ranked = Array(fresh(f"{name}_ranked"), arrays.element, Storage.LOCAL)
    return replace(arrays, marks=None, keys=keys, ranked=ranked, base=begin, room=room)
