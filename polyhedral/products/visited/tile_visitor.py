"""What is done with each tile of a product while its elements are near, in place of storing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen.build import add, block, const, load, mul, zero
from codegen.ir import Allocate, Array, Block, Expr, For, Stmt, Storage, Store, Var
from codegen.records import dataclass

NEAR_ELEMENTS = 1 << 12
"""Elements of rows that are visited together: they stay in the first cache."""
MOST_ROWS = 64
"""The most rows that are visited together."""
PART_ROW, PART_COLUMN, PART_BLOCK = Var("part_row"), Var("part_column"), Var("part_block")


@dataclass(frozen=True, slots=True)
class Region:
    """A tile of the result: `tile` holds its elements, `pitch` of them from one row to the next.

    row, column    of its first element in the result
    rows, columns  how many it has
    block          the number of the block of rows that it is in
    width          columns of the result
    """

    tile: Array
    pitch: Expr
    row: Expr
    column: Expr
    rows: Expr
    columns: Expr
    block: Expr
    width: Expr


@dataclass(frozen=True, slots=True)
class Part:
    """Sums of one result over rows: `array` holds one for each block of rows, which are added up in
    order at the end.

    wide   whether it is a row, not a number
    total  where the sum goes, `stride` elements from one column to the next
    """

    array: Array
    wide: bool
    total: Array
    stride: Expr

    @property
    def local(self) -> Array:
        """Return the array itself, of which functions inside have a pointer."""
        return replace(self.array, storage=Storage.LOCAL)

    def width(self, columns: Expr) -> Expr:
        """Return the elements for each block of rows."""
        return columns if self.wide else const(1)

    def added(self, columns: Expr, blocks: Expr) -> Block:
        """Return code that adds the blocks' sums up in order."""
        width = self.width(columns)
        at = mul(PART_COLUMN, self.stride)
        each = load(self.local, add(mul(PART_BLOCK, width), PART_COLUMN))

        def over_columns(stmt: Stmt) -> For:
            return For(PART_COLUMN, const(0), width, Block((stmt,)))

        cleared = over_columns(Store(self.total, at, zero(self.total.element)))
        summed = over_columns(Store(self.total, at, each, "+"))
        return block(cleared, For(PART_BLOCK, const(0), blocks, Block((summed,))))


@dataclass(frozen=True, slots=True)
class Visitor:
    """Code for a tile, and the parameters that it needs of all functions around it.

    arrays, scalars  the kernel's, by their own names
    parts            what is summed over rows
    along            what is summed over columns, and the distance of its elements
    visit            the code for one tile
    foresee          code before a tile is made: asks for the lines that its visit reads and writes
    """

    arrays: tuple[Array, ...]
    scalars: tuple[Var, ...]
    parts: tuple[Part, ...]
    along: tuple[tuple[Array, Expr], ...]
    visit: Callable[[Region], Block]
    foresee: Callable[[Region], Block]

    def begun(self, rows: Expr, columns: Expr, blocks: Expr) -> Iterator[Stmt]:
        """What is done before all tiles: sums are 0."""
        for array, stride in self.along:
            nothing = Store(array, mul(PART_ROW, stride), zero(array.element))
            yield For(PART_ROW, const(0), rows, Block((nothing,)))
        for part in self.parts:
            yield Allocate(part.local, mul(blocks, part.width(columns)), zero=True)

    def ended(self, columns: Expr, blocks: Expr) -> Iterator[Stmt]:
        """What is done after all tiles."""
        for part in self.parts:
            yield part.added(columns, blocks)
