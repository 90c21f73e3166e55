"""Padded levels: one coordinate crd[p] below each parent position p, none where it is -1."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.levels.protocol import EachStored


@dataclass(frozen=True, slots=True)
class Padded(EachStored):
    """The level functions over its one array."""

    crd: Array
    branchless: bool = True

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """`parent`, `parent + 1`."""
        return parent, build.add(parent, 1)

    def coordinate(self, position: Expr) -> Expr:
        """`crd[position]`."""
        return build.load_index(self.crd, position)

    def present(self, position: Expr) -> Expr:
        """`crd[position] >= 0`."""
        return build.ge(build.load_index(self.crd, position), 0)
