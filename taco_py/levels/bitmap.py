"""Bitmap levels: each coordinate has a position, and a bit of crd says whether it is stored."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.levels.protocol import EachStored


@dataclass(frozen=True, slots=True)
class Bitmap(EachStored):
    """The level functions below one parent."""

    crd: Array
    parent: Expr
    size: Expr
    branchless: bool = False

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """`parent * size`, `(parent + 1) * size`."""
        return build.mul(parent, self.size), build.mul(build.add(parent, 1), self.size)

    def coordinate(self, position: Expr) -> Expr:
        """`position - parent * size`."""
        return build.sub(position, build.mul(self.parent, self.size))

    def present(self, position: Expr) -> Expr:
        """Bit `position % 32` of `crd[position / 32]`, in words of 32 bits."""
        bits = 8 * self.crd.element.itemsize
        word = build.load_index(self.crd, build.div(position, bits))
        return build.bit(word, build.mod(position, bits))

    def search(self, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        """`parent * size + coordinate`, within the ends."""
        found = build.add(build.mul(self.parent, self.size), coordinate)
        return build.maximum(begin, build.minimum(end, found))
