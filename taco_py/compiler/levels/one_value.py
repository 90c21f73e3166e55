"""Pattern levels: coordinates as a compressed level has them, with one value for all of them."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Expr
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import Segments


@dataclass(frozen=True, slots=True)
class Pattern(Segments):
    """The level functions over its two arrays."""

    pos: Array
    crd: Array
    branchless: bool = False

    def coordinate(self, position: Expr) -> Expr:
        """Return `crd[position]`."""
        return build.load_index(self.crd, position)

    def below(self, position: Expr) -> Expr:
        """Return 0, the position of the one value."""
        return build.const(0)
