"""One `forall` → loops over its merge lattice.

    no iterator                for (i = 0; i < n; i++)
    one iterator               for (p = pos[q]; p < pos[q+1]; p++) { j = crd[p]; … }
    everything, looking out    for (i = 0; i < n; i++) { if (p < end && crd[p] == i) …; else …; }
    several iterators          while (…) { j = min(…); if (all at j) … else …; advance those at j }

(Kjolstad et al. 2017, section 6; Chou et al. 2018, section 5.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from codegen import build
from codegen.ir import Assign, Declare, Expr, For, LoopKind, Search, Stmt, Var, While
from codegen.passes.vectorize import carried
from codegen.types import BOOL, INT64
from taco_py.concrete.nodes import Forall, Merge
from taco_py.concrete.tree import assignments
from taco_py.diagnostics.errors import InternalError, ScheduleError
from taco_py.iteration.lattice import Lattice, Point, build_lattice
from taco_py.levels import Compressed
from taco_py.lower import workspaces
from taco_py.lower.environment import Environment, Scope
from taco_py.lower.pattern import Given, read_row
from taco_py.lower.ranges import (
    Opening,
    Ranges,
    chain,
    open_chain,
    open_positions,
    walked_positions,
)
from taco_py.lower.result import Result
from taco_py.lower.walks import Walk, Walker
from taco_py.provenance.relations import Interval

Body = Callable[[Scope], Iterator[Stmt]]


@dataclass(frozen=True, slots=True)
class LoopLowering:
    """The pieces that every kind of loop shares."""

    env: Environment
    result: Result
    forall: Forall
    scope: Scope
    lattice: Lattice
    body: Body
    walker: Walker

    @property
    def index(self) -> Var:
        return self.env.indices[self.forall.index]

    @property
    def size(self) -> Expr:
        return self.env.sizes[self.forall.index]

    @property
    def strided(self) -> str | None:
        """The variable over coordinates or entries at equal distances, None if they are close."""
        ranges = Ranges(self.env, self.scope)
        pos = self.env.provenance.position_of(self.forall.index)
        variable = self.forall.index if pos is None else pos.child
        if pos is not None and variable not in self.scope.intervals:
            return None
        return variable if ranges.remaining(variable) is None else None

    def coordinate(self, walk: Walk, position: Expr) -> Expr:
        return self.env.iterated(walk.iterator).coordinate(position)

    def case(self, point: Point, walks: tuple[Walk, ...]) -> tuple[Stmt, ...]:
        """The body where exactly the iterators of `point` are present."""
        others = {i.access for i in self.lattice.iterators} - {i.access for i in point.iterators}
        scope = self.scope.within(self.forall.index, frozenset(others))
        for walk in walks:
            if walk.iterator in point.iterators:
                scope = scope.at(walk.iterator.access, walk.iterator.level, walk.position)
        return tuple(self.body(scope))


def lower_loop(
    env: Environment, result: Result, forall: Forall, scope: Scope, body: Body
) -> Iterator[Stmt]:
    """The loops of `forall`, calling `body` for the code inside each case."""
    if env.provenance.is_derived(forall.index):
        yield from _over_tiles(env, forall, scope, body)
        return
    lattice = build_lattice(scope.regions(env).statement(forall.body, forall.index))
    if not lattice.points:
        return
    opening = _open(env, forall, scope)
    prelude: list[Stmt] = []
    walker = Walker(env, opening.scope, forall.index, prelude)
    it = LoopLowering(env, result, forall, opening.scope, lattice, body, walker)
    walks = tuple(walker.walk(iterator) for iterator in lattice.iterators)
    code = (*_reserve(it, walks), *_loops(it, walks))
    if code:
        yield from opening.before
        yield build.if_(opening.some, build.block(*opening.inside, *prelude, *code))


def _open(env: Environment, forall: Forall, scope: Scope) -> Opening:
    """What a loop needs before it whose index is walked through an operand's positions."""
    pos = walked_positions(env, forall)
    if pos is None:
        return Opening(scope)
    scope, code = open_positions(env, scope, forall.index)
    opening = open_chain(env, scope, pos)
    return replace(opening, before=(*code, *opening.before))


