"""Private copies of the targets of a loop: one for each piece, all added up in the end.

    one number      t_parts[piece]
    a dense array   w_copies[piece*n ..+ n], initially the identity: 0 in a sum
    a row           the same with marks and a list, and the length of each list
    the result      a dense array of the elements that the outer loops leave

The copies are added in the order of the pieces, by the operator that the loop adds by. Where that
is min or max, ties, -0 and NaN are then those of a serial loop.
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
from taco_py.compiler.concrete.nodes import PRIVATE_COPIES, Forall, WorkspaceKind
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
    """The private copies of the pieces of one loop.

    env     the environment in which targets are the piece's copies
    scope   the scope in which the result's positions are those in the piece's copy
    other   the number of a complete piece
    large   whether a copy has more than one number
    before  the code before the team; `begin` and `end` around the work of a piece, `after` the team
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
        """Return a new local array of elements of the same type."""
        return Array(self.env.names.fresh(name), array.element, Storage.LOCAL)

    def emptied(self, parts: Array, size: Expr, nothing: Number) -> Copies:
        """Return copies with a new array, `size` elements a copy, initialized with `nothing`."""
        total = build.mul(size, self.count)
        if nothing == 0:
            return replace(self, before=(*self.before, Allocate(parts, total, zero=True)))
        start = build.mul(self.piece, size)
        fill = Fill(parts, start, size, number(nothing, parts.element), Role.VALUES)
        before = (*self.before, Allocate(parts, total))
        return replace(self, before=before, begin=(*self.begin, fill))

    def with_workspace(self, private: WorkspaceArrays) -> Environment:
        return replace(
            self.env, workspaces={**self.env.workspaces, private.workspace.name: private}
        )

    def for_each(self, *code: Stmt) -> For:
        """Return a loop of `code` over all pieces."""
        return For(self.other, ZERO, self.count, build.block(*code))


def copies_for(env: Environment, scope: Scope, forall: Forall, piece: Var, count: Var) -> Copies:
    """Return private copies of all targets outside of the loop `forall`, where it needs them."""
    copies = Copies(env, scope, piece, count, Var(env.names.fresh("done")))
    if forall.mode.parallel not in PRIVATE_COPIES:
        return copies
    inside = {workspace.name for workspace in workspaces_of(forall)}
    operators = {a.target.tensor: a.operator for a in assignments(forall.body)}
    for tensor, operator in operators.items():
        if tensor == env.target.tensor:
            assert operator is not None  # which `private_copies_refusal` asks for
            copies = _of_result(copies, operator)
        elif tensor not in inside:
            copies = _of_workspace(copies, env.workspaces[tensor])
    return copies


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
    private = Var(copies.env.names.fresh(arrays.scalar.name), arrays.element)
    parts = copies.local(f"{arrays.scalar.name}_parts", arrays)
    operator = arrays.workspace.operator
    add = Assign(arrays.scalar, build.load(parts, copies.other), operator.c_operator, Role.VALUES)
    return replace(
        copies,
        env=copies.with_workspace(replace(arrays, scalar=private)),
        before=(*copies.before, Allocate(parts, copies.count)),
        begin=(*copies.begin, Declare(private, workspaces.initial(arrays), role=Role.VALUES)),
        end=(*copies.end, Store(parts, copies.piece, private, role=Role.VALUES)),
        after=(*copies.after, copies.for_each(add)),
    )


def _of_array(copies: Copies, arrays: WorkspaceArrays) -> Copies:
    assert arrays.values is not None
    env, name = copies.env, arrays.workspace.name
    parts = copies.local(f"{name}_copies", arrays)
    size, place = Var(env.names.fresh(f"{name}_size")), Var(env.names.fresh("place"))
    private = replace(arrays, values=parts, base=build.mul(copies.piece, size))
    value = build.load(parts, build.add(build.mul(copies.other, size), place))
    add = Store(arrays.values, place, value, arrays.workspace.operator.c_operator, Role.VALUES)
    sized = Declare(size, dense.size(env, arrays.workspace), constant=True)
    copies = replace(copies, before=(*copies.before, sized))
    return replace(
        copies.emptied(parts, size, arrays.workspace.initial),
        env=copies.with_workspace(private),
        large=True,
        after=(*copies.after, For(place, ZERO, size, build.block(copies.for_each(add)))),
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
    private = replace(arrays, values=parts, marks=marks, list=lists, count=length, base=begin)
    first = build.mul(copies.other, size)
    coordinate = env.indices[index]
    value = build.load(parts, build.add(first, coordinate))
    entries = For(
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
        env=copies.with_workspace(private),
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
        after=(*copies.after, copies.for_each(entries)),
    )


# ---------------------------------------------------------------- the result


def _of_result(copies: Copies, operator: Operator) -> Copies:
    """Return copies of the elements that the outer loops do not fix.

    A level whose index is fixed has the stride 0 in a copy.
    """
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
    private = TensorArrays(arrays.type, parts, arrays.levels, strides)
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
        env=replace(env, tensors={**env.tensors, target.tensor: private}),
        scope=scope,
        large=True,
        after=(*copies.after, _add_up(copies, arrays, private, size, operator)),
    )


def _add_up(
    copies: Copies, arrays: TensorArrays, private: TensorArrays, size: Expr, operator: Operator
) -> Stmt:
    """Return loops that add the copies to each element of the result."""
    env, target = copies.env, copies.env.target
    loops: list[tuple[Var, Expr]] = []
    position: Expr = ZERO
    copy_position: Expr = build.mul(copies.other, size)
    for level, mode in enumerate(arrays.type.format.mode_order):
        index = target.indices[mode]
        place = env.indices[index]
        if index not in copies.scope.bound:
            place = Var(env.names.fresh(place.name))
            loops.append((place, env.sizes[index]))
        position = locate_strided(position, place, arrays.strides[level])
        copy_position = locate_strided(copy_position, place, private.strides[level])
    value = build.load(private.values, copy_position)
    add = Store(arrays.values, position, value, operator.c_operator, Role.VALUES)
    code: Stmt = copies.for_each(add)
    for place, extent in reversed(loops):
        kind = LoopKind.PARALLEL if place is loops[0][0] else LoopKind.SERIAL
        code = For(place, ZERO, extent, build.block(code), kind=kind)
    return code
