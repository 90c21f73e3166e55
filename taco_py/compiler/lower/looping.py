"""The base of the code of every kind of loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from codegen import build
from codegen.ir import TRUE, Expr, Stmt, Var, While
from codegen.records import dataclass
from codegen.types import INT64
from taco_py.compiler.concrete.nodes import Forall
from taco_py.compiler.iteration.lattice import Lattice, Point
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.loop_ends import Walk, Walker
from taco_py.compiler.lower.ranges import Ranges
from taco_py.compiler.lower.sparse_result.result import Result

Body = Callable[[Scope], Iterator[Stmt]]


@dataclass(frozen=True, slots=True)
class LoopLowering:
    """The data and the code that all kinds of loops share."""

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
        """Return the variable over coordinates or entries at equal distances, None if they are
        adjacent."""
        ranges = Ranges(self.env, self.scope)
        pos = self.env.provenance.position_of(self.forall.index)
        variable = self.forall.index if pos is None else pos.child
        if pos is not None and variable not in self.scope.intervals:
            return None
        return variable if ranges.remaining(variable) is None else None

    def coordinate(self, walk: Walk, position: Expr) -> Expr:
        return self.env.iterated(walk.iterator, self.scope).coordinate(position)

    def present(self, walk: Walk) -> Expr:
        """Tell whether a coordinate is stored at the position of a walk."""
        return self.env.iterated(walk.iterator, self.scope).present(walk.position)

    def skip(self, walk: Walk) -> Iterator[Stmt]:
        """Yield the loop that advances to the next position that stores a coordinate."""
        present = self.present(walk)
        if present != TRUE:
            absent = build.and_(walk.remains, build.not_(present))
            yield While(absent, build.block(build.increment(walk.position)))

    def case(self, point: Point, walks: tuple[Walk, ...]) -> tuple[Stmt, ...]:
        """Return the body where exactly the iterators of `point` are present."""
        missing = {i.access for i in self.lattice.iterators} - {i.access for i in point.iterators}
        scope = self.scope.inside_loop(self.forall.index, frozenset(missing))
        for walk in walks:
            if walk.iterator in point.iterators:
                level = self.env.iterated(walk.iterator, self.scope)
                below = level.below(walk.position)
                scope = scope.at(walk.iterator.access, walk.iterator.level, below)
        return tuple(self.body(scope))

    def alone(self, walk: Walk) -> Point:
        """Return the case in which only one iterator is present."""
        return next(p for p in self.lattice.points if p.iterators == (walk.iterator,))


def as_count(flag: Expr) -> Expr:
    return build.cast(INT64, flag)


def choose(cases: list[tuple[Expr, tuple[Stmt, ...]]]) -> list[Stmt]:
    """Return an if-chain; a condition that is constantly true ends it, and trailing empty cases
    are dropped."""
    chain: Stmt | None = None
    for condition, body in reversed(cases):
        if condition == build.const(True):
            chain = build.block(*body) if body else None
        elif body or chain is not None:
            chain = build.if_(condition, build.block(*body), chain)
    return [] if chain is None else [chain]
