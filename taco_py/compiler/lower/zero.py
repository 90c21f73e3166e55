"""Zeroing the parts of a dense result that a kernel adds to, just before it adds to each.

    for i in 0..n_i:
      fill C_vals[i*n_j ..+ n_j] with 0
      for p in A2_pos[i]..A2_pos[i + 1]:
        for j in 0..n_j:
          C_vals[i*n_j + j] += …

A row that was just zeroed is still in the cache when it is added to, unlike where the full result
is zeroed first.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import Expr, Fill, For, Role, Stmt, Store, Var
from taco_py.compiler.levels import locate_strided
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.numbers import number
from taco_py.language.diagnostics.errors import InternalError


def zero_below(env: Environment, scope: Scope) -> Stmt:
    """Return code that zeroes the dense result below the current position."""
    order = len(env.target.indices)
    positions = [scope.position(env.target, level) for level in range(order)]
    level = positions.index(None) if None in positions else order
    position = scope.position(env.target, level - 1)
    if position is None:
        raise InternalError(f"The result {env.target.tensor} is zeroed before its place is known")
    return _zero_levels(env, level, position)


def begin_whole(env: Environment) -> Iterator[Stmt]:
    """Yield the initialization of a dense result that is reduced into by another operator than a
    sum.

    Only where no loop initializes parts of it.
    """
    reduces = env.problem.result.format.is_dense and env.graph.begins_with != 0
    if reduces and env.graph.zeroing is None and not env.graph.assigns_first:
        yield _zero_levels(env, 0, build.const(0))


def _zero_levels(env: Environment, level: int, position: Expr) -> Stmt:
    arrays = env.tensors[env.target.tensor]
    nothing = number(env.graph.begins_with, arrays.values.element)
    strides = arrays.strides
    if level == len(strides):
        return Store(arrays.values, position, nothing, role=Role.VALUES)
    index = env.target.indices[arrays.type.format.mode_order[level]]
    size = env.sizes[index]
    if level == len(strides) - 1 and strides[level] == build.const(1):
        return Fill(arrays.values, position, size, nothing, Role.VALUES)
    var = Var(env.names.fresh(env.indices[index].name))
    below = _zero_levels(env, level + 1, locate_strided(position, var, strides[level]))
    return For(var, build.const(0), size, build.block(below))
