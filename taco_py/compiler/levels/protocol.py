"""The protocol of levels that are iterated by position."""

from __future__ import annotations

from typing import Protocol

from codegen import build
from codegen.ir import TRUE, Array, Expr
from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class LevelStorage:
    """The index arrays of one level of one tensor; None where its kind has none."""

    pos: Array | None = None
    crd: Array | None = None


@dataclass(frozen=True, slots=True)
class Above:
    """Expressions known above a level; None where unknown or unused.

    parent      the position of the level above
    size        of the level's mode
    coordinate  of the level above
    grand       the position of the level above that one
    full        whether the level above has every coordinate of its mode
    path        the coordinates of all levels above, the outermost first, None where not known
    """

    parent: Expr | None = None
    size: Expr | None = None
    coordinate: Expr | None = None
    grand: Expr | None = None
    full: bool = False
    path: tuple[Expr | None, ...] = ()


class Iterated(Protocol):
    """A level whose stored coordinates are iterated position by position.

    branchless: at most one position below each parent position, so that no loop is needed.
    """

    @property
    def branchless(self) -> bool: ...

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return the first position below `parent`, and one past the last."""
        ...

    def coordinate(self, position: Expr) -> Expr:
        """Return the coordinate stored at `position`."""
        ...

    def present(self, position: Expr) -> Expr:
        """Tell whether a coordinate is stored at `position`."""
        ...

    def below(self, position: Expr) -> Expr:
        """Return the position of levels below, and of values, for the entry at `position`."""
        ...

    def origin(self, parent: Expr) -> Expr | None:
        """Return the position of coordinate 0 if every coordinate has a position, else None."""
        ...

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr | None:
        """Return the first position from `begin` to `end` whose coordinate is at least
        `coordinate`.

        None where this cannot be computed without looking at each of them.
        """
        ...


class EachStored:
    """A level of which each position has a coordinate, and a position below it."""

    __slots__ = ()

    def present(self, position: Expr) -> Expr:
        """Return true."""
        return TRUE

    def below(self, position: Expr) -> Expr:
        """Return `position` itself."""
        return position

    def origin(self, parent: Expr) -> Expr | None:
        """Return None: not every coordinate has a position."""
        return None

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr | None:
        """Return None: each position must be looked at."""
        return None


class Segments(EachStored):
    """A level whose positions below a parent are those between two ends in `pos`."""

    __slots__ = ()
    pos: Array

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return `pos[parent]`, `pos[parent + 1]`."""
        return build.load_index(self.pos, parent), build.load_index(self.pos, build.add(parent, 1))


class OnePosition(EachStored):
    """A level with one position below each parent: the parent's."""

    __slots__ = ()

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return `parent`, `parent + 1`."""
        return parent, build.add(parent, 1)
