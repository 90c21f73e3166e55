"""Interval levels: below parent p lie the coordinates pos[p] … crd[p]-1, with one value for all."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import EachStored


@dataclass(frozen=True, slots=True)
class IntervalLevel(EachStored):
    """The level functions below one parent: positions are the coordinates themselves."""

    pos: Array
    crd: Array
    parent: Expr
    branchless: bool = False

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return `pos[parent]`, `crd[parent]`."""
        return build.load_index(self.pos, parent), build.load_index(self.crd, parent)

    def coordinate(self, position: Expr) -> Expr:
        """Return `position` itself."""
        return position

    def below(self, position: Expr) -> Expr:
        """Return `parent`, which has the value of all coordinates."""
        return self.parent

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        """Return `coordinate`, clamped to `begin` and `end`."""
        return build.maximum(begin, build.minimum(end, coordinate))
