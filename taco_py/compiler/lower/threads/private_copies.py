"""What pieces of a loop add to apart: a copy for each piece, and all copies added up in the end.

    one number      t_parts[piece]
    a dense array   w_copies[piece*n ..+ n], at first what changes nothing: 0 in a sum
    a row           the same with marks and a list, and how long each list is
    the result      a dense array of those of its elements that the loops around leave

The copies are added in the order of the pieces, by the operator that the loop adds by. Where that
is min or max, ties, -0 and NaN are then those of a loop that is not shared.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Declare,
    Expr,
    Fill,
    For,
    LoopKind,
    Role,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.records import dataclass
from codegen.types import BOOL, INT64
from taco_py.compiler.concrete.nodes import APART, Forall, WorkspaceKind
from taco_py.compiler.concrete.tree import assignments, workspaces_of
from taco_py.compiler.levels import locate_strided
from taco_py.compiler.lower import dense_workspaces as dense
from taco_py.compiler.lower import workspaces
from taco_py.compiler.lower.environment import Environment, Scope, TensorArrays, WorkspaceArrays
from taco_py.compiler.lower.numbers import number
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.operators import Number, Operator

ZERO = build.const(0)


@dataclass(frozen=True, slots=True)
class Copies:
    """How the pieces of one loop keep to themselves what they add to.

    env     where what they add to is the piece's own
    scope   where the result's places are those in the piece's copy
    other   the number of a piece that is done
    large   whether there is more than one number to a copy
    before  what stands before the team, `begin` and `end` around the work of a piece, `after` it
    """

    env: Environment
    scope: Scope
    piece: Var
    count: Var
    other: Var
    large: bool = False
    before: tuple[Stmt, ...] = ()
    begin: tuple[Stmt, ...] = ()
    end: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()

    def local(self, name: str, array: Array | WorkspaceArrays) -> Array:
        """Return a new array of elements of the same type."""
        return Array(self.env.names.fresh(name), array.element, Storage.LOCAL)

    def emptied(self, parts: Array, size: Expr, nothing: Number) -> Copies:
        """Return the same with a new array of copies, each of `size` elements, which hold
        `nothing`."""
        total = build.mul(size, self.count)
        if nothing == 0:
            return replace(self, before=(*self.before, Allocate(parts, total, zero=True)))
        start = build.mul(self.piece, size)
        fill = Fill(parts, start, size, number(nothing, parts.element), Role.VALUES)
        before = (*self.before, Allocate(parts, total))
        return replace(self, before=before, begin=(*self.begin, fill))

    def with_workspace(self, own: WorkspaceArrays) -> Environment:
        return replace(self.env, workspaces={**self.env.workspaces, own.workspace.name: own})

    def each(self, *code: Stmt) -> For:
        """Return `code` for every piece."""
        return For(self.other, ZERO, self.count, build.block(*code))


def copies_for(env: Environment, scope: Scope, forall: Forall, piece: Var, count: Var) -> Copies:
    """Return copies of all that the loop `forall` adds to and that there is one of outside, if it
    is to have them."""
    found = Copies(env, scope, piece, count, Var(env.names.fresh("done")))
    if forall.mode.parallel not in APART:
        return found
    inside = {workspace.name for workspace in workspaces_of(forall)}
    operators = {a.target.tensor: a.operator for a in assignments(forall.body)}
    for tensor, operator in operators.items():
        if tensor == env.target.tensor:
            assert operator is not None  # which `apart_refusal` asks for
            found = _of_result(found, operator)
        elif tensor not in inside:
            found = _of_workspace(found, env.workspaces[tensor])
    return found


def _of_workspace(copies: Copies, arrays: WorkspaceArrays) -> Copies:
    match arrays.workspace.kind:
        case WorkspaceKind.SCALAR:
            return _of_scalar(copies, arrays)
        case WorkspaceKind.DENSE:
            return _of_array(copies, arrays)
        case WorkspaceKind.ROW | WorkspaceKind.MARKED:
            return _of_row(copies, arrays)
    raise InternalError(f"Copies of the hash table {arrays.workspace.name} were asked for")


def _of_scalar(copies: Copies, arrays: WorkspaceArrays) -> Copies:
    assert arrays.scalar is not None
    own = Var(copies.env.names.fresh(arrays.scalar.name), arrays.element)
    parts = copies.local(f"{arrays.scalar.name}_parts", arrays)
    operator = arrays.workspace.operator
    add = Assign(arrays.scalar, build.load(parts, copies.other), operator.c_operator, Role.VALUES)
    return replace(
        copies,
        env=copies.with_workspace(replace(arrays, scalar=own)),
        before=(*copies.before, Allocate(parts, copies.count)),
        begin=(*copies.begin, Declare(own, workspaces.initial(arrays), role=Role.VALUES)),
        end=(*copies.end, Store(parts, copies.piece, own, role=Role.VALUES)),
        after=(*copies.after, copies.each(add)),
    )


def _of_array(copies: Copies, arrays: WorkspaceArrays) -> Copies:
    assert arrays.values is not None
    env, name = copies.env, arrays.workspace.name
    parts = copies.local(f"{name}_copies", arrays)
    size, place = Var(env.names.fresh(f"{name}_size")), Var(env.names.fresh("place"))
    own = replace(arrays, values=parts, base=build.mul(copies.piece, size))
    value = build.load(parts, build.add(build.mul(copies.other, size), place))
    add = Store(arrays.values, place, value, arrays.workspace.operator.c_operator, Role.VALUES)
    sized = Declare(size, dense.size(env, arrays.workspace), constant=True)
    copies = replace(copies, before=(*copies.before, sized))
    return replace(
        copies.emptied(parts, size, arrays.workspace.initial),
        env=copies.with_workspace(own),
        large=True,
        after=(*copies.after, For(place, ZERO, size, build.block(copies.each(add)))),
    )


def _of_row(copies: Copies, arrays: WorkspaceArrays) -> Copies:
    assert arrays.values is not None and arrays.list is not None and arrays.count is not None
    env, name = copies.env, arrays.workspace.name
    index = arrays.workspace.indices[0]
    size = env.sizes[index]
    total = build.mul(size, copies.count)
    parts = copies.local(f"{name}_copies", arrays)
    marks = Array(env.names.fresh(f"{name}_copies_set"), BOOL, Storage.LOCAL)
    lists = copies.local(f"{name}_copies_list", arrays.list)
    lengths = Array(env.names.fresh(f"{name}_lengths"), INT64, Storage.LOCAL)
    length, place = Var(env.names.fresh(f"{name}_length")), Var(env.names.fresh("place"))
    begin = build.mul(copies.piece, size)
    own = replace(arrays, values=parts, marks=marks, list=lists, count=length, base=begin)
    first = build.mul(copies.other, size)
    coordinate = env.indices[index]
    value = build.load(parts, build.add(first, coordinate))
    met = For(
        place,
        ZERO,
        build.load_index(lengths, copies.other),
        build.block(
            Declare(coordinate, build.load_index(lists, build.add(first, place)), constant=True),
            *workspaces.into_row(env, arrays, value, arrays.workspace.operator.c_operator),
        ),
    )
    return replace(
        copies,
        env=copies.with_workspace(own),
        large=True,
        before=(
            *copies.before,
            Allocate(parts, total, zero=True),
            Allocate(marks, total, zero=True),
            Allocate(lists, total),
            Allocate(lengths, copies.count),
        ),
        begin=(*copies.begin, Declare(length, ZERO)),
        end=(*copies.end, Store(lengths, copies.piece, length)),
        after=(*copies.after, copies.each(met)),
    )


# ---------------------------------------------------------------- the result


def _of_result(copies: Copies, operator: Operator) -> Copies:
    """Return a copy has the elements that the loops around do not tell: a level whose index they do
    has the stride 0 in it."""
    env, target = copies.env, copies.env.target
    arrays = env.tensors[target.tensor]
    stored = arrays.type.format.stored(target.indices)
    open_ = tuple(index for index in stored if index not in copies.scope.bound)
    sizes = {index: env.sizes[index] for index in open_}
    strides = tuple(
        build.mul(*(sizes[i] for i in stored[level + 1 :] if i in sizes))
        if index in sizes
        else ZERO
        for level, index in enumerate(stored)
    )
    parts = copies.local(f"{target.tensor}_copies", arrays.values)
    own = TensorArrays(arrays.type, parts, arrays.levels, strides)
    size = Var(env.names.fresh(f"{target.tensor}_size"))
    start = build.mul(copies.piece, size)
    scope = copies.scope.at(target, -1, start)
    for level in range(len(stored)):
        if scope.position(target, level) is not None:
            scope = scope.at(target, level, start)
    sized = Declare(size, build.mul(*sizes.values()), constant=True)
    copies = replace(copies, before=(*copies.before, sized))
    nothing = operator.identity_of(np.dtype(arrays.type.dtype)) or 0
    return replace(
        copies.emptied(parts, size, nothing),
        env=replace(env, tensors={**env.tensors, target.tensor: own}),
        scope=scope,
        large=True,
        after=(*copies.after, _add_up(copies, arrays, own, size, operator)),
    )


def _add_up(
    copies: Copies, arrays: TensorArrays, own: TensorArrays, size: Expr, operator: Operator
) -> Stmt:
    """Return each element of the result with its copies added."""
    env, target = copies.env, copies.env.target
    loops: list[tuple[Var, Expr]] = []
    here: Expr = ZERO
    there: Expr = build.mul(copies.other, size)
    for level, mode in enumerate(arrays.type.format.mode_order):
        index = target.indices[mode]
        place = env.indices[index]
        if index not in copies.scope.bound:
            place = Var(env.names.fresh(place.name))
            loops.append((place, env.sizes[index]))
        here = locate_strided(here, place, arrays.strides[level])
        there = locate_strided(there, place, own.strides[level])
    value = build.load(own.values, there)
    add = Store(arrays.values, here, value, operator.c_operator, Role.VALUES)
    code: Stmt = copies.each(add)
    for place, extent in reversed(loops):
        kind = LoopKind.PARALLEL if place is loops[0][0] else LoopKind.SERIAL
        code = For(place, ZERO, extent, build.block(code), kind=kind)
    return code
