"""Bounds of one loop: along its index, and on each sparse level that it walks."""

from __future__ import annotations

from codegen import build
from codegen.ir import Expr, Stmt, Var
from codegen.records import dataclass
from taco_py.compiler.iteration import region
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.ranges import Ranges, chain, in_variable
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.provenance.relations import Interval, Pos


@dataclass(frozen=True, slots=True)
class Walk:
    """The walk of one iterator: its position variable, its bounds, and its current coordinate."""

    iterator: region.Iterator
    position: Var
    start: Expr
    stop: Expr
    coordinate: Var

    @property
    def remains(self) -> Expr:
        return build.lt(self.position, self.stop)


@dataclass(frozen=True, slots=True)
class Walker:
    """The extent of a loop over `index`; code to run before the loop goes to `prelude`.

    pos  the positions through which the loop walks, None where it reads nothing at them
    """

    env: Environment
    scope: Scope
    index: str
    pos: Pos | None
    prelude: list[Stmt]

    @property
    def coordinates(self) -> Interval | None:
        """Return the coordinates that tiles leave, or the coordinates of the piece; None if they
        are not adjacent."""
        piece = self.scope.piece_of(self.index)
        if piece is not None:
            return piece
        ranges = Ranges(self.env, self.scope)
        if self.pos is None:
            return ranges.remaining(self.index)
        access, levels = chain(self.env, self.pos)
        level = levels[self.env.provenance.roots(self.pos.parent).index(self.index)]
        left = self.scope.left.get((access, level))
        parent = self.scope.position(access, level - 1)
        full = self.env.tensors[access.tensor].type.format.levels[level].full
        if left is None or parent is None or not full:
            return ranges.remaining(self.index)
        start = build.mul(parent, self.env.sizes[self.index])
        interval = Interval(build.sub(left.lo, start), build.sub(left.hi, start))
        return interval if level == levels[0] else interval.clipped(ranges.full(self.index))

    def extent(self) -> Interval:
        """Return the range of coordinates to count through, in variables."""
        coordinates = self.coordinates
        if coordinates is None:
            raise InternalError(f"The coordinates of {self.index} here are not neighbours")
        return self.in_variables(coordinates, self.env.indices[self.index].name)

    def walk(self, iterator: region.Iterator) -> Walk:
        """Return the iterator's bounds below the current position of its parent level."""
        parent = self.scope.position(iterator.access, iterator.level - 1)
        if parent is None:
            raise InternalError(
                f"Level {iterator.level} of {iterator.access.tensor} is walked before its parent"
            )
        position = self.env.position_var(iterator.access, iterator.level)
        segment = Interval(*self.env.iterated(iterator, self.scope).bounds(parent))
        left = self.left_of(iterator, segment)
        if left is not segment:
            left = self.in_variables(left, position.name)
        at = Var(f"{self.env.indices[self.index].name}_{position.name}")
        return Walk(iterator, position, left.lo, left.hi, at)

    def left_of(self, iterator: region.Iterator, segment: Interval) -> Interval:
        """Return the part of a segment of positions that loops over tiles leave."""
        level = self.env.iterated(iterator, self.scope)
        if level.search(segment.lo, segment.hi, build.const(0)) is None:
            return segment
        left = self.scope.left.get((iterator.access, iterator.level))
        if left is not None:
            above = (iterator.access, iterator.level - 1) in self.scope.left
            segment = left.clipped(segment) if above else left
        tile = self.coordinates if left is None else self.scope.piece_of(self.index)
        if tile is None or tile == Ranges(self.env, self.scope).full(self.index):
            return segment
        first_position = level.search(segment.lo, segment.hi, tile.lo)
        assert first_position is not None
        first = in_variable(self.env, "begin", first_position, self.prelude)
        last = level.search(first, segment.hi, tile.hi)
        assert last is not None
        return Interval(first, last)

    def in_variables(self, interval: Interval, name: str) -> Interval:
        lo = in_variable(self.env, f"{name}_begin", interval.lo, self.prelude)
        return Interval(lo, in_variable(self.env, f"{name}_end", interval.hi, self.prelude))
