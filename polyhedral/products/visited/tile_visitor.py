"""Visitors: computations with each tile of a product in a cache, in place of storing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen.build import add, block, const, load, mul, zero
from codegen.ir import Allocate, Array, Block, Expr, For, Stmt, Storage, Store, Var
from codegen.records import dataclass

NEAR_ELEMENTS = 1 << 12
"""The most elements of rows in one visit: they stay in the first cache."""
MOST_ROWS = 64
"""The most rows in one visit."""
PART_ROW, PART_COLUMN, PART_BLOCK = Var("part_row"), Var("part_column"), Var("part_block")


@dataclass(frozen=True, slots=True)
class Region:
    """A tile of the result: `tile` has its elements, `pitch` of them from one row to the next.

    row, column    the coordinates of its first element in the result
    rows, columns  its numbers of rows and columns
    block          the number of its block of rows
    width          the columns of the result
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
    """Sums of one result over rows: `array` has one for each block of rows.

    These are added up in order at the end.

    wide   whether each sum is a row, not a number
    total  the array of the result, `stride` elements from one column to the next
    """

    array: Array
    wide: bool
    total: Array
    stride: Expr

    @property
    def local(self) -> Array:
        """Return the array itself, of which inner functions have a pointer."""
        return replace(self.array, storage=Storage.LOCAL)

    def width(self, columns: Expr) -> Expr:
        """Return the elements for each block of rows."""
        return columns if self.wide else const(1)

    def add_blocks(self, columns: Expr, blocks: Expr) -> Block:
        """Return code that adds up the sums of blocks in order."""
        width = self.width(columns)
        at = mul(PART_COLUMN, self.stride)
        term = load(self.local, add(mul(PART_BLOCK, width), PART_COLUMN))

        def over_columns(stmt: Stmt) -> For:
            return For(PART_COLUMN, const(0), width, Block((stmt,)))

        clear = over_columns(Store(self.total, at, zero(self.total.element)))
        add_terms = over_columns(Store(self.total, at, term, "+"))
        return block(clear, For(PART_BLOCK, const(0), blocks, Block((add_terms,))))


@dataclass(frozen=True, slots=True)
class Visitor:
    """Code for a tile, and its parameters, which all outer functions have.

    arrays, scalars  the kernel's parameters
    parts            the sums over rows
    row_sums         the sums over columns, and the distance of their elements
    visit            the code for one tile
    foresee          code before a tile is computed: prefetches of the lines of its visit
    """

    arrays: tuple[Array, ...]
    scalars: tuple[Var, ...]
    parts: tuple[Part, ...]
    row_sums: tuple[tuple[Array, Expr], ...]
    visit: Callable[[Region], Block]
    foresee: Callable[[Region], Block]

    def before_tiles(self, rows: Expr, columns: Expr, blocks: Expr) -> Iterator[Stmt]:
        """Yield code before all tiles: sums become 0."""
        for array, stride in self.row_sums:
            nothing = Store(array, mul(PART_ROW, stride), zero(array.element))
            yield For(PART_ROW, const(0), rows, Block((nothing,)))
        for part in self.parts:
            yield Allocate(part.local, mul(blocks, part.width(columns)), zero=True)

    def after_tiles(self, columns: Expr, blocks: Expr) -> Iterator[Stmt]:
        """Yield code after all tiles: sums of blocks are added up."""
        for part in self.parts:
            yield part.add_blocks(columns, blocks)
