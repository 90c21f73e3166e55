"""Entries of an operand that neighbouring threads of a GPU take one by one, of several levels.

    forall i (lanes, fused with j)      lanes for lane in 0..32:
      t where forall j: t += …            p = begin + lane
      y[i] += t                     →     if p < end:
                                            i = the row of p, looked for among those of the tile
                                            j = crd[p];  t += …;  atomic y[i] += t

Lanes thus read neighbours in memory, whatever the lengths of rows. The rows that have entries in
the tile of the lanes' warp or block are searched once, before the loop. Lanes that visit the same
row add up their terms (`codegen.passes.gpu.lane_runs`), as in Bell and Garland 2009, Implementing
sparse matrix-vector multiplication on throughput-oriented processors, section 3.3.
"""

from __future__ import annotations

from dataclasses import replace

from codegen import build
from codegen.ir import Declare, Expr, Stmt
from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Forall
from taco_py.compiler.concrete.tree import foralls
from taco_py.compiler.iteration.region import Iterator
from taco_py.compiler.iteration.units_share import takes_entries
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.loop_ends import Walk
from taco_py.compiler.lower.ranges import (
    Opening,
    Ranges,
    chain,
    open_chain,
    open_positions,
    parent_position,
    segments,
)
from taco_py.language.notation.nodes import Access
from taco_py.language.provenance.relations import Divide, Interval, Pos, Split


@dataclass(frozen=True, slots=True)
class EntryLoop:
    """A loop over entries.

    `outside` stands before it, `first` and `places` inside of it; `places` where an iteration has
    an entry, which `some` tells.
    """

    scope: Scope
    extent: Interval
    outside: tuple[Stmt, ...]
    first: Declare
    some: Expr
    places: tuple[Stmt, ...]

    def loop(self, code: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the body of the loop, where `code` processes the entry."""
        return (self.first, build.if_(self.some, build.block(*self.places, *code)))


def take_entry(env: Environment, forall: Forall, scope: Scope) -> EntryLoop:
    """Give each iteration of `forall` an entry, with the positions of the levels above."""
    pos = _positions(env, forall)
    scope, outside = open_positions(env, scope, forall.index)
    access, levels = chain(env, pos)
    leaf = env.provenance.leaf(forall.index, scope.bound)
    spans = [
        scope.left.get((access, level), span)
        for level, span in zip(levels, segments(env, scope, access, levels), strict=True)
    ]
    extent = Ranges(env, scope).full(leaf)
    scope = scope.inside_loop(leaf, frozenset())
    interval = Interval(scope.intervals[pos.child].lo, spans[-1].hi)
    ranges = Ranges(env, scope.ranging(pos.child, interval))
    position: Expr = env.position_var(access, levels[-1])
    value = ranges.value(pos.child)
    if scope.tile is not None:
        counter, begin = scope.tile
        value = build.add(begin, ranges.value(counter))
    first = Declare(env.position_var(access, levels[-1]), value, constant=True)
    some = ranges.inside(pos.child, position)
    scope = scope.at(access, levels[-1], position)
    scope = scope.leaving(access, levels[-1], spans[-1])
    places: list[Stmt] = []
    for level, above in reversed(tuple(zip(levels[1:], spans[:-1], strict=True))):
        var = env.position_var(access, level - 1)
        places.append(
            Declare(var, parent_position(env, access, level, above, position), constant=True)
        )
        position = var
        scope = scope.at(access, level - 1, var)
    scope = scope.taking(frozenset((access, level) for level in levels))
    return EntryLoop(scope, extent, tuple(outside), first, some, tuple(places))


def _positions(env: Environment, forall: Forall) -> Pos:
    pos = env.provenance.position_of(forall.index)
    assert pos is not None  # which `takes_entries` asks for
    return pos


def open_entries(env: Environment, forall: Forall, scope: Scope) -> Opening:
    """Prepare inner loops that take entries, at the nearest enclosing loop that units share.

    The entries are those that tiles leave, up to the tile of `forall`.
    """
    pos = env.provenance.positions_above(forall.index)
    if pos is None or not forall.parallel:
        return Opening(scope)
    shared = next((inner for inner in foralls(forall.body) if inner.parallel), None)
    if shared is None or not takes_entries(env.graph, env.graph.loop_of(shared)):
        return Opening(scope)
    if _positions(env, shared) != pos:
        return Opening(scope)
    opening = open_chain(env, scope, pos)
    access, levels = chain(env, pos)
    counter = _counter(env, forall.index, pos)
    left = opening.scope.left.get((access, levels[-1]))
    if counter is None or left is None:
        return opening
    return replace(opening, scope=replace(opening.scope, tile=(counter, left.lo)))


def _counter(env: Environment, tiles: str, pos: Pos) -> str | None:
    """Return the variable that counts the positions of one of these tiles, if there is one."""
    cut = env.provenance.above(tiles)
    inner = cut.inner if isinstance(cut, Split | Divide) and cut.outer == tiles else None
    while isinstance(cut, Split | Divide) and cut.parent != pos.child:
        above = env.provenance.above(cut.parent)
        if not isinstance(above, Split | Divide) or above.inner != cut.parent:
            return None
        cut = above
    return inner if isinstance(cut, Split | Divide) else None


def entry_level(env: Environment, scope: Scope, forall: Forall) -> tuple[Access, int] | None:
    """Return the level that a loop need not walk, as the position of its entry is known."""
    pos = env.provenance.position_of(forall.index)
    if pos is None or not scope.single:
        return None
    access, levels = chain(env, pos)
    level = levels[env.provenance.roots(pos.parent).index(forall.index)]
    return (access, level) if (access, level) in scope.single else None


def entry_coordinate(env: Environment, scope: Scope, access: Access, level: int) -> Expr:
    """Return the coordinate at the position of an entry."""
    position, parent = scope.position(access, level), scope.position(access, level - 1)
    assert position is not None and parent is not None  # which `take_entry` has found
    form = env.tensors[access.tensor].type.format
    if not form.levels[level].full:
        return env.level(access, level).coordinate(position)
    size = env.sizes[access.indices[form.mode_order[level]]]
    return build.sub(position, build.mul(parent, size)) if level else position


def entry_walk(env: Environment, scope: Scope, iterator: Iterator) -> Walk:
    """Return the walk along a level that consists of the entry's position alone."""
    position = env.position_var(iterator.access, iterator.level)
    return Walk(iterator, position, position, build.add(position, 1), position)
