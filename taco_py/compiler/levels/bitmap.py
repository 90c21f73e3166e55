"""Bitmap levels: each coordinate has a position, and a bit of crd says whether it is stored.

Each parent has whole words of bits: one where the mode has no more coordinates than a word bits.
"""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Const, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import EachStored


@dataclass(frozen=True, slots=True)
class Bitmap(EachStored):
    """The level functions below one parent."""

    crd: Array
    parent: Expr
    size: Expr
    branchless: bool = False

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return `parent * size`, `parent * size + size`."""
        begin = build.mul(parent, self.size)
        return begin, build.add(begin, self.size)

    def origin(self, parent: Expr) -> Expr:
        """Return `parent * size`."""
        return build.mul(parent, self.size)

    def coordinate(self, position: Expr) -> Expr:
        """Return `position - parent * size`."""
        return build.sub(position, build.mul(self.parent, self.size))

    def present(self, position: Expr) -> Expr:
        """Return bit `j % 32` of word `parent * ⌈size / 32⌉ + j / 32` of crd, for the coordinate
        j."""
        bits, coordinate = 8 * self.crd.element.itemsize, self.coordinate(position)
        if isinstance(self.size, Const) and int(self.size.value.real) <= bits:
            return build.bit(build.load_index(self.crd, self.parent), coordinate)
        words = build.div(build.add(self.size, bits - 1), bits)
        word = build.add(build.mul(self.parent, words), build.div(coordinate, bits))
        return build.bit(build.load_index(self.crd, word), build.mod(coordinate, bits))

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        """Return `parent * size + coordinate`, clamped to `begin` and `end`."""
        position = build.add(build.mul(self.parent, self.size), coordinate)
        return build.maximum(begin, build.minimum(end, position))
