"""A block of a contraction: its register tiles, for operands that these can read.
for panels of right:               in the first cache
  for tiles of rows:               left's block in the second
    if the tile is full: it writes the result itself
    else: it writes a corner, whose valid part is copied
"""

from __future__ import annotations

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    load,
    minimum,
    mul,
    select,
    sub,
)
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Function,
    If,
    Invoke,
    Place,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.records import dataclass
from codegen.types import BOOL, ScalarType
from polyhedral.products.micro_kernel import tile_name
from polyhedral.products.offsets import Steps, formal, parameters
from polyhedral.products.register_tile import Blocks, Tile
from polyhedral.products.visited.tile_visitor import Visitor

BLOCK = "block"
LINE = 64
"""Packed blocks start on a cache line."""
ADDS = Var("adds", BOOL)
ROWS, COLUMNS, DEPTH = Var("rows"), Var("columns"), Var("depth")
I, J = Var("i"), Var("j")  # noqa: E741


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of the functions of one contraction: element type, tile, blocks, class steps.

    factor   if not None, a parameter: functions add factor * left * right to the result
    visitor  if not None, the visitor of each tile in place of storing it
             (`polyhedral.products.visited`); the result then has no steps
    """

    element: ScalarType
    tile: Tile
    blocks: Blocks
    result_rows: Steps
    result_columns: Steps
    left_rows: Steps
    left_depth: Steps
    right_depth: Steps
    right_columns: Steps
    factor: Var | None = None
    visitor: Visitor | None = None

    @property
    def factors(self) -> tuple[Var, ...]:
        """Return the factor as a parameter, where there is one."""
        return () if self.factor is None else (self.factor,)

    @property
    def classes(self) -> tuple[Steps, ...]:
        """Return the steps of classes in the order of functions' parameters."""
        operands = (self.left_rows, self.left_depth, self.right_depth, self.right_columns)
        if self.visitor is not None:
            return operands
        return (self.result_rows, self.result_columns, *operands)


def shape(
    element: ScalarType, tile: Tile, blocks: Blocks, several: dict[str, bool], adds: bool = False
) -> Shape:
    """Return a shape with tables for the classes of `several` loops, by "rows", "columns" and
    "depth".

    With a factor where it `adds`.
    """
    return Shape(
        element,
        tile,
        blocks,
        formal("result_rows", several["rows"]),
        formal("result_columns", several["columns"]),
        formal("left_rows", several["rows"]),
        formal("left_depth", several["depth"]),
        formal("right_depth", several["depth"]),
        formal("right_columns", several["columns"]),
        Var("factor", element) if adds else None,
    )


# ---------------------------------------------------------------- a block of tiles

A_ROW, A_K, A_TILE = Var("a_row"), Var("a_k"), Var("a_tile")
B_K, B_PANEL = Var("b_k"), Var("b_panel")


def block_function(shape: Shape) -> Function:
    """Return `block(C, A, B, …)`: C (+)= A * B for operands that tiles can read.

    a_tile, b_panel   the steps from one tile of A, and one panel of B, to the next
    """
    c = Array("C", shape.element, Storage.OUTPUT)
    a, b = Array("A", shape.element, Storage.INPUT), Array("B", shape.element, Storage.INPUT)
    tile = shape.tile
    tables, steps = parameters(shape.result_rows, shape.result_columns)
    corner = Array("corner", shape.element, Storage.LOCAL)
    columns, rows, direct = Var("tile_columns"), Var("tile_rows"), Var("direct", BOOL)
    operands = (
        Place(a, mul(div(I, tile.rows), A_TILE)),
        Place(b, mul(div(J, tile.columns), B_PANEL)),
    )
    start = add(shape.result_rows.at(I), shape.result_columns.at(J))
    straight = tile_call(rows, tile, Place(c, start), operands, shape.result_rows.stride, ADDS)
    aside = tile_call(
        rows, tile, Place(corner, const(0)), operands, const(tile.columns), const(False)
    )
    one = block(
        Declare(rows, minimum(sub(ROWS, I), tile.rows), True),
        If(direct, block(straight), block(aside, _scattered(shape, c, corner, rows, columns))),
    )
    panel = block(
        Declare(columns, minimum(sub(COLUMNS, J), tile.columns), True),
        _directness(shape, direct, columns),
        For(I, const(0), ROWS, one, tile.rows),
    )
    body = block(
        Allocate(corner, const(tile.rows * tile.columns), align=LINE),
        For(J, const(0), COLUMNS, panel, tile.columns),
    )
    scalars = (ROWS, COLUMNS, DEPTH, A_ROW, A_K, A_TILE, B_K, B_PANEL, ADDS, *steps)
    return Function(BLOCK, (c, a, b, *tables), scalars, body, internal=True)


def _directness(shape: Shape, direct: Var, columns: Var) -> Block:
    """Return code that sets `direct`: whether tiles of this panel can write the result themselves.

    The rows of the result must be even, and the panel's columns contiguous.
    """
    columns_steps = shape.result_columns
    is_full = eq(columns, shape.tile.columns)
    straight = and_(is_full, shape.result_rows.even)
    if columns_steps.table is None:
        return block(Declare(direct, and_(straight, eq(columns_steps.stride, 1)), True))
    gaps, n = Var("columns_apart"), Var("n")
    step = select(eq(columns_steps.at(add(J, n)), add(columns_steps.at(J), n)), 0, 1)
    return block(
        Declare(gaps, const(0)),
        For(n, const(0), columns, Block((Assign(gaps, step, "+"),))),
        Declare(direct, and_(straight, eq(gaps, 0)), True),
    )


def tile_call(
    rows: Var, tile: Tile, c: Place, operands: tuple[Place, Place], c_row: Expr, adds: Expr
) -> Stmt:
    """Return the call of the tile function for `rows` rows."""
    calls = {
        count: Invoke(tile_name(count), (c, *operands), (DEPTH, A_ROW, A_K, B_K, c_row, adds))
        for count in range(1, tile.rows + 1)
    }
    call: Stmt = calls[1]
    for count in range(2, tile.rows + 1):
        call = If(eq(rows, count), block(calls[count]), block(call))
    return call


def _scattered(shape: Shape, c: Array, corner: Array, rows: Var, columns: Var) -> Stmt:
    """Return the copy of the valid part of `corner` into the result."""
    row, column = Var("corner_row"), Var("corner_column")
    at = add(shape.result_rows.at(add(I, row)), shape.result_columns.at(add(J, column)))
    value = load(corner, add(mul(row, shape.tile.columns), column))

    def copied(op: str | None) -> Block:
        inner = For(column, const(0), columns, Block((Store(c, at, value, op),)))
        return Block((For(row, const(0), rows, Block((inner,))),))

    return If(ADDS, copied("+"), copied(None))
