"""Dense workspaces: their sizes, and the positions of their elements.

A workspace over tiles of an index is of a tile's size. Its elements are counted from the coordinate
that the tile begins at:

    forall i0                               for i0 …
      where(forall i y[i] = w[i],      →      w_begin = i0 * 16
            forall i w[i] = …)                for i in i0 * 16 ..: w[i - w_begin] = …
"""

from __future__ import annotations

from codegen import build
from codegen.ir import Expr, Stmt
from taco_py.compiler.concrete.nodes import Workspace
from taco_py.compiler.concrete.tree import workspaces_of
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment, Scope
from taco_py.compiler.lower.ranges import Ranges, in_variable
from taco_py.language.provenance.relations import LARGEST, Divide, Split


def size(env: Environment, workspace: Workspace) -> Expr:
    """Return the number of elements of a workspace."""
    return build.mul(*(_extent(env, workspace, index) for index in workspace.indices))


def room(env: Environment, workspace: Workspace) -> Expr:
    """Return the number of elements to allocate; the largest 64-bit number where 64 bits
    overflow."""
    first, *rest = (_extent(env, workspace, index) for index in workspace.indices)
    total = first
    for extent in rest:
        most = build.div(LARGEST, build.maximum(extent, 1))
        total = build.select(build.le(total, most), build.mul(total, extent), LARGEST)
    return total


def position(env: Environment, scope: Scope, workspace: Workspace) -> Expr:
    """Return the position of the element at the current coordinates."""
    place: Expr = build.const(0)
    for index in workspace.indices:
        origin = scope.origins.get((workspace.name, index), build.const(0))
        coordinate = build.sub(env.indices[index], origin)
        place = build.add(build.mul(place, _extent(env, workspace, index)), coordinate)
    return place


def begin_tiles(env: Environment, scope: Scope, workspace: Workspace) -> tuple[Scope, list[Stmt]]:
    """Return the scope inside a `where`, with the coordinates at which the workspace's tiles
    begin."""
    code: list[Stmt] = []
    if not workspace.is_array:
        return scope, code
    origins: dict[tuple[str, str], Expr] = {}
    for index in workspace.indices:
        left = Ranges(env, scope).remaining(index) if _tile(env, workspace, index) else None
        if left is not None:
            origin = in_variable(env, f"{workspace.name}_{index}", left.lo, code)
            origins[workspace.name, index] = origin
    return scope.beginning(origins), code


def _extent(env: Environment, workspace: Workspace, index: str) -> Expr:
    tile = _tile(env, workspace, index)
    return env.sizes[index] if tile is None else Ranges(env, EMPTY_SCOPE).full(tile).hi


def _tile(env: Environment, workspace: Workspace, index: str) -> str | None:
    """Return the variable of the tiles of `index` that the workspace is over; None for all of it.

    Loops around the workspace choose the tile. There may be none, where variables are fused so that
    loops over full indices do the same, or run over outer and inner tiles at once.
    """
    outer = {
        loop.index
        for loop in env.graph.loops
        if any(inside.name == workspace.name for inside in workspaces_of(loop.body))
    }
    leaves = {v for v in workspace.variables if index in env.provenance.roots(v)}
    variable = index
    while set(env.provenance.leaves(variable)) != leaves:
        relation = env.provenance.below(variable)
        if not isinstance(relation, Split | Divide):
            return None
        if not outer.issuperset(env.provenance.leaves(relation.outer)):
            return None
        variable = relation.inner
    return None if variable == index else variable
