"""Assembly by copying: a sparse result has the coordinates of an operand's outer levels.

    total = S2_pos[n]                       C = ds, S = ds
    parallel for p in 0..n+1:    C2_pos[p] = S2_pos[p]
    parallel for p in 0..total:  C2_crd[p] = S2_crd[p]
    for i …: for pS2 …: C_vals[pS2] = …

Each value has its place then before any loop comes to it, as those of a dense result have.
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
    """Yield the result's coordinates, and room for its values; these begin at 0 where they are
    added to, or where loops may leave some out."""
    pattern = env.copied
    assert pattern is not None  # which `check_assembly` asks for
    own, source = env.tensors[env.target.tensor], env.tensors[pattern.access.tensor]
    whole = make_result(env)
    positions: Expr = build.const(1)
    for level, size in enumerate(whole.sizes):
        made, given = own.levels[level], source.levels[level] if level < pattern.depth else None
        if given is None or given.crd is None or made.crd is None:
            positions = build.mul(positions, size)
            continue
        if made.pos is not None and given.pos is not None:
            total = Var(env.names.fresh(f"{made.crd.name}_total"))
            edges = build.add(positions, 1)
            yield Declare(total, build.load_index(given.pos, positions), constant=True)
            yield Reserve(made.pos, edges)
            yield SetLength(made.pos, edges)
            yield _copy(env, made.pos, given.pos, edges)
            positions = total
        yield SetLength(made.crd, positions, limit=whole.most_positions)
        yield Reserve(made.crd, positions)
        yield _copy(env, made.crd, given.crd, positions)
    yield Reserve(own.values, positions, Role.VALUES)
    yield SetLength(own.values, positions, Role.VALUES)
    if not _assigns_all(env):
        nothing = number(0, own.values.element)
        yield Fill(own.values, build.const(0), positions, nothing, Role.VALUES)


def _copy(env: Environment, to: Array, source: Array, count: Expr) -> For:
    place = Var(env.names.fresh("p"))
    value = build.cast(to.element, build.load_index(source, place))
    store = Store(to, place, value)
    return For(place, build.const(0), count, build.block(store), kind=LoopKind.PARALLEL)


def _assigns_all(env: Environment) -> bool:
    """Tell whether each value is assigned by loops over the entries copied, and all below them."""
    written = [a for a in assignments(env.graph.statement) if a.target == env.target]
    pattern = env.copied
    assert pattern is not None
    below = env.problem.stored(env.target)[pattern.depth :]
    plain = (loop.plain for loop in env.graph.loops if loop.index in below and loop.writes_result)
    return all(assign.operator is None for assign in written) and all(plain)