def _loops(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    if it.strided is not None:
        yield from _strided(it, it.strided, walks)
    elif it.lattice.full:
        yield from _over_dimension(it, walks)
    elif len(walks) == 1:
        yield from _over_positions(it, walks[0], walks[0].start)
    else:
        yield from _merge(it, walks)


# ---------------------------------------------------------------- tiles


def _over_tiles(env: Environment, forall: Forall, scope: Scope, body: Body) -> Iterator[Stmt]:
    """Count the tiles; loops below run over what is in each.

    Nothing is to be done in tiles of the positions of an operand that is absent here.
    """
    pos = env.provenance.positions_above(forall.index)
    if pos is not None and chain(env, pos)[0] in scope.absent:
        return
    scope, code = open_positions(env, scope, forall.index)
    extent = scope.piece_of(forall.index) or Ranges(env, scope).counted(forall.index)
    inside = tuple(body(scope.within(forall.index, frozenset())))
    if inside:
        yield from code
        var = env.indices[forall.index]
        yield _for(forall, scope, var, extent, *inside)


def _strided(it: LoopLowering, variable: str, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    """One coordinate, or one entry, of each tile: the loop counts the tiles and computes it."""
    leaf = Ranges(it.env, it.scope).open_leaf(variable)
    extent = it.scope.piece_of(leaf) or Ranges(it.env, it.scope).whole(leaf)
    it = replace(it, scope=it.scope.within(leaf, frozenset()))
    here = Ranges(it.env, it.scope)
    (point,) = it.lattice.points
    body = it.case(point, walks)
    if not body:
        return
    if walks:
        (walk,) = walks
        known = Declare(walk.position, here.value(variable), constant=True)
        body = (Declare(it.index, it.coordinate(walk, walk.position), constant=True), *body)
    else:
        known = Declare(it.index, here.value(variable), constant=True)
    guarded = build.if_(here.inside(variable, known.var), build.block(*body))
    yield _for(it.forall, it.scope, it.env.indices[leaf], extent, known, guarded)


def appending_level(env: Environment, result: Result, forall: Forall) -> int | None:
    """The level of a sparse result that this loop fills in order, None if it does not."""
    if not result.is_sparse or forall.index not in env.target.indices:
        return None
    if not any(a.target == env.target for a in assignments(forall.body)):
        return None
    mode = env.target.indices.index(forall.index)
    return result.format.mode_order.index(mode)


def _for(forall: Forall, scope: Scope, var: Var, extent: Interval, *code: Stmt) -> For:
    """The loop over `extent`, carried out as `forall` says."""
    mode = forall.mode
    loop = For(var, extent.lo, extent.hi, build.block(*code), unroll=mode.unroll)
    if mode.parallel is not None and scope.piece is None:
        return replace(loop, kind=LoopKind.PARALLEL, unroll=0)
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
    """Every coordinate in turn; sparse levels are looked out for."""
    for walk in walks:
        yield Declare(walk.position, walk.start)
    present = {w.iterator: Var(f"at_{w.position.name}", BOOL) for w in walks}
    code: list[Stmt] = []
    for walk in walks:
        here = build.eq(it.coordinate(walk, walk.position), it.index)
        found = build.and_(walk.remains, here)
        code.append(Declare(present[walk.iterator], found, constant=True))
    cases = [
        (build.and_(*(present[i] for i in point.iterators)), it.case(point, walks))
        for point in it.lattice.points
    ]
    code += _choose(cases)
    for walk in walks:
        code.append(build.increment(walk.position, _as_count(present[walk.iterator])))
    if any(body for _, body in cases):
        extent = it.walker.extent()
        yield _for(it.forall, it.scope, it.index, extent, *code)


def _as_count(flag: Expr) -> Expr:
    return build.cast(INT64, flag)


def _choose(cases: list[tuple[Expr, tuple[Stmt, ...]]]) -> list[Stmt]:
    """An if-chain; a plainly true condition ends it, and empty cases at its end are dropped."""
    chain: Stmt | None = None
    for condition, body in reversed(cases):
        if condition == build.const(True):
            chain = build.block(*body) if body else None
        elif body or chain is not None:
            chain = build.if_(condition, build.block(*body), chain)
    return [] if chain is None else [chain]


# ---------------------------------------------------------------- one level


def _over_positions(it: LoopLowering, walk: Walk, start: Expr) -> Iterator[Stmt]:
    """The stored coordinates of one level; without a loop where there is exactly one."""
    if isinstance(it.result, Given) and walk.iterator.access.tensor in it.result.rows:
        yield from _over_given(it, it.result, walk)
        return
    code = [
        Declare(it.index, it.coordinate(walk, walk.position), constant=True),
        *it.case(it.lattice.below(_alone(it, walk))[0], (walk,)),
        *_reset(it, walk),
    ]
    if len(code) == 1:
        return
    if it.env.iterated(walk.iterator).branchless:
        yield Declare(walk.position, start, constant=True)
        yield from code
    else:
        yield _for(it.forall, it.scope, walk.position, Interval(start, walk.stop), *code)


def _over_given(it: LoopLowering, result: Given, walk: Walk) -> Iterator[Stmt]:
    """The coordinates that the result has, of a row workspace."""
    level = appending_level(it.env, result, it.forall)
    if level is None:
        raise InternalError(f"The loop over {it.forall.index} has no coordinates of the result")
    inner = replace(it, scope=it.scope.reading(it.forall.index))
    body = (*inner.case(it.lattice.below(_alone(it, walk))[0], (walk,)), *_reset(it, walk))
    row = it.env.workspaces[walk.iterator.access.tensor]
    yield from read_row(result, level, it.index, row, body)


def _alone(it: LoopLowering, walk: Walk) -> Point:
    return next(p for p in it.lattice.points if p.iterators == (walk.iterator,))


def _reset(it: LoopLowering, walk: Walk) -> Iterator[Stmt]:
    """A row workspace is left all zero by whoever reads it."""
    tensor = walk.iterator.access.tensor
    if tensor in it.env.workspaces:
        yield from workspaces.reset(it.env.workspaces[tensor], it.index)


# ---------------------------------------------------------------- several levels


def _merge(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    """A loop for each lattice point, from the top down, while all its iterators last."""
    for walk in walks:
        if walk.iterator.access.tensor in it.env.workspaces:
            raise InternalError("A workspace is read together with another sparse operand")
        yield Declare(walk.position, walk.start)
        if not isinstance(walk.stop, Var):
            yield Declare(_end(walk), walk.stop, constant=True)
    walks = tuple(w if isinstance(w.stop, Var) else _with_end(w) for w in walks)
    if it.forall.mode.merge is Merge.GALLOP:
        yield from _gallop(it, walks)
        return
    for point in it.lattice.points:
        alive = tuple(w for w in walks if w.iterator in point.iterators)
        if len(alive) == 1:
            yield from _rest(it, alive[0])
        else:
            yield from _merge_point(it, point, alive)


def _gallop(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    """The coordinates that all levels have: those behind leap to the largest that one stands at.

    (Demaine, López-Ortiz and Munro 2000, Adaptive set intersections.)
    """
    (point,) = it.lattice.points
    body = it.case(point, walks)
    if not body:
        return
    here = [Declare(w.coordinate, it.coordinate(w, w.position), constant=True) for w in walks]
    largest = build.maximum(*(w.coordinate for w in walks))
    met = build.and_(*(build.eq(w.coordinate, it.index) for w in walks))
    step = [build.increment(walk.position) for walk in walks]
    leaps = [build.if_(build.lt(walk.coordinate, it.index), _leap(it, walk)) for walk in walks]
    yield While(
        build.and_(*(w.remains for w in walks)),
        build.block(
            *here,
            Declare(it.index, largest, constant=True),
            build.if_(met, build.block(*body, *step), build.block(*leaps)),
        ),
    )


def _leap(it: LoopLowering, walk: Walk) -> Stmt:
    level = it.env.iterated(walk.iterator)
    if not isinstance(level, Compressed):
        raise InternalError(f"No coordinate can be searched for in {walk.iterator}")
    start = build.add(walk.position, 1)
    return Assign(walk.position, Search(level.crd, start, walk.stop, it.index, near=True))


def _end(walk: Walk) -> Var:
    return Var(f"{walk.position.name}_end")


def _with_end(walk: Walk) -> Walk:
    return Walk(walk.iterator, walk.position, walk.start, _end(walk), walk.coordinate)


def _rest(it: LoopLowering, walk: Walk) -> Iterator[Stmt]:
    """What is left of one level when the others have ended."""
    body = it.case(_alone(it, walk), (walk,))
    if not body:
        return
    here = Declare(it.index, it.coordinate(walk, walk.position), constant=True)
    advance = build.increment(walk.position)
    yield While(walk.remains, build.block(here, *body, advance))


def _merge_point(it: LoopLowering, point: Point, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    cases = it.lattice.below(point)
    bodies = [(case, it.case(case, walks)) for case in cases]
    if not any(body for _, body in bodies):
        return
    code: list[Stmt] = [
        Declare(w.coordinate, it.coordinate(w, w.position), constant=True) for w in walks
    ]
    smallest = build.minimum(*(w.coordinate for w in walks))
    code.append(Declare(it.index, smallest, constant=True))
    chain = []
    for case, body in bodies:
        inside = tuple(w for w in walks if w.iterator in case.iterators)
        met = build.and_(*(build.eq(w.coordinate, it.index) for w in inside))
        chain.append((met, (*body, *_advance(it, case, walks, cases))))
    complete = all(any(c.iterators == (w.iterator,) for c in cases) for w in walks)
    if complete:
        _, last = chain[-1]
        chain[-1] = (build.const(True), last)
    else:
        chain.append((build.const(True), tuple(_advance_met(it, walks))))
    code += _choose(chain)
    yield While(build.and_(*(w.remains for w in walks)), build.block(*code))


def _advance(
    it: LoopLowering, case: Point, walks: tuple[Walk, ...], cases: tuple[Point, ...]
) -> Iterator[Stmt]:
    """Step past this coordinate, in the case of `case`.

    An iterator outside the case may stand here too, unless that would have been a case above this
    one.
    """
    for walk in walks:
        if walk.iterator in case.iterators:
            yield build.increment(walk.position)
        elif not any(set(c.iterators) == {*case.iterators, walk.iterator} for c in cases):
            yield from _advance_met(it, (walk,))


def _advance_met(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    for walk in walks:
        yield build.increment(walk.position, _as_count(build.eq(walk.coordinate, it.index)))
