"""One `forall` → loops over its merge lattice.

    no iterator                for (i = 0; i < n; i++)
    one iterator               for (p = pos[q]; p < pos[q+1]; p++) { j = crd[p]; … }
    everything, looking out    for (i = 0; i < n; i++) { if (p < end && crd[p] == i) …; else …; }
    several iterators          while (…) { j = min(…); if (all at j) … else …; advance those at j }

(Kjolstad et al. 2017, section 6; Chou et al. 2018, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import TRUE, Declare, Expr, For, LoopKind, Stmt, Var
from codegen.passes.vectorize import carried
from codegen.types import BOOL
from taco_py.compiler.concrete.nodes import INSIDE_BLOCKS, Forall, Unit
from taco_py.compiler.concrete.tree import assignments
from taco_py.compiler.iteration.lattice import build_lattice
from taco_py.compiler.iteration.region import Everything
from taco_py.compiler.iteration.units_share import takes_entries
from taco_py.compiler.lower import workspaces
from taco_py.compiler.lower.entry_lanes import (
    entry_coordinate,
    entry_level,
    entry_walk,
    open_entries,
    take_entry,
)
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.loop_ends import Walk, Walker
from taco_py.compiler.lower.looping import Body, LoopLowering, as_count, choose
from taco_py.compiler.lower.merged import check_alone, merge
from taco_py.compiler.lower.ranges import (
    Opening,
    Ranges,
    is_absent,
    open_chain,
    open_positions,
    walked_positions,
)
from taco_py.compiler.lower.sparse_result.first_entry import without_flags
from taco_py.compiler.lower.sparse_result.pattern import FixedResult, read_row
from taco_py.compiler.lower.sparse_result.result import Result
from taco_py.language.diagnostics.errors import InternalError, ScheduleError
from taco_py.language.provenance.relations import Interval


def lower_loop(
    env: Environment, result: Result, forall: Forall, scope: Scope, body: Body
) -> Iterator[Stmt]:
    """Yield the loops of `forall`, calling `body` for the code inside each case."""
    if env.provenance.is_derived(forall.index):
        yield from _over_tiles(env, forall, scope, body)
        return
    if not scope.single and takes_entries(env.graph, env.graph.loop_of(forall)):
        yield from _over_entries(env, result, forall, scope, body)
        return
    region = scope.regions(env).statement(forall.body, forall.index)
    if scope.zeroing and _assigns_result(env, forall):
        region = Everything()
    lattice = build_lattice(region)
    if not lattice.points:
        return
    opening = _open(env, forall, scope)
    prelude: list[Stmt] = []
    pos = walked_positions(env, scope, forall)
    walker = Walker(env, opening.scope, forall.index, pos, prelude)
    it = LoopLowering(env, result, forall, opening.scope, lattice, body, walker)
    alone = entry_level(env, opening.scope, forall) is not None
    walks = tuple(
        entry_walk(env, opening.scope, iterator) if alone else walker.walk(iterator)
        for iterator in lattice.iterators
    )
    code = (*_reserve(it, walks), *_loops(it, walks))
    if code:
        yield from opening.before
        yield build.if_(opening.some, build.block(*opening.inside, *prelude, *code))


def _open(env: Environment, forall: Forall, scope: Scope) -> Opening:
    """Return the code before a loop whose index is walked through an operand's positions."""
    pos = walked_positions(env, scope, forall)
    if pos is None:
        return Opening(scope)
    scope, code = open_positions(env, scope, forall.index)
    opening = open_chain(env, scope, pos)
    return replace(opening, before=(*code, *opening.before))


