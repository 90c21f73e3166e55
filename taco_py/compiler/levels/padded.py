"""Padded levels: one coordinate crd[p] below each parent position p, none where it is -1."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import OnePosition


@dataclass(frozen=True, slots=True)
class Padded(OnePosition):
    """The level functions over its one array."""

    crd: Array
    branchless: bool = True

    def coordinate(self, position: Expr) -> Expr:
        """Return `crd[position]`."""
        return build.load_index(self.crd, position)

    def present(self, position: Expr) -> Expr:
        """Return `crd[position] >= 0`."""
        return build.ge(build.load_index(self.crd, position), 0)
