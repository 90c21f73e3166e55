"""A sparse result whose structure is an input: coordinates are compared, and values are written.

    total = C2_pos[n]                      C = ds, C2_pos and C2_crd are read only
    for i …
      end = C2_pos[i + 1]
      expect pC2 == C2_pos[i] && end <= total
      for j …
        expect pC2 < end && C2_crd[pC2] == j
        C_vals[pC2] = …;  pC2++
    expect pC2 == total

Where all of this holds, the computed entries are those of the structure, in the same order; where
it does not, the kernel ends at once, so that it never writes past the values. (Kjolstad et al.
2017, section 6.3 has the functions that assemble and that compute, the latter without checks.)

A row that was gathered in a workspace is read in the order of the structure's coordinates, each
checked against the marks of the workspace. The row need not be sorted then:

      while pC2 < end:
        j = C2_crd[pC2]
        expect 0 <= j < n && w_set[j]
        C_vals[pC2] = w[j];  pC2++
      expect w_count == pC2 - C2_pos[i]
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import Array, Declare, Expect, Expr, Search, Stmt, Var, While
from codegen.records import dataclass
from taco_py.compiler.levels import Compressed
from taco_py.compiler.lower.environment import WorkspaceArrays, level_functions
from taco_py.compiler.lower.sparse_result.result import ZERO, Group, Result
from taco_py.language.diagnostics.errors import InternalError


@dataclass(frozen=True, slots=True)
class FixedResult(Result):
    """A range of a result whose structure is an input.

    starts  the number of entries before the range, a group each
    stops   the end of its entries, a group each; none where that is checked elsewhere
    ends    for each group, the number of entries up to the end of the current segment
    totals  for each group, the number of entries
    cut     whether the range may begin and end within a segment of the first group, or visits a
            segment once for each of its entries
    rows    workspaces that are read in the order of the structure's coordinates
    """

    starts: tuple[Expr, ...] = ()
    stops: tuple[Expr, ...] = ()
    ends: tuple[Var, ...] = ()
    totals: tuple[Var, ...] = ()
    cut: bool = False
    rows: frozenset[str] = frozenset()

    def prologue(self) -> Iterator[Stmt]:
        for total, count in zip(self.totals, self.before(None), strict=True):
            yield Declare(total, count, constant=True)
        for group, start, total in zip(self.groups, self.starts, self.totals, strict=True):
            yield Declare(group.counter, start)
            if start != ZERO:  # read from the pattern, and where the next group's start is read
                inside = build.and_(build.le(ZERO, group.counter), build.le(group.counter, total))
                yield Expect(inside)
        if self.root is not None:
            end = build.load_index(self.root, build.const(1))
            yield Declare(self.end_of(self.groups[0]), end, constant=True)

    def epilogue(self) -> Iterator[Stmt]:
        for group, stop in zip(self.groups, self.stops, strict=False):
            yield Expect(build.eq(group.counter, stop))

    def enter(self, level: int, bound: Expr) -> Iterator[Stmt]:
        yield from ()

    def open(self, level: int, position: Expr, read: bool = False) -> Iterator[Stmt]:
        group, below = self.group_of(level), self.group_below(level)
        if below is not None:
            yield from self._begin(below, position, group)
        elif group is not None and group.last == level:
            if not read and not self.has_group_below(level):
                yield Expect(self._matches(group))
            yield from self._zeros(level, group)

    def close(self, level: int, position: Expr) -> Iterator[Stmt]:
        group, below = self.group_of(level), self.group_below(level)
        if group is None or group.last != level:
            return
        count = build.increment(group.counter)
        if below is None:
            yield build.if_(self._matches(group), count) if self.has_group_below(level) else count
            return
        first = build.load_index(self._pos(below), group.counter)
        entry = build.block(Expect(build.eq(first, below.start)), count)
        yield build.if_(build.lt(below.start, below.counter), entry)

    def end_of(self, group: Group) -> Var:
        """Return the number of entries up to the end of the current segment."""
        return self.ends[self.groups.index(group)]

    def crd(self, level: int, position: Expr) -> Expr:
        """Return the coordinate that the structure has at `position`."""
        return level_functions(self.arrays, level).coordinate(position)

    def before(self, outermost: Expr | None) -> tuple[Expr, ...]:
        """Return the number of entries of each group before the coordinate `outermost`.

        The coordinate is one of the outermost level; None stands for its end.
        """
        counts: list[Expr] = []
        positions: Expr = build.const(1)
        for level, size in enumerate(self.sizes):
            group = self.group_of(level)
            if group is None:
                positions = build.mul(positions, size) if level or outermost is None else outermost
            elif level == group.first:
                pos = self._pos(group)
                edge = build.load_index(pos, positions)
                if level == 0 and outermost is not None:
                    crd = level_functions(self.arrays, 0).crd
                    edge = Search(crd, ZERO, edge, outermost)
                positions = edge
                counts.append(edge)
        return tuple(counts)

    def _pos(self, group: Group) -> Array:
        functions = level_functions(self.arrays, group.first)
        if not isinstance(functions, Compressed):
            raise InternalError(f"Level {group.first} of {self.access} has no segments")
        return functions.pos

    def _matches(self, group: Group) -> Expr:
        """Tell whether the next entry of the structure is the current one."""
        coordinates = (
            build.eq(self.crd(level, group.counter), Var(self.order[level]))
            for level in range(group.first, group.last + 1)
        )
        return build.and_(build.lt(group.counter, self.end_of(group)), *coordinates)

    def _begin(self, below: Group, position: Expr, group: Group | None) -> Iterator[Stmt]:
        """Yield the begin of the segment of `position`.

        It is empty where that position is not the next entry of `group`, or of the group above
        dense levels.
        """
        group = group or next((g for g in reversed(self.groups) if g.last < below.first), None)
        pos, end = self._pos(below), self.end_of(below)
        fits = build.le(end, self.totals[self.groups.index(below)])
        after = build.load_index(pos, build.add(position, 1))
        yield Declare(below.start, below.counter, constant=True)
        if group is not None:
            segment_end = build.select(self._matches(group), after, below.counter)
            yield Declare(end, segment_end, constant=True)
            yield Expect(fits)
            return
        first, cut = build.load_index(pos, position), self.cut and below is self.groups[0]
        reached = build.le(first, below.counter) if cut else build.eq(first, below.counter)
        yield Declare(end, after, constant=True)
        yield Expect(build.and_(reached, fits))


def read_row(
    result: FixedResult, level: int, index: Var, row: WorkspaceArrays, body: tuple[Stmt, ...]
) -> Iterator[Stmt]:
    """Yield `body` for each coordinate that the structure has in the current segment.

    Each is checked to be one of `row`.
    """
    group = result.group_of(level)
    if group is None or row.marks is None or row.count is None:
        raise InternalError(f"The workspace {row.workspace.name} is read as if it were a row")
    coordinate = Declare(index, result.crd(level, group.counter), constant=True)
    inside = build.and_(build.le(ZERO, index), build.lt(index, result.sizes[level]))
    is_marked = Expect(build.and_(inside, build.load(row.marks, index)))
    begin = group.start if group.first else result.starts[0]
    more = build.lt(group.counter, result.end_of(group))
    yield While(more, build.block(coordinate, is_marked, *body))
    yield Expect(build.eq(row.count, build.sub(group.counter, begin)))
