"""Workspaces in loop IR: memory, accumulation, and clearing after their consumer."""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import (
    Allocate,
    Assign,
    AtomicStore,
    ClearTable,
    Count,
    Declare,
    Expr,
    Fill,
    For,
    If,
    Insert,
    NewTable,
    Reserve,
    Role,
    Sort,
    SortTable,
    Stmt,
    Store,
    Var,
)
from codegen.types import BOOL
from taco_py.compiler.lower import dense_workspaces as dense
from taco_py.compiler.lower.environment import Environment, Scope, WorkspaceArrays
from taco_py.compiler.lower.hashed_rows import into_hashed_row, rank
from taco_py.compiler.lower.numbers import number
from taco_py.language.diagnostics.errors import InternalError


def allocate(env: Environment, arrays: WorkspaceArrays) -> Iterator[Stmt]:
    """Yield the allocation of a workspace: a row's arrays, all zero between uses, or an empty
    table."""
    if arrays.table is not None and arrays.values is not None:
        yield NewTable(arrays.table)
        yield Allocate(arrays.values, build.const(0))
    elif arrays.keys is not None or arrays.bound is not None:
        return  # tables of all pieces lie in common arrays, which are there already
    elif arrays.values is not None and arrays.marks is not None and arrays.list is not None:
        size = env.sizes[arrays.workspace.indices[0]]
        yield Allocate(arrays.values, size, zero=True)
        yield Allocate(arrays.marks, size, zero=True)
        yield Allocate(arrays.list, size)
    elif arrays.values is not None:
        yield Allocate(arrays.values, dense.room(env, arrays.workspace))


def begin(env: Environment, arrays: WorkspaceArrays) -> Iterator[Stmt]:
    """Yield code before the producer: the workspace is zeroed, unless all of it is overwritten."""
    if arrays.scalar is not None:
        yield Declare(arrays.scalar, initial(arrays), role=Role.VALUES)
        if arrays.present is not None:
            yield Declare(arrays.present, build.const(False))
    elif arrays.bound is not None:
        yield Declare(arrays.bound[0], build.const(0))
    elif arrays.count is not None:
        if arrays.filled is not None:
            yield Store(arrays.filled, build.const(0), build.const(0))
        else:
            yield Declare(arrays.count, build.const(0))
        if arrays.keys is not None:
            free = build.const(-1, arrays.keys.element)
            yield Fill(arrays.keys, arrays.base, arrays.room, free)
    elif arrays.table is not None:
        yield ClearTable(arrays.table)
    elif arrays.values is not None and arrays.workspace.zero:
        size = dense.size(env, arrays.workspace)
        yield Fill(arrays.values, build.const(0), size, initial(arrays), Role.VALUES)


def initial(arrays: WorkspaceArrays) -> Expr:
    """Return the initial value of each element of a workspace."""
    return number(arrays.workspace.initial, arrays.element)


def finish(env: Environment, arrays: WorkspaceArrays) -> Iterator[Stmt]:
    """Yield code between producer and consumer: it sorts the coordinates where their order
    matters."""
    if arrays.table is not None:
        yield SortTable(arrays.table)
    elif arrays.bound is not None:
        count, most = arrays.bound
        yield Assign(most, count, "max")
    elif arrays.list is not None and arrays.count is not None:
        start = arrays.base if arrays.keys is not None else build.const(0)
        by_threads = arrays.filled is not None and arrays.ranked is not None
        if arrays.filled is not None:
            yield Declare(arrays.count, build.load_index(arrays.filled, 0), constant=True)
        if arrays.workspace.ordered or by_threads:  # threads enter them in any order
            yield Sort(arrays.list, start, arrays.count, marks=arrays.marks)
        if arrays.ranked is not None:
            yield from rank(env, arrays, arrays.ranked)


def leave(env: Environment, arrays: WorkspaceArrays) -> Iterator[Stmt]:
    """Yield code after a consumer that reads a row more than once: it clears the row."""
    if arrays.list is None or arrays.marks is None or arrays.count is None:
        return
    if not arrays.workspace.reread or arrays.bound is not None:
        return
    place = Var(env.names.fresh(f"p{arrays.workspace.name}"))
    coordinate = Var(env.names.fresh(f"{arrays.workspace.name}_at"))
    at = Declare(coordinate, build.load_index(arrays.list, place), constant=True)
    body = build.block(at, *_zeros(arrays, coordinate))
    yield For(place, build.const(0), arrays.count, body)


