"""Compressed levels: below parent p lie the coordinates crd[pos[p]] … crd[pos[p+1] - 1]."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Const, Expr, Search, Stmt, Store
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import Segments


@dataclass(frozen=True, slots=True)
class Compressed(Segments):
    """The level functions over its two arrays."""

    pos: Array
    crd: Array
    branchless: bool = False

    def coordinate(self, position: Expr) -> Expr:
        """Return `crd[position]`."""
        return build.load_index(self.crd, position)

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        """Search by bisection; return `begin` for coordinate 0."""
        if coordinate == Const(0):
            return begin
        return Search(self.crd, begin, end, coordinate)

    def append(self, position: Expr, coordinate: Expr) -> Stmt:
        """Return `crd[position] = coordinate`."""
        value = build.cast(self.crd.element, coordinate)
        return Store(self.crd, position, value)

    def append_edges(self, parent: Expr, end: Expr) -> Stmt:
        """Return `pos[parent + 1] = end`: the segment of `parent` is complete."""
        value = build.cast(self.pos.element, end)
        return Store(self.pos, build.add(parent, 1), value)
