"""Loops that co-iterate several levels: by merging, or by galloping."""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import Assign, Declare, Search, Stmt, Var, While
from taco_py.compiler.concrete.nodes import Merge
from taco_py.compiler.iteration.lattice import Point
from taco_py.compiler.levels import Compressed
from taco_py.compiler.lower.loop_ends import Walk
from taco_py.compiler.lower.looping import LoopLowering, as_count, choose
from taco_py.language.diagnostics.errors import InternalError


def merge(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    """Yield a loop for each lattice point, from the top down, while all its iterators last."""
    check_alone(it, walks)
    for walk in walks:
        if _repeats(it, walk):
            raise InternalError(f"{walk.iterator} may repeat coordinates, and is merged")
        yield Declare(walk.position, walk.start)
        if not isinstance(walk.stop, Var):
            yield Declare(_end(walk), walk.stop, constant=True)
    walks = tuple(w if isinstance(w.stop, Var) else _with_end(w) for w in walks)
    for walk in walks:
        yield from it.skip(walk)
    if it.forall.mode.merge is Merge.GALLOP:
        yield from _gallop(it, walks)
        return
    for point in it.lattice.points:
        alive = tuple(w for w in walks if w.iterator in point.iterators)
        if len(alive) == 1:
            yield from _rest(it, alive[0])
        else:
            yield from _merge_point(it, point, alive)


def check_alone(it: LoopLowering, walks: tuple[Walk, ...]) -> None:
    """Raise an error where entries of a workspace would be merged: their order differs."""
    if any(walk.iterator.access.tensor in it.env.workspaces for walk in walks):
        raise InternalError("The entries of a workspace are read together with other coordinates")


def _repeats(it: LoopLowering, walk: Walk) -> bool:
    """Tell whether a level may have a coordinate several times, each with entries below it."""
    levels = it.env.tensors[walk.iterator.access.tensor].type.format.levels
    level = walk.iterator.level
    return level < len(levels) - 1 and not levels[level].unique


def _gallop(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    """Yield the intersection of all levels: each level behind gallops to the largest coordinate.

    (Demaine, López-Ortiz and Munro 2000, Adaptive set intersections.)
    """
    (point,) = it.lattice.points
    body = it.case(point, walks)
    if not body:
        return
    coordinates = [
        Declare(w.coordinate, it.coordinate(w, w.position), constant=True) for w in walks
    ]
    largest = build.maximum(*(w.coordinate for w in walks))
    all_match = build.and_(*(build.eq(w.coordinate, it.index) for w in walks))
    step = [build.increment(walk.position) for walk in walks]
    leaps = [build.if_(build.lt(walk.coordinate, it.index), _leap(it, walk)) for walk in walks]
    yield While(
        build.and_(*(w.remains for w in walks)),
        build.block(
            *coordinates,
            Declare(it.index, largest, constant=True),
            build.if_(all_match, build.block(*body, *step), build.block(*leaps)),
        ),
    )


def _leap(it: LoopLowering, walk: Walk) -> Stmt:
    level = it.env.iterated(walk.iterator, it.scope)
    if not isinstance(level, Compressed):
        raise InternalError(f"No coordinate can be searched for in {walk.iterator}")
    start = build.add(walk.position, 1)
    return Assign(walk.position, Search(level.crd, start, walk.stop, it.index, near=True))


def _end(walk: Walk) -> Var:
    return Var(f"{walk.position.name}_end")


def _with_end(walk: Walk) -> Walk:
    return Walk(walk.iterator, walk.position, walk.start, _end(walk), walk.coordinate)


def _rest(it: LoopLowering, walk: Walk) -> Iterator[Stmt]:
    """Yield the loop over the rest of one level, after the others have ended."""
    body = it.case(it.alone(walk), (walk,))
    if not body:
        return
    coordinate = Declare(it.index, it.coordinate(walk, walk.position), constant=True)
    advance = build.increment(walk.position)
    yield While(walk.remains, build.block(coordinate, *body, advance, *it.skip(walk)))


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
        all_match = build.and_(*(build.eq(w.coordinate, it.index) for w in inside))
        chain.append((all_match, (*body, *_advance(it, case, walks, cases))))
    complete = all(any(c.iterators == (w.iterator,) for c in cases) for w in walks)
    if complete:
        _, last = chain[-1]
        chain[-1] = (build.const(True), last)
    else:
        chain.append((build.const(True), tuple(_advance_matching(it, walks))))
    code += choose(chain)
    yield While(build.and_(*(w.remains for w in walks)), build.block(*code))


def _advance(
    it: LoopLowering, case: Point, walks: tuple[Walk, ...], cases: tuple[Point, ...]
) -> Iterator[Stmt]:
    """Yield code that advances past this coordinate, in the case of `case`.

    An iterator outside the case may be at this coordinate too, unless that were a case above this
    one.
    """
    for walk in walks:
        if walk.iterator in case.iterators:
            yield build.increment(walk.position)
            yield from it.skip(walk)
        elif not any(set(c.iterators) == {*case.iterators, walk.iterator} for c in cases):
            yield from _advance_matching(it, (walk,))


def _advance_matching(it: LoopLowering, walks: tuple[Walk, ...]) -> Iterator[Stmt]:
    for walk in walks:
        yield build.increment(walk.position, as_count(build.eq(walk.coordinate, it.index)))
        yield from it.skip(walk)
