"""Rows that are hash tables with linear probing: a slot for each coordinate.

place = begin + (107 * j & room - 1)
while keys[place] != j && keys[place] != -1:
  place = begin + (place - begin + 1 & room - 1)

Threads of a block that fill a row together, with different coordinates at a time, swap -1 for a
coordinate atomically. The slot of a coordinate may differ from run to run, but not the order in
which values are added to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import (
    Array,
    Assign,
    AtomicFetch,
    Binary,
    Declare,
    Expr,
    For,
    If,
    LoopKind,
    Role,
    Stmt,
    Store,
    Var,
    While,
)
from taco_py.compiler.lower.environment import Environment, WorkspaceArrays
from taco_py.compiler.lower.numbers import number
from taco_py.language.diagnostics.errors import InternalError

SPREAD = 107
"""An odd factor, so that coordinates of a table as large as their range have different slots."""
FREE = -1


def into_hashed_row(
    env: Environment, arrays: WorkspaceArrays, keys: Array, value: Expr, op: str | None
) -> Iterator[Stmt]:
    """Yield `w[place] op= value`; a new coordinate is inserted with its initial value first."""
    if arrays.values is None or arrays.list is None or arrays.count is None:
        raise InternalError(f"The row workspace {arrays.workspace.name} is incomplete")
    coordinate = env.indices[arrays.workspace.indices[0]]
    place = Var(env.names.fresh(f"{arrays.workspace.name}_place"))
    key = build.cast(keys.element, coordinate)
    nothing = number(arrays.workspace.initial, arrays.element)
    begin = Store(arrays.values, place, nothing, role=Role.VALUES)
    if arrays.filled is not None:
        former = Var(env.names.fresh(f"{arrays.workspace.name}_found"), keys.element)
        slot = Var(env.names.fresh("slot"), arrays.filled.element)
        yield from _swap(env, arrays, keys, coordinate, place, former)
        one = build.const(1, slot.type)
        enter = build.block(
            AtomicFetch(slot, arrays.filled, build.const(0), one),
            Store(arrays.list, build.add(arrays.base, slot), key),
            begin,
        )
        yield If(build.eq(former, build.const(FREE, former.type)), enter)
    else:
        enter = build.block(
            Store(keys, place, key),
            Store(arrays.list, build.add(arrays.base, arrays.count), key),
            build.increment(arrays.count),
            begin,
        )
        yield from _find(arrays, keys, coordinate, place)
        yield If(build.eq(build.load_index(keys, place), FREE), enter)
    yield Store(arrays.values, place, value, op, Role.VALUES)


def rank(env: Environment, arrays: WorkspaceArrays, ranked: Array) -> Iterator[Stmt]:
    """Yield code that copies the values in the order of the list, from which they are read."""
    if arrays.values is None or arrays.keys is None or arrays.count is None or arrays.list is None:
        raise InternalError(f"The row workspace {arrays.workspace.name} is incomplete")
    name = arrays.workspace.name
    position, place = Var(env.names.fresh(f"p{name}")), Var(env.names.fresh(f"{name}_place"))
    coordinate = Var(env.names.fresh(f"{name}_at"))
    offset = build.add(arrays.base, position)
    body = build.block(
        Declare(coordinate, build.load_index(arrays.list, offset), constant=True),
        *_find(arrays, arrays.keys, coordinate, place),
        Store(ranked, offset, build.load(arrays.values, place), role=Role.VALUES),
    )
    kind = LoopKind.SERIAL if arrays.filled is None else LoopKind.THREADS
    yield For(position, build.const(0), arrays.count, body, kind=kind)


def _swap(
    env: Environment,
    arrays: WorkspaceArrays,
    keys: Array,
    coordinate: Expr,
    place: Var,
    former: Var,
) -> Iterator[Stmt]:
    """Yield `place` = the slot of a coordinate, inserted if new; `former` = the former content of
    the slot."""
    free, key = build.const(FREE, keys.element), Var(f"{former.name}_key", keys.element)
    first, next = _places(arrays, coordinate, place)
    first_swap, next_swap = (Var(env.names.fresh("seen"), keys.element) for _ in range(2))
    yield Declare(place, first)
    yield Declare(key, build.cast(keys.element, coordinate), constant=True)
    yield AtomicFetch(first_swap, keys, place, key, free)
    yield Declare(former, first_swap)
    yield While(
        build.and_(build.ne(former, key), build.ne(former, free)),
        build.block(
            Assign(place, next),
            AtomicFetch(next_swap, keys, place, key, free),
            Assign(former, next_swap),
        ),
    )


def _find(arrays: WorkspaceArrays, keys: Array, coordinate: Expr, place: Var) -> Iterator[Stmt]:
    """Yield `place` = the slot of a coordinate, or the free slot where it can be inserted."""
    key = build.load_index(keys, place)
    other = build.and_(build.ne(key, coordinate), build.ne(key, FREE))
    first, next = _places(arrays, coordinate, place)
    yield Declare(place, first)
    yield While(other, build.block(Assign(place, next)))


def _places(arrays: WorkspaceArrays, coordinate: Expr, place: Var) -> tuple[Expr, Expr]:
    """Return the first slot to search for a coordinate, and the next one after `place`."""
    last = build.sub(arrays.room, 1)
    first = Binary("&", build.mul(coordinate, SPREAD), last)
    next = Binary("&", build.add(build.sub(place, arrays.base), 1), last)
    return build.add(arrays.base, first), build.add(arrays.base, next)
