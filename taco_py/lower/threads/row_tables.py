"""Rows as hash tables, each as large as what is added to it, for threads without own memory.

    parallel for i in 0..m:                   how much is added to the row of each piece
      for k …: for j …: bound += 1
      rooms[i + 1] = the power of 2 that is at least min(2 * bound, n)
    rooms[…] = where each table begins, and the length of them all
    parallel for i in 0..m:
      w_keys[rooms[i] ..] = -1
      for k …: for j …: find or enter j;  w[place] += A[i,k] * B[k,j]
      sort w_list;  w_ranked[…] = w[…]        where that is asked for

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


@dataclass(frozen=True, slots=True)
class RowTables:
    """The tables of a loop's rows.

    env     where rows are tables
    before  what makes the memory that they lie in
    known   what each piece declares: where its tables begin, and how large they are
    """

    env: Environment
    before: tuple[Stmt, ...] = ()
    known: tuple[Stmt, ...] = ()


def row_tables(
    env: Environment,
    forall: Forall,
    piece: Var,
    count: Var,
    ends: tuple[Stmt, ...],
    loops: Loops,
) -> RowTables:
    """Tables for the rows that are filled in the pieces of `forall`.

    ends  declare where a piece begins and ends
    """
    rows = tuple(table_rows(forall))
    if not rows:
        return RowTables(env)
    fresh = env.names.fresh
    bounds = {row.name: Var(fresh(f"{row.name}_bound")) for row in rows}
    rooms = {row.name: Array(fresh(f"{row.name}_rooms"), INT64, Storage.LOCAL) for row in rows}
    counting = _with(env, {n: replace(env.workspaces[n], bound=v) for n, v in bounds.items()})
    kept: list[Stmt] = []
    for row in rows:
        kept += _room(env, row, bounds[row.name], rooms[row.name], piece)
    code = without_values(Block(tuple(loops(counting))))
    work = (*(Declare(var, ZERO) for var in bounds.values()), code, *kept)
    before: list[Stmt] = [
        *(Allocate(array, build.add(count, 1)) for array in rooms.values()),
        Team(piece, count, build.block(*own_workspaces(counting, forall)), Block((*ends, *work))),
    ]
    known: list[Stmt] = []
    tables: dict[str, WorkspaceArrays] = {}
    for row in rows:
        begins = rooms[row.name]
        before += running_totals(env.names, begins, count)
        tables[row.name] = _table(env, env.workspaces[row.name], before, build.load(begins, count))
        begin, end = build.load(begins, piece), build.load(begins, build.add(piece, 1))
        arrays = tables[row.name]
        assert isinstance(arrays.base, Var) and isinstance(arrays.room, Var)
        known.append(Declare(arrays.base, begin, constant=True))
        known.append(Declare(arrays.room, build.sub(end, begin), constant=True))
    return RowTables(_with(env, tables), tuple(before), tuple(known))


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


def _room(env: Environment, row: Workspace, bound: Var, rooms: Array, piece: Var) -> Iterator[Stmt]:
    """A power of 2 for each piece: at most half of the places are taken, or each coordinate has a
    place of its own."""
    room, wanted = Var(env.names.fresh(f"{row.name}_room")), build.mul(bound, 2)
    enough = build.minimum(wanted, env.sizes[row.indices[0]])
    yield Declare(room, build.minimum(bound, 1))
    yield While(build.and_(build.lt(ZERO, room), build.lt(room, enough)), _doubled(room))
    yield Store(rooms, build.add(piece, 1), room)


def _doubled(room: Var) -> Block:
    return build.block(Assign(room, build.mul(room, 2)))


def _table(
    env: Environment, arrays: WorkspaceArrays, before: list[Stmt], total: Expr
) -> WorkspaceArrays:
    """The arrays of a row as a table, of which `before` allocates as many places as all have."""
    assert arrays.values is not None and arrays.list is not None
    name, fresh = arrays.workspace.name, env.names.fresh
    keys = Array(fresh(f"{name}_keys"), arrays.list.element, Storage.LOCAL)
    ranked = Array(fresh(f"{name}_ranked"), arrays.element, Storage.LOCAL)
    places = Var(fresh(f"{name}_places"))
    before.append(Declare(places, total, constant=True))
    before += (Allocate(each, places) for each in (arrays.values, keys, arrays.list, ranked))
    begin, room = Var(fresh(f"{name}_begin")), Var(fresh(f"{name}_room"))
    return replace(arrays, marks=None, keys=keys, ranked=ranked, base=begin, room=room)
