"""Products of matrices with visitors: each element is read from a cache, and the product is not
stored.

    zero sums over columns
    for blocks of columns:
      parallel for panels: pack right
      parallel for blocks of rows:             their number is independent of threads
        pack left
        for panels of right:
          for tiles of rows:
            prefetch the lines of the visit while the tile is computed
            tile writes its accumulators to a corner in the first cache
            visit the corner: all values that depend on it are computed, stored and summed
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
from polyhedral.products.offsets import Steps, steps_of
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
"""The number of the block in the result, and the columns of the result."""


@dataclass(frozen=True, slots=True)
class VisitedOperands:
    """The operands of a contraction whose classes except the depth have one loop, and sizes."""

    left: Data
    right: Data
    sizes: Mapping[str, Expr]


def to_visited_functions(
    product: Contraction,
    tile: Tile,
    blocks: Blocks,
    operands: VisitedOperands,
    visitor: Visitor,
    head: Function,
    names: Names,
) -> Module:
    """Return a module whose last function is `head` with the body of the product.

    head   a threaded function without a body
    names  a supply that has handed out the names of `head`'s parameters
    """
    plain = shape(operands.left.array.element, tile, blocks, several_loops(product))
    visited = replace(plain, visitor=visitor)
    element = visited.element
    functions = (
        *(tile_function(rows, tile, element) for rows in range(1, tile.rows + 1)),
        visited_block(visited),
        pack_right(tile, element, visited.right_columns, visited.right_depth),
        pack_left(tile, element, visited.left_rows, visited.left_depth, few=LoopKind.VECTOR),
        product_function(visited),
    )
    body = _call_product(product, operands, visitor, names, blocks)
    return Module((*functions, replace(head, body=body)))


def _call_product(
    product: Contraction,
    operands: VisitedOperands,
    visitor: Visitor,
    names: Names,
    blocks: Blocks,
) -> Block:
    """Return the call of the product, by all threads where there is enough work."""
    sizes, before, classes = operands.sizes, list[Block](), list[Steps]()
    for name, loops, data in (
        ("left_rows", product.rows, operands.left),
        ("left_depth", product.depth, operands.left),
        ("right_depth", product.depth, operands.right),
        ("right_columns", product.columns, operands.right),
    ):
        code, steps = steps_of(name, [sizes[loop] for loop in loops], data.strides_of(loops), names)
        before.append(code)
        classes.append(steps)
    counts = [
        mul(*(sizes[x] for x in loops)) for loops in (product.rows, product.columns, product.depth)
    ]
    rows, columns, depth = counts
    enough = ge(mul(rows, columns, minimum(depth, blocks.depth)), SHARED)
    tables = [place for steps in classes for place in steps.places(0)]
    values = [value for steps in classes for value in steps.values]
    arrays = (*visitor.arrays, operands.left.array, operands.right.array)
    places = (*(Place(array, const(0)) for array in arrays), *tables)
    threads = select(enough, THREADS, ONE_THREAD)
    return block(*before, Invoke(PRODUCT, places, (*counts, *values, *visitor.scalars), threads))


def visited_block(shape: Shape) -> Function:
    """Return `block(…, A, B, …)`: the tiles of a block of rows, each visited after it is
    computed."""
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
    compute_tile = tile_call(rows, tile, start, operands, const(tile.columns), const(False))

    def region(count: Expr) -> Region:
        place = add(FIRST_ROW, I), add(FIRST_COLUMN, J)
        return Region(corner, const(tile.columns), *place, rows, count, NUMBER, WIDTH)

    is_full = eq(columns, tile.columns)
    one = block(
        Declare(rows, minimum(sub(ROWS, I), tile.rows), True),
        visitor.foresee(region(columns)),
        compute_tile,
        If(is_full, visitor.visit(region(const(tile.columns))), visitor.visit(region(columns))),
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
