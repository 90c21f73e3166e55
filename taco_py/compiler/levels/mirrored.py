"""Levels of symmetric tensors: an entry (r, c) of a triangle is visited as (r, c) and as (c, r).

for r, for c of row r:           levels of the triangle
  for w in 0, 1:                 a pair, which has the position of its parent twice
    i = w == 0 ? r : c           mirrored, unless w == 1 and r == c
    j = w == 0 ? c : r           mirrored
"""

from __future__ import annotations

from codegen import build
from codegen.ir import TRUE, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import EachStored, OnePosition


@dataclass(frozen=True, slots=True)
class Pair(EachStored):
    """The level functions below one parent, whose coordinates are 0 and 1."""

    parent: Expr
    branchless: bool = False

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return 0, 2."""
        return build.const(0), build.const(2)

    def coordinate(self, position: Expr) -> Expr:
        """Return `position` itself."""
        return position

    def below(self, position: Expr) -> Expr:
        """Return `parent`, for both positions."""
        return self.parent


@dataclass(frozen=True, slots=True)
class Mirrored(OnePosition):
    """The level functions below one parent.

    row, column  of the entry of the triangle
    turn         of the pair
    first        whether this is the level of the first mode of the tensor
    """

    row: Expr
    column: Expr
    turn: Expr
    first: bool
    branchless: bool = True

    def coordinate(self, position: Expr) -> Expr:
        """Return the row in turn 0 and the column in turn 1; for the second mode, the other."""
        unturned, turned = (self.row, self.column) if self.first else (self.column, self.row)
        return build.select(build.eq(self.turn, 0), unturned, turned)

    def present(self, position: Expr) -> Expr:
        """Return false for the second visit of an entry of the diagonal, at the first mode."""
        if not self.first:
            return TRUE
        return build.or_(build.eq(self.turn, 0), build.ne(self.row, self.column))
