"""Sums of threads kept apart: each piece of a loop adds to a copy of its own, and then all copies
are added up, in order.

    t = 0                                     team for piece in 0..pieces:
    for i …: t += …                             t_1 = 0
                                       ->       for i in edges[piece]..edges[piece + 1]: t_1 += …
                                                t_parts[piece] = t_1
                                              for piece in 0..pieces: t += t_parts[piece]

Pieces that do not depend on the number of threads give the same bits for any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    LoopKind,
    Role,
    Stmt,
    Storage,
    Store,
    Team,
    Var,
)
from codegen.types import INT64
from taco_py.concrete.nodes import Forall, Race, WorkspaceKind
from taco_py.concrete.tree import assignments, workspaces_of
from taco_py.levels import locate_strided
from taco_py.lower import workspaces
from taco_py.lower.environment import Environment, Scope, TensorArrays, WorkspaceArrays
from taco_py.lower.ranges import open_positions
from taco_py.lower.shares import THREADS_64, Shares, even
from taco_py.provenance.relations import Interval

SUMS, COPIES = 64, 8
"""Pieces of a sum to one number, and of one to a whole tensor, whatever the number of threads."""
GRAIN = 4096
"""Work that a piece is worth, in iterations."""

Lower = Callable[[Environment, Scope], Iterator[Stmt]]


@dataclass(frozen=True, slots=True)
class Apart:
    """How the pieces of one loop keep to themselves what they add to.

    env     where scalars and the result are the piece's own
    before  what stands before the team, `begin` and `end` around the work of a piece, `after` it
    """

    env: Environment
    before: tuple[Stmt, ...] = ()
    begin: tuple[Stmt, ...] = ()
    end: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()
    start: Expr | None = None


def lower_apart(env: Environment, forall: Forall, scope: Scope, lower: Lower) -> Iterator[Stmt]:
    """The loop `forall` with its sums kept apart; `lower` gives its code for a piece."""
    scope, positions = open_positions(env, scope, forall.index)
    yield from positions
    fresh = env.names.fresh
    piece, count = Var(fresh("piece")), Var(fresh("pieces"))
    shares = Shares(env, forall, scope)
    first, last = Var(fresh("first")), Var(fresh("last"))
    edges = Array(fresh("edges"), INT64, Storage.LOCAL)
    apart = _apart(env, forall, piece, count)
    inner = replace(scope, piece=(forall.index, Interval(first, last)))
    if apart.start is not None:
        inner = inner.at(env.target, -1, apart.start)
    yield Declare(count, _pieces(forall, shares, apart), constant=True)
    yield from shares.edges(edges, count, even)
    yield from apart.before
    body = build.block(
        Declare(first, build.load_index(edges, piece), constant=True),
        Declare(last, build.load_index(edges, build.add(piece, 1)), constant=True),
        *apart.begin,
        *lower(apart.env, inner),
        *apart.end,
    )
    yield Team(piece, count, Block(tuple(own_workspaces(env, forall))), body)
    yield from apart.after


def own_workspaces(env: Environment, forall: Forall) -> Iterator[Stmt]:
    """The allocations of the workspaces that are filled in the loop."""
    for workspace in workspaces_of(forall):
        yield from workspaces.allocate(env, env.workspaces[workspace.name])


def _pieces(forall: Forall, shares: Shares, apart: Apart) -> Expr:
    if forall.mode.parallel is Race.TEMPORARY:
        return THREADS_64
    most = SUMS if apart.start is None else COPIES
    return build.maximum(build.minimum(build.div(shares.total, GRAIN), most), 1)


def _apart(env: Environment, forall: Forall, piece: Var, count: Var) -> Apart:
    found = Apart(env)
    inside = {workspace.name for workspace in workspaces_of(forall)}
    for tensor in dict.fromkeys(a.target.tensor for a in assignments(forall.body)):
        if tensor == env.target.tensor:
            found = _with_result(found, piece, count)
        elif tensor not in inside:
            found = _with_scalar(found, env.workspaces[tensor], piece, count)
    return found


def _with_scalar(apart: Apart, arrays: WorkspaceArrays, piece: Var, count: Var) -> Apart:
    assert arrays.scalar is not None and arrays.workspace.kind is WorkspaceKind.SCALAR
    env, name = apart.env, arrays.workspace.name
    own = Var(env.names.fresh(arrays.scalar.name), arrays.element)
    parts = Array(env.names.fresh(f"{arrays.scalar.name}_parts"), arrays.element, Storage.LOCAL)
    other = Var(env.names.fresh("piece"))
    mine = {**env.workspaces, name: replace(arrays, scalar=own)}
    add = Assign(arrays.scalar, build.load(parts, other), "+", Role.VALUES)
    return replace(
        apart,
        env=replace(env, workspaces=mine),
        before=(*apart.before, Allocate(parts, count)),
        begin=(*apart.begin, Declare(own, build.zero(arrays.element), role=Role.VALUES)),
        end=(*apart.end, Store(parts, piece, own, role=Role.VALUES)),
        after=(*apart.after, For(other, build.const(0), count, build.block(add))),
    )


# ---------------------------------------------------------------- copies of the result


def _with_result(apart: Apart, piece: Var, count: Var) -> Apart:
    env = apart.env
    arrays = env.tensors[env.target.tensor]
    order = arrays.type.format.mode_order
    sizes = tuple(env.sizes[env.target.indices[mode]] for mode in order)
    copies = Array(
        env.names.fresh(f"{env.target.tensor}_copies"), arrays.values.element, Storage.LOCAL
    )
    size = Var(env.names.fresh(f"{env.target.tensor}_size"))
    strides = tuple(build.mul(*sizes[level + 1 :]) for level in range(len(sizes)))
    own = TensorArrays(arrays.type, copies, arrays.levels, strides)
    return replace(
        apart,
        env=replace(env, tensors={**env.tensors, env.target.tensor: own}),
        before=(
            *apart.before,
            Declare(size, build.mul(*sizes), constant=True),
            Allocate(copies, build.mul(size, count), zero=True),
        ),
        after=(*apart.after, _add_up(env, arrays, own, size, count)),
        start=build.mul(piece, size),
    )


def _add_up(
    env: Environment, arrays: TensorArrays, own: TensorArrays, size: Expr, count: Var
) -> Stmt:
    """Each element of the result with its copies added, in the order of the pieces."""
    fresh = env.names.fresh
    places = [
        Var(fresh(env.indices[env.target.indices[mode]].name))
        for mode in arrays.type.format.mode_order
    ]
    other = Var(fresh("piece"))
    here: Expr = build.const(0)
    there: Expr = build.mul(other, size)
    for level, place in enumerate(places):
        here = locate_strided(here, place, arrays.strides[level])
        there = locate_strided(there, place, own.strides[level])
    add = Store(arrays.values, here, build.load(own.values, there), "+", Role.VALUES)
    code: Stmt = For(other, build.const(0), count, build.block(add))
    for level in reversed(range(len(places))):
        extent = env.sizes[env.target.indices[arrays.type.format.mode_order[level]]]
        kind = LoopKind.SERIAL if level else LoopKind.PARALLEL
        code = For(places[level], build.const(0), extent, build.block(code), kind=kind)
    return code