def reset(arrays: WorkspaceArrays, coordinate: Expr) -> Iterator[Stmt]:
    """Yield code that clears a coordinate of a row after its consumer, unless it is read again."""
    if not arrays.workspace.reread and arrays.bound is None:
        yield from _zeros(arrays, coordinate)


def _zeros(arrays: WorkspaceArrays, coordinate: Expr) -> Iterator[Stmt]:
    if arrays.values is not None and arrays.marks is not None:
        yield Store(arrays.values, coordinate, build.zero(arrays.element), role=Role.VALUES)
        yield Store(arrays.marks, coordinate, build.zero(BOOL))


def accumulate(
    env: Environment, scope: Scope, arrays: WorkspaceArrays, value: Expr, op: str | None
) -> Iterator[Stmt]:
    """Yield `workspace op= value` at the current coordinates."""
    if arrays.stored is not None:
        yield Assign(arrays.stored.var, build.const(True), role=arrays.stored.role)
    elif arrays.bound is not None:
        yield build.increment(arrays.bound[0])
    elif arrays.scalar is not None:
        yield Assign(arrays.scalar, value, op, Role.VALUES)
        if arrays.present is not None and arrays.sets:
            yield Assign(arrays.present, build.const(True))
    elif arrays.table is not None:
        yield from _into_table(env, arrays, value, op)
    elif arrays.values is not None and arrays.list is None:
        place = build.add(arrays.base, dense.position(env, scope, arrays.workspace))
        if arrays.shared and op is not None:
            yield AtomicStore(arrays.values, place, value, op, Role.VALUES)
        else:
            yield Store(arrays.values, place, value, op, Role.VALUES)
    elif arrays.keys is not None:
        yield from into_hashed_row(env, arrays, arrays.keys, value, op)
    else:
        yield from into_row(env, arrays, value, op)


def into_row(
    env: Environment, arrays: WorkspaceArrays, value: Expr, op: str | None
) -> Iterator[Stmt]:
    """Yield `if (!set[j]) { set[j] = true; list[count++] = j; }  w[j] += value`.

    The branch is well predicted where coordinates repeat, which is where most of the work of a
    product is; storing to the list each time (`list[count] = j; count += !set[j]`) is up to
    twice as fast where every second coordinate is new, and up to twice as slow where few are.
    """
    if arrays.values is None or arrays.marks is None or arrays.list is None or arrays.count is None:
        raise InternalError(f"The row workspace {arrays.workspace.name} is incomplete")
    coordinate = env.indices[arrays.workspace.indices[0]]
    place, list_end = build.add(arrays.base, coordinate), build.add(arrays.base, arrays.count)
    fresh = build.not_(build.load(arrays.marks, place))
    enter = build.block(
        Store(arrays.marks, place, build.const(True, BOOL)),
        Store(arrays.list, list_end, build.cast(arrays.list.element, coordinate)),
        build.increment(arrays.count),
    )
    if op is None or arrays.workspace.initial == 0:
        yield If(fresh, enter)
        yield Store(arrays.values, place, value, op, Role.VALUES)
        return
    first = Store(arrays.values, place, value, None, Role.VALUES)
    accumulate = Store(arrays.values, place, value, op, Role.VALUES)
    yield If(fresh, build.block(enter, first), build.block(accumulate))


def _into_table(
    env: Environment, arrays: WorkspaceArrays, value: Expr, op: str | None
) -> Iterator[Stmt]:
    """Yield the insertion of the linearised coordinates; the first value is stored, later ones
    are added."""
    if arrays.table is None or arrays.values is None:
        raise InternalError(f"The hash workspace {arrays.workspace.name} is incomplete")
    entry = Var(env.names.fresh(f"{arrays.workspace.name}_entry"))
    before = Var(env.names.fresh(f"{arrays.workspace.name}_entries"))
    key: Expr = build.const(0)
    for index in arrays.workspace.indices:
        key = build.add(build.mul(key, env.sizes[index]), env.indices[index])
    yield Declare(before, Count(arrays.table), constant=True)
    yield Insert(arrays.table, key, entry)
    grow = Reserve(arrays.values, build.add(entry, 1), Role.VALUES)
    first = Store(arrays.values, entry, value, role=Role.VALUES)
    accumulate = Store(arrays.values, entry, value, op, Role.VALUES)
    new = build.eq(entry, before)
    yield If(new, build.block(grow, first), build.block(accumulate))
