"""Assembly by copying: a sparse result has the coordinates of an operand's outer levels.

    total = S2_pos[n]                       C = ds, S = ds
    parallel for p in 0..n+1:    C2_pos[p] = S2_pos[p]
    parallel for p in 0..total:  C2_crd[p] = S2_crd[p]
    for i …: for pS2 …: C_vals[pS2] = …

Each value then has its position before the loops run, as in a dense result.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import (
    Array,
    Declare,
    Expr,
    Fill,
    For,
    LoopKind,
    Reserve,
    Role,
    SetLength,
    Stmt,
    Store,
    Var,
)
from taco_py.compiler.concrete.tree import assignments
from taco_py.compiler.lower.environment import Environment
from taco_py.compiler.lower.numbers import number
from taco_py.compiler.lower.sparse_result.result import make_result


def copy_structure(env: Environment) -> Iterator[Stmt]:
    """Yield code that copies the result's coordinates and allocates its values.

    The values begin at 0 where they are added to, or where loops may leave some out.
    """
    pattern = env.copied
    assert pattern is not None  # which `check_assembly` asks for
    target, source = env.tensors[env.target.tensor], env.tensors[pattern.access.tensor]
    result = make_result(env)
    positions: Expr = build.const(1)
    for level, size in enumerate(result.sizes):
        target_level, source_level = (
            target.levels[level],
            source.levels[level] if level < pattern.depth else None,
        )
        if source_level is None or source_level.crd is None or target_level.crd is None:
            positions = build.mul(positions, size)
            continue
        if target_level.pos is not None and source_level.pos is not None:
            total = Var(env.names.fresh(f"{target_level.crd.name}_total"))
            edges = build.add(positions, 1)
            yield Declare(total, build.load_index(source_level.pos, positions), constant=True)
            yield Reserve(target_level.pos, edges)
            yield SetLength(target_level.pos, edges)
            yield _copy(env, target_level.pos, source_level.pos, edges)
            positions = total
        yield SetLength(target_level.crd, positions, limit=result.most_positions)
        yield Reserve(target_level.crd, positions)
        yield _copy(env, target_level.crd, source_level.crd, positions)
    yield Reserve(target.values, positions, Role.VALUES)
    yield SetLength(target.values, positions, Role.VALUES)
    if not _assigns_all(env):
        nothing = number(0, target.values.element)
        yield Fill(target.values, build.const(0), positions, nothing, Role.VALUES)


def _copy(env: Environment, to: Array, source: Array, count: Expr) -> For:
    place = Var(env.names.fresh("p"))
    value = build.cast(to.element, build.load_index(source, place))
    store = Store(to, place, value)
    return For(place, build.const(0), count, build.block(store), kind=LoopKind.PARALLEL)


def _assigns_all(env: Environment) -> bool:
    """Tell whether loops over the copied entries, and all elements below, assign each value."""
    writes = [a for a in assignments(env.graph.statement) if a.target == env.target]
    pattern = env.copied
    assert pattern is not None
    below = env.problem.stored(env.target)[pattern.depth :]
    plain = (loop.plain for loop in env.graph.loops if loop.index in below and loop.writes_result)
    return all(assign.operator is None for assign in writes) and all(plain)
