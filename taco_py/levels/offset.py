"""Offset levels: below a position with coordinate i lies the coordinate i + crd[q] alone.

q is the position two levels above: entries below it are of one diagonal.
"""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.levels.protocol import EachStored


@dataclass(frozen=True, slots=True)
class Offset(EachStored):
    """The level functions below one parent.

    near   the coordinate of the level above
    grand  the position of the level above that one
    """

    crd: Array
    near: Expr
    grand: Expr
    size: Expr
    branchless: bool = True

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """`parent`, `parent + 1`."""
        return parent, build.add(parent, 1)

    def coordinate(self, position: Expr) -> Expr:
        """`i + crd[q]`."""
        return build.add(self.near, build.load_index(self.crd, self.grand))

    def present(self, position: Expr) -> Expr:
        """`0 <= i + crd[q] < size`."""
        found = self.coordinate(position)
        return build.and_(build.ge(found, 0), build.lt(found, self.size))
