"""Ragged levels: below parent p lie the coordinates 0 … pos[p+1]-pos[p]-1, each with a value."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import Segments


@dataclass(frozen=True, slots=True)
class Ragged(Segments):
    """The level functions below one parent."""

    pos: Array
    parent: Expr
    branchless: bool = False

    def coordinate(self, position: Expr) -> Expr:
        """Return `position - pos[parent]`."""
        return build.sub(position, build.load_index(self.pos, self.parent))

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        """Return `pos[parent] + coordinate`, clamped to `begin` and `end`."""
        position = build.add(build.load_index(self.pos, self.parent), coordinate)
        return build.maximum(begin, build.minimum(end, position))
