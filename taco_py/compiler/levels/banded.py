"""Banded levels: below parent p lie neighbouring coordinates from crd[p] on, each with a value."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import Segments


@dataclass(frozen=True, slots=True)
class Banded(Segments):
    """The level functions below one parent."""

    pos: Array
    crd: Array
    parent: Expr
    branchless: bool = False

    def coordinate(self, position: Expr) -> Expr:
        """Return `position + (crd[parent] - pos[parent])`."""
        return build.add(position, self._shift)

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        """Return `coordinate - (crd[parent] - pos[parent])`, clamped to `begin` and `end`."""
        position = build.sub(coordinate, self._shift)
        return build.maximum(begin, build.minimum(end, position))

    @property
    def _shift(self) -> Expr:
        first = build.load_index(self.crd, self.parent)
        return build.sub(first, build.load_index(self.pos, self.parent))
