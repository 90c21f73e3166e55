"""Hashed levels: a table of coordinates below each parent, -1 where a slot is free."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import Segments


@dataclass(frozen=True, slots=True)
class Hashed(Segments):
    """The level functions over its two arrays; coordinates come in no order."""

    pos: Array
    crd: Array
    branchless: bool = False

    def coordinate(self, position: Expr) -> Expr:
        """Return `crd[position]`."""
        return build.load_index(self.crd, position)

    def present(self, position: Expr) -> Expr:
        """Return `crd[position] >= 0`."""
        return build.ge(build.load_index(self.crd, position), 0)
