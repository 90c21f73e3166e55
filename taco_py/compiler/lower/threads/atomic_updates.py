"""Updates of the result by several threads at once.

Threads that share an operand's entries in ranges, in order, update the same rows only where a range
begins or ends within a row:

    if i is the first or the last row of the tile:  atomic y[i] += t
    else:                                           y[i] += t

A scalar that is summed outside of the loop is in memory while threads add to it:

    t_sum[0] = 0;  in parallel for j …:  atomic t_sum[0] += …;  t += t_sum[0]

Where the bits of the result may not depend on the threads, the sums of these rows are carried over:
they are stored for each tile, and added in the tiles' order after all tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import (
    FALSE,
    TRUE,
    Allocate,
    Array,
    Assign,
    AtomicStore,
    Declare,
    Expr,
    For,
    If,
    Role,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.types import INT64
from taco_py.compiler.concrete import nodes
from taco_py.compiler.concrete.nodes import Forall, Where
from taco_py.compiler.concrete.tree import assignments, workspaces_of
from taco_py.compiler.iteration.units_share import updates_words
from taco_py.compiler.lower.environment import Carry, Environment, Scope
from taco_py.compiler.lower.ranges import Ranges, chain, open_positions
from taco_py.compiler.lower.workspaces import initial
from taco_py.language.notation.nodes import Access
from taco_py.language.provenance.relations import Pos

Lower = Callable[[Environment, Scope], Iterator[Stmt]]


def lower_atomic(env: Environment, forall: Forall, scope: Scope, lower: Lower) -> Iterator[Stmt]:
    """Yield the loop `forall`, whose iterations add to workspaces and results outside of it.

    `lower` gives its code.
    """
    inside = {workspace.name for workspace in workspaces_of(forall)}
    targets = dict.fromkeys(a.target.tensor for a in assignments(forall.body))
    workspaces = dict(env.workspaces)
    after: list[Stmt] = []
    for name in (name for name in targets if name in workspaces and name not in inside):
        arrays = env.workspaces[name]
        if arrays.scalar is not None and forall.mode.unit in nodes.INSIDE_BLOCKS:
            continue  # what units of a block add up is reduced
        workspaces[name] = replace(arrays, shared=True)
        if arrays.scalar is not None:
            cell = Array(env.names.fresh(f"{name}_sum"), arrays.element, Storage.LOCAL)
            workspaces[name] = replace(arrays, scalar=None, values=cell, shared=True)
            yield Allocate(cell, build.const(1))
            yield Store(cell, build.const(0), initial(arrays), role=Role.VALUES)
            total, operator = build.load(cell, build.const(0)), arrays.workspace.operator
            after.append(Assign(arrays.scalar, total, operator.c_operator, Role.VALUES))
    yield from lower(replace(env, workspaces=workspaces), replace(scope, atomic=forall.index))
    yield from after


def add_atomically(
    env: Environment, scope: Scope, shared: str, update: AtomicStore
) -> Iterator[Stmt]:
    """Yield `update` inside a loop over `shared`; as a plain store where no other thread writes.

    Other threads may write the same element, or one that the hardware updates along with it.
    """
    if scope.single:
        yield replace(update, meets=_neighbours_meet(env, scope))
        return
    if updates_words(env.graph):
        yield update
        return
    is_shared = _is_shared(env, scope, env.provenance.positions_above(shared))
    plain = Store(update.array, update.index, update.value, update.op, update.role)
    if scope.carry is not None:
        yield If(is_shared, build.block(*_carry(scope.carry, update)), build.block(plain))
    elif is_shared == TRUE:
        yield update
    elif is_shared == FALSE:
        yield plain
    else:
        yield If(is_shared, build.block(update), build.block(plain))


def _neighbours_meet(env: Environment, scope: Scope) -> bool:
    """Tell whether consecutive entries mostly add to the same element.

    They do where only the last level's index is not one of the result's.
    """
    access, level = max(scope.single, key=lambda entry: entry[1])
    form = env.tensors[access.tensor].type.format
    return access.indices[form.mode_order[level]] not in env.target.indices


def _is_shared(env: Environment, scope: Scope, pos: Pos | None) -> Expr:
    """Tell whether threads with other tiles of `pos` may add to the element at this point."""
    common = () if pos is None else _common(env, pos)
    if pos is None or not common:
        return TRUE
    access, levels = chain(env, pos)
    if (access, levels[-1]) not in scope.left:
        return TRUE
    return _at_edge(scope, access, common[-1], levels[-1])


def _common(env: Environment, pos: Pos) -> tuple[int, ...]:
    """Return the outermost levels of `pos` whose elements of the result two tiles may share, if
    any."""
    access, levels = chain(env, pos)
    form = env.tensors[access.tensor].type.format
    shared = tuple(
        level for level in levels if access.indices[form.mode_order[level]] in env.target.indices
    )
    unique = all(form.levels[level].unique for level in shared)
    return shared if unique and shared == levels[: len(shared)] else ()


def _at_edge(scope: Scope, access: Access, level: int, last: int) -> Expr:
    """Tell whether a tile of positions of `last` begins or ends within this position of `level`."""
    if level == last:
        return FALSE
    position = scope.position(access, level)
    left = scope.left[access, level]
    if position is None:
        return TRUE
    return build.or_(build.eq(position, left.lo), build.eq(position, build.sub(left.hi, 1)))


# ---------------------------------------------------------------- sums carried over

NOWHERE = -(1 << 62)
"""The position of a sum that a tile does not have."""


def can_carry(env: Environment, forall: Forall) -> bool:
    """Tell whether tiles share at most one element with the tile before and one with the next.

    They must add to each once, and need no private memory.
    """
    if any(not workspace.is_number for workspace in workspaces_of(forall)):
        return False
    pos = env.provenance.positions_above(forall.index)
    if pos is None or env.provenance.leaves(pos.child)[:-1] != (forall.index,):
        return False
    access, _ = chain(env, pos)
    order = env.tensors[access.tensor].type.format.mode_order
    indices = {access.indices[order[level]] for level in _common(env, pos)}
    body, loops = forall.body, set()
    while isinstance(body, Forall | Where):
        if isinstance(body, Forall):
            loops.add(body.index)
        body = body.body if isinstance(body, Forall) else body.consumer
    adds_once = (
        isinstance(body, nodes.Assign) and body.target == env.target and body.operator is not None
    )
    return adds_once and indices == set(env.target.indices) == loops


def lower_carrying(env: Environment, forall: Forall, scope: Scope, lower: Lower) -> Iterator[Stmt]:
    """Yield the loop over the tiles of `forall`, then the sums that they carry over."""
    scope, before = open_positions(env, scope, forall.index)
    yield from before
    values = env.tensors[env.target.tensor].values
    count = Var(env.names.fresh("carried"))
    carry = Carry(
        Array(env.names.fresh("carry"), values.element, Storage.LOCAL),
        Array(env.names.fresh("carry_to"), INT64, Storage.LOCAL),
        env.indices[forall.index],
    )
    tiles = Ranges(env, scope).full(forall.index)
    yield Declare(count, build.mul(tiles.length, 2), constant=True)
    yield Allocate(carry.values, count)
    yield Allocate(carry.places, count)
    yield from lower(env, replace(scope, carry=carry))
    slot, place = Var(env.names.fresh("k")), Var(env.names.fresh("place"))
    (operator,) = {a.operator for a in assignments(forall.body) if a.target == env.target}
    assert operator is not None  # which `can_carry` asks for
    add = Store(values, place, build.load(carry.values, slot), operator.c_operator, Role.VALUES)
    yield For(
        slot,
        build.const(0),
        count,
        build.block(
            Declare(place, build.load_index(carry.places, slot), constant=True),
            build.if_(build.ne(place, NOWHERE), build.block(add)),
        ),
    )


def empty_carry(carry: Carry) -> Iterator[Stmt]:
    """Yield code at the beginning of a tile, which carries nothing over yet."""
    for slot in (0, 1):
        yield Store(carry.places, build.add(build.mul(carry.tile, 2), slot), build.const(NOWHERE))


def _carry(carry: Carry, update: AtomicStore) -> Iterator[Stmt]:
    """Yield the store of a sum in the tile's first slot, or in its second."""
    first = build.mul(carry.tile, 2)
    is_used = build.ne(build.load_index(carry.places, first), NOWHERE)
    slot = build.add(first, build.select(is_used, 1, 0))
    yield Store(carry.values, slot, update.value, role=Role.VALUES)
    yield Store(carry.places, slot, update.index)
