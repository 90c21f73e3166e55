"""Singleton levels: one coordinate crd[p] below each parent position p."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr, Stmt, Store
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import OnePosition


@dataclass(frozen=True, slots=True)
class Singleton(OnePosition):
    """The level functions over its one array."""

    crd: Array
    branchless: bool = True

    def coordinate(self, position: Expr) -> Expr:
        """Return `crd[position]`."""
        return build.load_index(self.crd, position)

    def append(self, position: Expr, coordinate: Expr) -> Stmt:
        """Return `crd[position] = coordinate`."""
        value = build.cast(self.crd.element, coordinate)
        return Store(self.crd, position, value)
