"""Levels of workspaces that a consumer walks: the coordinates that its producer wrote."""

from __future__ import annotations

from codegen import build
from codegen.ir import Array, Count, Expr, Key, Ranked, Table
from codegen.records import dataclass
from taco_py.compiler.levels.protocol import EachStored


@dataclass(frozen=True, slots=True)
class RowList(EachStored):
    """A row workspace: `list[base]` … `list[base + count - 1]` are the coordinates written to it.

    They are sorted, or in the order in which they came.
    """

    list: Array
    count: Expr
    base: Expr
    branchless: bool = False

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return `0`, `count`."""
        return build.const(0), self.count

    def coordinate(self, position: Expr) -> Expr:
        """Return `list[base + position]`."""
        return build.load_index(self.list, build.add(self.base, position))


@dataclass(frozen=True, slots=True)
class TableMode(EachStored):
    """One mode of a sorted hash workspace, whose keys are coordinates linearised row-major.

    `inner` is the product of the sizes of the modes after this one; `size` is the size of this
    mode, or None for the first. Modes after the first are branchless: an entry has one coordinate
    in each.
    """

    table: Table
    inner: Expr
    size: Expr | None
    branchless: bool

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """Return all entries for the first mode; the parent's entry for the others."""
        if self.branchless:
            return parent, build.add(parent, 1)
        return build.const(0), Count(self.table)

    def coordinate(self, position: Expr) -> Expr:
        """Return `key / inner % size` of the entry with this rank."""
        quotient = build.div(Key(self.table, Ranked(self.table, position)), self.inner)
        return quotient if self.size is None else build.mod(quotient, self.size)
