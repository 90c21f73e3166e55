"""Rows that are hash tables: a place for each coordinate, found by trying one after another.

place = begin + (107 * j & room - 1)
while keys[place] != j && keys[place] != -1:
  place = begin + (place - begin + 1 & room - 1)
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import Array, Assign, Binary, Declare, Expr, For, If, Role, Stmt, Store, Var, While
from taco_py.diagnostics.errors import InternalError
from taco_py.lower.environment import Environment, WorkspaceArrays
from taco_py.lower.numbers import number

SPREAD = 107
"""Odd, so that all coordinates of a table as large as their range have places of their own."""
FREE = -1


def into_hashed_row(
    env: Environment, arrays: WorkspaceArrays, keys: Array, value: Expr, op: str | None
) -> Iterator[Stmt]:
    """`w[place] op= value`; a new coordinate is entered, and begins with what changes nothing."""
    if arrays.values is None or arrays.list is None or arrays.count is None:
        raise InternalError(f"The row workspace {arrays.workspace.name} is incomplete")
    coordinate = env.indices[arrays.workspace.indices[0]]
    place = Var(env.names.fresh(f"{arrays.workspace.name}_place"))
    key = build.cast(keys.element, coordinate)
    nothing = number(arrays.workspace.initial, arrays.element)
    enter = build.block(
        Store(keys, place, key),
        Store(arrays.list, build.add(arrays.base, arrays.count), key),
        build.increment(arrays.count),
        Store(arrays.values, place, nothing, role=Role.VALUES),
    )
    yield from _find(arrays, keys, coordinate, place)
    yield If(build.eq(build.load_index(keys, place), FREE), enter)
    yield Store(arrays.values, place, value, op, Role.VALUES)


def rank(env: Environment, arrays: WorkspaceArrays, ranked: Array) -> Iterator[Stmt]:
    """The values in the order of the list, from which they are read."""
    if arrays.values is None or arrays.keys is None or arrays.count is None or arrays.list is None:
        raise InternalError(f"The row workspace {arrays.workspace.name} is incomplete")
    name = arrays.workspace.name
    each, place = Var(env.names.fresh(f"p{name}")), Var(env.names.fresh(f"{name}_place"))
    coordinate = Var(env.names.fresh(f"{name}_at"))
    here = build.add(arrays.base, each)
    body = build.block(
        Declare(coordinate, build.load_index(arrays.list, here), constant=True),
        *_find(arrays, arrays.keys, coordinate, place),
        Store(ranked, here, build.load(arrays.values, place), role=Role.VALUES),
    )
    yield For(each, build.const(0), arrays.count, body)


def _find(arrays: WorkspaceArrays, keys: Array, coordinate: Expr, place: Var) -> Iterator[Stmt]:
    """`place` = where a coordinate is, or where it can be entered."""
    last = build.sub(arrays.room, 1)
    here = build.load_index(keys, place)
    other = build.and_(build.ne(here, coordinate), build.ne(here, FREE))
    first = Binary("&", build.mul(coordinate, SPREAD), last)
    next = Binary("&", build.add(build.sub(place, arrays.base), 1), last)
    yield Declare(place, build.add(arrays.base, first))
    yield While(other, build.block(Assign(place, build.add(arrays.base, next))))
