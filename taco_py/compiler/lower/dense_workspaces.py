"""Dense workspaces: how large they are, and where an element lies.

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
from taco_py.compiler.lower.ranges import Ranges, named
from taco_py.language.provenance.relations import LARGEST, Divide, Split


def size(env: Environment, workspace: Workspace) -> Expr:
    """Return the number of elements."""
    return build.mul(*(_extent(env, workspace, index) for index in workspace.indices))


def room(env: Environment, workspace: Workspace) -> Expr:
    """Return the number of elements to allocate: where 64 bits cannot count them, more than there
    are."""
    first, *others = (_extent(env, workspace, index) for index in workspace.indices)
    total = first
    for extent in others:
        most = build.div(LARGEST, build.maximum(extent, 1))
        total = build.select(build.le(total, most), build.mul(total, extent), LARGEST)
    return total


def position(env: Environment, scope: Scope, workspace: Workspace) -> Expr:
    """Where the element at the current coordinates lies."""
    found: Expr = build.const(0)
    for index in workspace.indices:
        origin = scope.origins.get((workspace.name, index), build.const(0))
        coordinate = build.sub(env.indices[index], origin)
        found = build.add(build.mul(found, _extent(env, workspace, index)), coordinate)
    return found


def begin_tiles(env: Environment, scope: Scope, workspace: Workspace) -> tuple[Scope, list[Stmt]]:
    """Return the scope inside a `where`: the coordinates that the tiles of its workspace begin
    at."""
    code: list[Stmt] = []
    if not workspace.is_array:
        return scope, code
    origins: dict[tuple[str, str], Expr] = {}
    for index in workspace.indices:
        left = Ranges(env, scope).remaining(index) if _tile(env, workspace, index) else None
        if left is not None:
            origin = named(env, f"{workspace.name}_{index}", left.lo, code)
            origins[workspace.name, index] = origin
    return scope.beginning(origins), code


def _extent(env: Environment, workspace: Workspace, index: str) -> Expr:
    tile = _tile(env, workspace, index)
    return env.sizes[index] if tile is None else Ranges(env, EMPTY_SCOPE).whole(tile).hi


def _tile(env: Environment, workspace: Workspace, index: str) -> str | None:
    """Return the tiles of `index` that the workspace is over: an inner part of it, or None for all.

    What chooses a tile are loops around the workspace. There may be none, where variables are fused
    so that loops over whole indices do the same, or go through outer and inner tiles at once.
    """
    around = {
        loop.index
        for loop in env.graph.loops
        if any(inside.name == workspace.name for inside in workspaces_of(loop.body))
    }
    wanted = {v for v in workspace.variables if index in env.provenance.roots(v)}
    variable = index
    while set(env.provenance.leaves(variable)) != wanted:
        relation = env.provenance.below(variable)
        if not isinstance(relation, Split | Divide):
            return None
        if not around.issuperset(env.provenance.leaves(relation.outer)):
            return None
        variable = relation.inner
    return None if variable == index else variable