def _loops(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    level = entry_level(it.env, it.scope, it.forall)
    if level is not None:
        yield Declare(it.index, entry_coordinate(it.env, it.scope, *level), constant=True)
        yield from it.case(it.lattice.points[0], walks)
    elif it.strided is not None:
        yield from _strided(it, it.strided, walks)
    elif it.lattice.full:
        yield from _over_dimension(it, walks)
    elif len(walks) == 1:
        yield from _over_positions(it, walks[0], walks[0].start)
    else:
        yield from merge(it, walks)


def _assigns_result(env: Environment, forall: Forall) -> bool:
    """Tell whether a loop assigns elements of a dense result, which are zero for absent
    operands."""
    target = env.target.tensor
    assigned = (a for a in assignments(forall.body) if a.target.tensor == target)
    return env.problem.result.format.is_dense and any(a.operator is None for a in assigned)


# ---------------------------------------------------------------- tiles


def _over_tiles(env: Environment, forall: Forall, scope: Scope, body: Body) -> Iterator[Stmt]:
    """Yield the loop that counts tiles; inner loops run over the content of a tile.

    There is none over tiles of positions at which the body reads nothing.
    """
    if is_absent(env, scope, forall):
        return
    scope, code = open_positions(env, scope, forall.index)
    extent = scope.piece_of(forall.index) or Ranges(env, scope).counted(forall.index)
    opening = open_entries(env, forall, scope.inside_loop(forall.index, frozenset()))
    inside = tuple(body(opening.scope))
    if inside:
        yield from code
        var = env.indices[forall.index]
        yield _for(env, forall, scope, var, extent, *opening.enclose(inside))


def _over_entries(
    env: Environment, result: Result, forall: Forall, scope: Scope, body: Body
) -> Iterator[Stmt]:
    """Yield the loop whose iterations are entries, with the coordinates of each."""
    entries = take_entry(env, forall, scope)
    inside = tuple(lower_loop(env, result, forall, entries.scope, body))
    if inside:
        leaf = env.provenance.leaf(forall.index, scope.bound)
        yield from entries.outside
        loop = entries.loop(inside)
        yield _for(env, forall, scope, env.indices[leaf], entries.extent, *loop)


def _strided(it: LoopLowering, variable: str, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    """Yield the loop that counts tiles and visits one coordinate, or one entry, of each."""
    leaf = Ranges(it.env, it.scope).open_leaf(variable)
    extent = it.scope.piece_of(leaf) or Ranges(it.env, it.scope).full(leaf)
    it = replace(it, scope=it.scope.inside_loop(leaf, frozenset()))
    ranges = Ranges(it.env, it.scope)
    (point,) = it.lattice.points
    body = it.case(point, walks)
    if not body:
        return
    if walks:
        (walk,) = walks
        declared = Declare(walk.position, ranges.value(variable), constant=True)
        body = (Declare(it.index, it.coordinate(walk, walk.position), constant=True), *body)
    else:
        declared = Declare(it.index, ranges.value(variable), constant=True)
    guarded = build.if_(ranges.inside(variable, declared.var), build.block(*body))
    yield _for(it.env, it.forall, it.scope, it.env.indices[leaf], extent, declared, guarded)


def appending_level(env: Environment, result: Result, forall: Forall) -> int | None:
    """Return the level of a sparse result that this loop fills in order, None if it does not."""
    if not result.is_sparse or forall.index not in env.target.indices:
        return None
    if not any(a.target == env.target for a in assignments(forall.body)):
        return None
    mode = env.target.indices.index(forall.index)
    return result.format.mode_order.index(mode)


UNITS = {
    Unit.CORE: LoopKind.PARALLEL,
    Unit.BLOCK: LoopKind.BLOCKS,
    Unit.WARP: LoopKind.WARPS,
    Unit.THREAD: LoopKind.THREADS,
}


def _for(
    env: Environment, forall: Forall, scope: Scope, var: Var, extent: Interval, *code: Stmt
) -> Stmt:
    """Return the loop over `extent`, in the mode of `forall`.

    A flag that each iteration sets, as a sum has a term, is set once after the loop.
    """
    loop = For(var, extent.lo, extent.hi, build.block(*code), unroll=forall.mode.unroll)
    if forall.mode.parallel is not None:
        return _carried_out(env, forall, scope, loop)
    loop, flags = without_flags(loop)
    if not flags:
        return _carried_out(env, forall, scope, loop)
    said = build.if_(build.lt(loop.start, loop.stop), build.block(*flags))
    does = any(not isinstance(part, Declare) for part in loop.body.body)
    return build.block(_carried_out(env, forall, scope, loop) if does else None, said)


def _carried_out(env: Environment, forall: Forall, scope: Scope, loop: For) -> For:
    mode = forall.mode
    if scope.serial:
        return loop
    if mode.parallel is not None and (scope.piece is None or mode.unit in INSIDE_BLOCKS):
        most = 0
        if mode.unit in INSIDE_BLOCKS:
            most = env.provenance.most(env.provenance.leaf(forall.index, scope.bound)) or 0
        return replace(loop, kind=UNITS[mode.unit], unroll=0, units=most)
    if not mode.vector:
        return loop
    reductions = carried(loop)
    if reductions is None:
        raise ScheduleError(
            f"vectorize({forall.index}) cannot be applied: an iteration needs what the one before "
            "it has computed",
            hint=f"leave the loop over {forall.index} to the compiler",
        )
    return replace(loop, kind=LoopKind.VECTOR, reductions=reductions, unroll=0)


def _reserve(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    level = appending_level(it.env, it.result, it.forall)
    if level is None:
        return
    lengths = [build.sub(walk.stop, walk.start) for walk in walks]
    if it.lattice.full:
        piece = it.scope.piece_of(it.forall.index)
        bound = it.size if piece is None else piece.length
    elif len(it.lattice.points) == 1:
        bound = build.minimum(*lengths)
    else:
        bound = build.add(*lengths)
    yield from it.result.enter(level, bound)


# ---------------------------------------------------------------- the dimension


def _over_dimension(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    """Yield the loop over every coordinate, which looks out for entries of sparse levels."""
    check_alone(it, walks)
    for walk in walks:
        yield Declare(walk.position, walk.start)
        yield from it.skip(walk)
    present = {w.iterator: Var(f"at_{w.position.name}", BOOL) for w in walks}
    code: list[Stmt] = []
    for walk in walks:
        matches = build.eq(it.coordinate(walk, walk.position), it.index)
        is_present = build.and_(walk.remains, matches)
        code.append(Declare(present[walk.iterator], is_present, constant=True))
    cases = [
        (build.and_(*(present[i] for i in point.iterators)), it.case(point, walks))
        for point in it.lattice.points
    ]
    code += choose(cases)
    for walk in walks:
        code.append(build.increment(walk.position, as_count(present[walk.iterator])))
        code += it.skip(walk)
    if any(body for _, body in cases):
        extent = it.walker.extent()
        yield _for(it.env, it.forall, it.scope, it.index, extent, *code)


# ---------------------------------------------------------------- one level


def _over_positions(it: LoopLowering, walk: Walk, start: Expr) -> Iterator[Stmt]:
    """Yield the loop over the coordinates of one level; no loop where there is at most one."""
    if isinstance(it.result, FixedResult) and walk.iterator.access.tensor in it.result.rows:
        yield from _over_fixed(it, it.result, walk)
        return
    inside = (*it.case(it.lattice.below(it.alone(walk))[0], (walk,)), *_reset(it, walk))
    if not inside:
        return
    level = it.env.iterated(walk.iterator, it.scope)
    parent = it.scope.position(walk.iterator.access, walk.iterator.level - 1)
    origin = None if parent is None else level.origin(parent)
    if parent is not None and origin is not None and (start, walk.stop) == level.bounds(parent):
        yield _over_places(it, walk, origin, inside)
        return
    coordinate = Declare(it.index, it.coordinate(walk, walk.position), constant=True)
    code = [coordinate, build.if_(it.present(walk), build.block(*inside))]
    if it.present(walk) == TRUE:
        code = [coordinate, *inside]
    position = Declare(walk.position, start, constant=True)
    if it.env.iterated(walk.iterator, it.scope).branchless:
        yield position
        yield from code
    elif it.env.graph.at_most_one(it.forall.index, walk.iterator):
        yield build.if_(build.lt(start, walk.stop), build.block(position, *code))
    else:
        extent = Interval(start, walk.stop)
        yield _for(it.env, it.forall, it.scope, walk.position, extent, *code)


def _over_places(it: LoopLowering, walk: Walk, origin: Expr, inside: tuple[Stmt, ...]) -> Stmt:
    """Return the loop over every coordinate of a level in which each has a position, if stored."""
    position = build.add(origin, it.index)
    declared = Declare(walk.position, position, constant=True)
    level = it.env.iterated(walk.iterator, it.scope)
    present = level.present(position)
    extent = Interval(build.const(0), it.size)
    body = build.if_(present, build.block(*inside))
    return _for(it.env, it.forall, it.scope, it.index, extent, declared, body)


def _over_fixed(it: LoopLowering, result: FixedResult, walk: Walk) -> Iterator[Stmt]:
    """Yield the loop over the coordinates of the result, which read a row workspace."""
    level = appending_level(it.env, result, it.forall)
    if level is None:
        raise InternalError(f"The loop over {it.forall.index} has no coordinates of the result")
    inner = replace(it, scope=it.scope.reading(it.forall.index))
    body = (*inner.case(it.lattice.below(it.alone(walk))[0], (walk,)), *_reset(it, walk))
    row = it.env.workspaces[walk.iterator.access.tensor]
    yield from read_row(result, level, it.index, row, body)


def _reset(it: LoopLowering, walk: Walk) -> Iterator[Stmt]:
    """Yield code that clears a row workspace after it is read."""
    tensor = walk.iterator.access.tensor
    if tensor in it.env.workspaces:
        yield from workspaces.reset(it.env.workspaces[tensor], it.index)
