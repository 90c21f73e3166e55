"""Sums to a scalar by blocks of a GPU: partial sums, added up in the order of the blocks.

    t_parts[b] = identity, for all blocks
    for b in blocks:  t_1 = identity; … t_1 += …; t_parts[b] = t_1
    for b …:          t += t_parts[b]

The result has the same bits each time: no atomic operation, whose order varies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import Allocate, Array, Assign, Declare, Fill, For, Role, Stmt, Storage, Store, Var
from taco_py.compiler.concrete.nodes import Forall
from taco_py.compiler.concrete.tree import assignments, workspaces_of
from taco_py.compiler.lower.environment import BlockSum, Environment, Scope
from taco_py.compiler.lower.ranges import Ranges, open_positions
from taco_py.compiler.lower.workspaces import initial

Lower = Callable[[Environment, Scope], Iterator[Stmt]]


def lower_in_parts(env: Environment, forall: Forall, scope: Scope, lower: Lower) -> Iterator[Stmt]:
    """Yield the loop `forall` of blocks, with a partial sum for each block.

    `lower` gives its code.
    """
    scope, code = open_positions(env, scope, forall.index)
    yield from code
    count = Ranges(env, scope).counted(forall.index).length
    inside = {workspace.name for workspace in workspaces_of(forall)}
    targets = dict.fromkeys(a.target.tensor for a in assignments(forall.body))
    workspaces, sums, after = dict(env.workspaces), list[BlockSum](), list[Stmt]()
    for name in (name for name in targets if name in workspaces and name not in inside):
        arrays = env.workspaces[name]
        assert arrays.scalar is not None  # which `unit_nests` asks for
        parts = Array(env.names.fresh(f"{name}_parts"), arrays.element, Storage.LOCAL)
        partial, block = Var(env.names.fresh(name), arrays.element), Var(env.names.fresh("k"))
        workspaces[name] = replace(arrays, scalar=partial)
        sums.append(BlockSum(partial, parts, initial(arrays)))
        yield Allocate(parts, count)
        yield Fill(parts, build.const(0), count, initial(arrays), Role.VALUES)
        operator = arrays.workspace.operator.c_operator
        add = Assign(arrays.scalar, build.load(parts, block), operator, Role.VALUES)
        after.append(For(block, build.const(0), count, build.block(add)))
    inner = replace(scope, sums=(forall.index, tuple(sums)))
    yield from lower(replace(env, workspaces=workspaces), inner)
    yield from after


def begin_sums(scope: Scope, index: str) -> Iterator[Stmt]:
    """Yield code at the beginning of a block, which initializes its partial sums."""
    for block_sum in _of(scope, index):
        yield Declare(block_sum.partial, block_sum.first, role=Role.VALUES)


def keep_sums(env: Environment, scope: Scope, index: str) -> Iterator[Stmt]:
    """Yield code at the end of a block, which stores its partial sums."""
    for block_sum in _of(scope, index):
        yield Store(block_sum.parts, env.indices[index], block_sum.partial, role=Role.VALUES)


def _of(scope: Scope, index: str) -> tuple[BlockSum, ...]:
    return scope.sums[1] if scope.sums is not None and scope.sums[0] == index else ()
