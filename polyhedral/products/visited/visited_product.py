"""A product of matrices whose elements are read where they are made, and stored nowhere.

    zero sums over columns
    for blocks of columns:
      parallel for panels: pack right
      parallel for blocks of rows:             of a number that no thread counts
        pack left
        for panels of right:
          for tiles of rows:
            ask for what the visit will read and write: it comes while the tile is made
            tile writes its accumulators to a corner in the first cache
            visit the corner: what it is needed for is computed, stored and summed there
    add up the sums of the blocks of rows, in order

The depth is one block: a sum must be complete when it is visited. (Chen et al. 2024, EVT: epilogues
inside of the main loop.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.build import add, block, const, div, eq, ge, minimum, mul, select, sub
from codegen.emit.abi import THREADS
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Declare,
    Expr,
    For,
    Function,
    If,
    Invoke,
    LoopKind,
    Module,
    Place,
    Storage,
    Var,
)
from codegen.names import Names
from codegen.records import dataclass
from polyhedral.products.blocked import BLOCK, LINE, Shape, shape, tile_call
from polyhedral.products.contraction import Contraction
from polyhedral.products.contraction_code import ONE_THREAD, SHARED, Data, several_loops
from polyhedral.products.micro_kernel import tile_function
from polyhedral.products.offsets import Steps, made
from polyhedral.products.packing import pack_left, pack_right
from polyhedral.products.product import PRODUCT, product_function
from polyhedral.products.register_tile import Blocks, Tile
from polyhedral.products.visited.tile_visitor import Region, Visitor

I, J = Var("i"), Var("j")  # noqa: E741
ROWS, COLUMNS, DEPTH = Var("rows"), Var("columns"), Var("depth")
A_ROW, A_K, A_TILE = Var("a_row"), Var("a_k"), Var("a_tile")
B_K, B_PANEL = Var("b_k"), Var("b_panel")
FIRST_ROW, FIRST_COLUMN = Var("first_row"), Var("first_column")
NUMBER, WIDTH = Var("block_number"), Var("width")
"""Of the block in the result, and the columns of that."""


@dataclass(frozen=True, slots=True)
class VisitedOperands:
    """The operands of a contraction of one loop a class but the depth, and the loops' sizes."""

    left: Data
    right: Data
    sizes: Mapping[str, Expr]


def to_visited_functions(
    found: Contraction,
    tile: Tile,
    blocks: Blocks,
    operands: VisitedOperands,
    visitor: Visitor,
    head: Function,
    names: Names,
) -> Module:
    """Return the module whose last function is `head`, a threaded function without a body, with
    one.

    names  a supply that has handed out those of `head`'s parameters
    """
    plain = shape(operands.left.array.element, tile, blocks, several_loops(found))
    whole = replace(plain, visitor=visitor)
    element = whole.element
    functions = (
        *(tile_function(rows, tile, element) for rows in range(1, tile.rows + 1)),
        visited_block(whole),
        pack_right(tile, element, whole.right_columns, whole.right_depth),
        pack_left(tile, element, whole.left_rows, whole.left_depth, few=LoopKind.VECTOR),
        product_function(whole),
    )
    body = _whole(found, operands, visitor, names, blocks)
    return Module((*functions, replace(head, body=body)))


def _whole(
    found: Contraction,
    operands: VisitedOperands,
    visitor: Visitor,
    names: Names,
    blocks: Blocks,
) -> Block:
    """Return the call of the product, by all threads where there is enough to do."""
    sizes, before, classes = operands.sizes, list[Block](), list[Steps]()
    for name, loops, data in (
        ("left_rows", found.rows, operands.left),
        ("left_depth", found.depth, operands.left),
        ("right_depth", found.depth, operands.right),
        ("right_columns", found.columns, operands.right),
    ):
        code, steps = made(name, [sizes[loop] for loop in loops], data.along(loops), names)
        before.append(code)
        classes.append(steps)
    counts = [mul(*(sizes[x] for x in loops)) for loops in (found.rows, found.columns, found.depth)]
    rows, columns, depth = counts
    enough = ge(mul(rows, columns, minimum(depth, blocks.depth)), SHARED)
    tables = [place for steps in classes for place in steps.places(0)]
    values = [value for steps in classes for value in steps.values]
    arrays = (*visitor.arrays, operands.left.array, operands.right.array)
    places = (*(Place(array, const(0)) for array in arrays), *tables)
    threads = select(enough, THREADS, ONE_THREAD)
    return block(*before, Invoke(PRODUCT, places, (*counts, *values, *visitor.scalars), threads))


def visited_block(shape: Shape) -> Function:
    """Return `block(…, A, B, …)`: the tiles of a block of rows, each visited where it is made."""
    visitor, tile, element = shape.visitor, shape.tile, shape.element
    assert visitor is not None
    a, b = Array("A", element, Storage.INPUT), Array("B", element, Storage.INPUT)
    corner = Array("corner", element, Storage.LOCAL)
    columns, rows = Var("tile_columns"), Var("tile_rows")
    operands = (
        Place(a, mul(div(I, tile.rows), A_TILE)),
        Place(b, mul(div(J, tile.columns), B_PANEL)),
    )
    start = Place(corner, const(0))
    made_ = tile_call(rows, tile, start, operands, const(tile.columns), const(False))

    def region(count: Expr) -> Region:
        place = add(FIRST_ROW, I), add(FIRST_COLUMN, J)
        return Region(corner, const(tile.columns), *place, rows, count, NUMBER, WIDTH)

    whole = eq(columns, tile.columns)
    one = block(
        Declare(rows, minimum(sub(ROWS, I), tile.rows), True),
        visitor.foresee(region(columns)),
        made_,
        If(whole, visitor.visit(region(const(tile.columns))), visitor.visit(region(columns))),
    )
    panel = block(
        Declare(columns, minimum(sub(COLUMNS, J), tile.columns), True),
        For(I, const(0), ROWS, one, tile.rows),
    )
    body = block(
        Allocate(corner, const(tile.rows * tile.columns), align=LINE),
        For(J, const(0), COLUMNS, panel, tile.columns),
    )
    arrays = (*visitor.arrays, *(part.array for part in visitor.parts), a, b)
    where = (FIRST_ROW, FIRST_COLUMN, NUMBER, WIDTH)
    steps = (A_ROW, A_K, A_TILE, B_K, B_PANEL)
    scalars = (*where, ROWS, COLUMNS, DEPTH, *steps, *visitor.scalars)
    return Function(BLOCK, arrays, scalars, body, internal=True)
