"""Offset levels: below a position with coordinate i lies the coordinate i + crd[q] alone.

q is the position two levels above: entries below it are of one diagonal.
"""

from __future__ import annotations

from codegen import build
from codegen.ir import TRUE, Array, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import OnePosition


@dataclass(frozen=True, slots=True)
class Offset(OnePosition):
    """The level functions below one parent.

    near   the coordinate of the level above
    grand  the position of the level above that one
    full   whether the level above has every coordinate, also those outside of the diagonal
    """

    crd: Array
    near: Expr
    grand: Expr
    size: Expr
    full: bool
    branchless: bool = True

    def coordinate(self, position: Expr) -> Expr:
        """Return `i + crd[q]`."""
        return build.add(self.near, build.load_index(self.crd, self.grand))

    def present(self, position: Expr) -> Expr:
        """Return `0 <= i + crd[q] < size`; true where the level above stores entries alone."""
        if not self.full:
            return TRUE
        coordinate = self.coordinate(position)
        return build.and_(build.ge(coordinate, 0), build.lt(coordinate, self.size))
