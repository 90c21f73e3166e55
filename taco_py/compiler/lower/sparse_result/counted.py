"""A sparse result in the two phases of its insertion: entries are counted, then written in place.

(`taco_py.compiler.lower.sparse_result.inserted` has the code around.) A range of the outermost loop
may begin and end within a row, where threads share tiles of an operand's entries. The edge after a
row is then written by the range that first comes to a later row:

    row i of this range     pos[…] = the counter, for all rows before i that it has not written yet
    after all ranges        pos[…] = the total, for the remaining rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from codegen import build
from codegen.ir import Assign, Declare, Expr, Stmt, Var
from codegen.records import dataclass
from taco_py.compiler.lower.sparse_result.result import ZERO, Group, Result
from taco_py.language.provenance.relations import Interval


@dataclass(frozen=True, slots=True)
class Counted(Result):
    """The result while its entries are counted: nothing is stored.

    reached  the last position above the first group with an entry, where that is needed
    """

    reached: Var | None = None

    def begin_of(self, level: int) -> tuple[Group, Var] | None:
        return _begin_right_below(self, level)

    def prologue(self) -> Iterator[Stmt]:
        for group in self.groups:
            yield Declare(group.counter, ZERO)
        if self.reached is not None:
            yield Declare(self.reached, ZERO)

    def epilogue(self) -> Iterator[Stmt]:
        yield from ()

    def enter(self, level: int, bound: Expr) -> Iterator[Stmt]:
        yield from ()

    def open(self, level: int, position: Expr, read: bool = False) -> Iterator[Stmt]:
        below = self.group_below(level)
        if below is not None:
            yield Declare(below.start, below.counter)
            if self.reached is not None and below is self.groups[0]:
                yield Assign(self.reached, position)
        yield from self.begin_entry(level)

    def close(self, level: int, position: Expr) -> Iterator[Stmt]:
        group = self.group_of(level)
        if group is not None and group.last == level:
            yield from self.if_filled(level, iter((build.increment(group.counter),)))


@dataclass(frozen=True, slots=True)
class Inserted(Result):
    """A range of the result, written in place.

    starts    the number of entries before the range, a group each
    extent    its coordinates of the outermost level, where that is dense and ranges are disjoint
    segments_before  otherwise the segments of the first group, which earlier ranges complete
    """

    starts: tuple[Expr, ...] = ()
    extent: Interval | None = None
    segments_before: Expr | None = None

    def begin_of(self, level: int) -> tuple[Group, Var] | None:
        return _begin_right_below(self, level)

    def prologue(self) -> Iterator[Stmt]:
        above = self._segments(None if self.extent is None else self.extent.lo)
        for (group, segments), start in zip(above, self.starts, strict=True):
            yield Declare(group.counter, start)
            if group.filled is not None:
                first = self.segments_before if self._is_cut(group) else None
                yield Declare(group.filled, first or segments)

    def epilogue(self) -> Iterator[Stmt]:
        for group, segments in self._segments(None if self.extent is None else self.extent.hi):
            if not self._is_cut(group):
                yield from self.complete(group, segments)

    def enter(self, level: int, bound: Expr) -> Iterator[Stmt]:
        yield from ()

    def close(self, level: int, position: Expr) -> Iterator[Stmt]:
        """Yield the code of `Result.close`, without an edge where the position above is not stored.

        That edge belongs to another range, or to none.
        """
        group, below = self.group_of(level), self.group_below(level)
        if group is not None and below is not None:
            entry = build.block(*self.finish(below, position), *self.append(group))
            yield build.if_(build.lt(below.start, below.counter), entry)
        elif below is None or not self._is_cut(below):
            yield from Result.close(self, level, position)

    def _is_cut(self, group: Group) -> bool:
        """Tell whether the range may begin within one of the group's segments."""
        return self.segments_before is not None and group is self.groups[0]

    def _segments(self, outermost: Expr | None) -> Iterator[tuple[Group, Expr]]:
        """Yield each group with the number of positions above it that come before `outermost`."""
        positions: Expr = build.const(1)
        for level, size in enumerate(self.sizes):
            group = self.group_of(level)
            if group is None:
                positions = build.mul(positions, size) if level or outermost is None else outermost
                continue
            if level == group.first:
                yield group, positions
            positions = group.counter


def _begin_right_below(result: Result, level: int) -> tuple[Group, Var] | None:
    """Return the group just below an entry's level; an entry above dense levels is always stored.

    Were it not, the edges of these levels would lie at positions of another range.
    """
    below = result.group_below(level)
    return None if below is None else (below, below.start)


def counted(result: Result, reached: Var | None) -> Counted:
    """Return the `result` in the phase that counts entries."""
    return Counted(**_fields(result), reached=reached)


def inserted(
    result: Result,
    starts: tuple[Expr, ...],
    extent: Interval | None = None,
    segments_before: Expr | None = None,
) -> Inserted:
    """Return a range of `result`, see `Inserted`."""
    return Inserted(
        **_fields(result), starts=starts, extent=extent, segments_before=segments_before
    )


def _fields(result: Result) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in fields(result)}
