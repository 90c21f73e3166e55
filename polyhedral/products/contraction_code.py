"""A contraction as a module of loop IR, for operands of any sizes, strides and orders.

    evaluate(C, A, B, sizes, strides)
      tables of offsets where a class has several loops
      for each step of the batch: product(C + …, A + …, B + …)

With a batch, threads share its steps where there are enough of them; otherwise each product is
shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    ge,
    le,
    lt,
    minimum,
    mod,
    mul,
    or_,
    select,
    sub,
)
from codegen.emit.abi import THREADS
from codegen.ir import (
    Array,
    Block,
    Expr,
    For,
    Function,
    If,
    Invoke,
    LoopKind,
    Module,
    Place,
    Stmt,
    Var,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import INT32, ScalarType
from polyhedral.products.blocked import BLOCK, Shape, block_function, shape
from polyhedral.products.contraction import Contraction
from polyhedral.products.edge import EDGE, edge_function
from polyhedral.products.micro_kernel import tile_function
from polyhedral.products.offsets import Steps, steps_of
from polyhedral.products.packing import pack_left, pack_right
from polyhedral.products.product import STRIPS, product_function, strips_function
from polyhedral.products.register_tile import Blocks, Tile
from polyhedral.products.transposed_product import TURNED, turned_function

SMALL = 1 << 15
"""The most products of elements of a small step of a batch."""
SHARED = 1 << 20
"""The least products of elements for which threads share a block of the depth: all threads begin
and end each block together, which takes microseconds, and a hundred where other processes use the
cores."""
TURNS = 4
"""The most vectors along rows, columns and depth for which squares are faster than a copy."""
ONE_THREAD = const(1, INT32)
BATCHES_A_THREAD = 4
"""The least steps of a batch for each thread for which threads share them."""


Places = tuple[Place, Place, Place]
"""The begins of result, left and right."""


@dataclass(frozen=True, slots=True)
class Data:
    """One array of a contraction, and its stride in elements along each loop."""

    array: Array
    strides: Mapping[str, Expr]

    def strides_of(self, loops: tuple[str, ...]) -> list[Expr]:
        return [self.strides[loop] for loop in loops]


@dataclass(frozen=True, slots=True)
class Operands:
    """The arrays of a contraction, and the size of each loop."""

    result: Data
    left: Data
    right: Data
    sizes: Mapping[str, Expr]

    @property
    def element(self) -> ScalarType:
        return self.result.array.element


def to_functions(
    product: Contraction,
    tile: Tile,
    blocks: Blocks,
    operands: Operands,
    head: Function,
    names: Names,
) -> Module:
    """Return the module whose last function is `head` with a body.

    head   a threaded function without a body
    names  the supply of the names of `head`'s parameters
    """
    full_shape = shape(operands.element, tile, blocks, several_loops(product))
    main = Function(
        head.name,
        head.arrays,
        head.scalars,
        _main(product, operands, names, tile, blocks),
        threaded=True,
    )
    return Module((*functions_of(full_shape, bool(product.batch)), main))


def several_loops(product: Contraction) -> dict[str, bool]:
    """Tell which classes have several loops."""
    return {
        "rows": len(product.rows) > 1,
        "columns": len(product.columns) > 1,
        "depth": len(product.depth) > 1,
    }


def functions_of(shape: Shape, batch: bool) -> tuple[Function, ...]:
    """Return the internal functions of contractions of one shape, with those for steps of a
    `batch`."""
    tile, element = shape.tile, shape.element
    return (
        *(tile_function(rows, tile, element) for rows in range(1, tile.rows + 1)),
        block_function(shape),
        *(_small_functions(shape) if batch else ()),
        pack_right(tile, element, shape.right_columns, shape.right_depth),
        pack_left(tile, element, shape.left_rows, shape.left_depth, shape.factor),
        product_function(shape),
        strips_function(shape),
    )


def _small_functions(shape: Shape) -> tuple[Function, ...]:
    """Return the functions for the steps of a batch: `turned` where vectors have several lanes."""
    edge = edge_function(shape)
    return (edge, turned_function(shape)) if shape.tile.lanes > 1 else (edge,)


def _main(
    product: Contraction, operands: Operands, names: Names, tile: Tile, blocks: Blocks
) -> Block:
    code, classes = class_steps(product, operands, names)
    return block(code, _batch(product, operands, classes, names, tile, blocks))


def class_steps(
    product: Contraction, operands: Operands, names: Names
) -> tuple[Block, list[Steps]]:
    """Return the steps of each class in each array, and the code before.

    They are in the order of functions' parameters.
    """
    code: list[Stmt] = []
    classes: list[Steps] = []
    for name, loops, data in (
        ("result_rows", product.rows, operands.result),
        ("result_columns", product.columns, operands.result),
        ("left_rows", product.rows, operands.left),
        ("left_depth", product.depth, operands.left),
        ("right_depth", product.depth, operands.right),
        ("right_columns", product.columns, operands.right),
    ):
        sizes = [operands.sizes[loop] for loop in loops]
        before, steps = steps_of(name, sizes, data.strides_of(loops), names)
        code.append(before)
        classes.append(steps)
    return block(*code), classes


def _batch(
    product: Contraction,
    operands: Operands,
    classes: list[Steps],
    names: Names,
    tile: Tile,
    blocks: Blocks,
) -> Stmt:
    """Return the product for each step of the batch."""
    sizes = operands.sizes
    counts = [mul(*(sizes[x] for x in loops)) for loops in product.of_classes[1:]]
    step = Var(names.fresh("step"))
    total = mul(*(sizes[loop] for loop in product.batch))
    at = coordinates_of(step, product.batch, sizes)

    def start(data: Data) -> Place:
        return Place(data.array, add(*(mul(at[x], data.strides[x]) for x in product.batch)))

    def starts() -> Places:
        return start(operands.result), start(operands.left), start(operands.right)

    def run(threads: Expr) -> Invoke:
        tables = [place for steps in classes for place in steps.places(0)]
        values = [value for steps in classes for value in steps.values]
        return Invoke(STRIPS, (*starts(), *tables), (*counts, *values), threads)

    def over(call: Stmt, kind: LoopKind = LoopKind.SERIAL) -> Block:
        return Block((For(step, const(0), total, block(call), 1, kind),))

    def tiles(kind: LoopKind = LoopKind.SERIAL) -> Block:
        return over(_in_place(tile, starts, counts, classes), kind)

    rows, columns, depth = counts
    a_block = mul(rows, columns, minimum(depth, blocks.depth))
    threads = select(ge(a_block, SHARED), THREADS, ONE_THREAD)
    if not product.batch:
        return run(threads)

    def turned(kind: LoopKind = LoopKind.SERIAL) -> Block:
        return over(_turned(starts, counts, classes), kind)

    by_steps = ge(total, mul(THREADS, BATCHES_A_THREAD))
    general = block(If(by_steps, over(run(ONE_THREAD), LoopKind.PARALLEL), over(run(threads))))
    if tile.lanes > 1:
        pays = _is_turned(tile, counts, classes)
        general = block(If(pays, Block((_shared(turned(LoopKind.PARALLEL), turned()),)), general))
    return If(
        _is_small(tile, blocks, counts, classes),
        Block((_shared(tiles(LoopKind.PARALLEL), tiles()),)),
        general,
    )


def _shared(parallel: Block, serial: Block) -> If:
    return If(lt(1, THREADS), parallel, serial)


def _is_small(tile: Tile, blocks: Blocks, counts: list[Expr], classes: list[Steps]) -> Expr:
    """Tell whether each step of the batch is a few tiles that can read both operands in place.

    Decisions and copies would then take longer than the products. Columns too few for a tile must
    be contiguous in the result as well.
    """
    _, columns, depth = counts
    _, result_columns, left_rows, left_depth, right_depth, right_columns = classes
    neighbours = and_(result_columns.even, eq(result_columns.stride, 1))
    return and_(
        left_rows.even,
        left_depth.even,
        right_depth.even,
        right_columns.even,
        eq(right_columns.stride, 1),
        or_(eq(mod(columns, tile.columns), 0), neighbours),
        le(mul(depth, right_depth.stride), blocks.near),
        le(mul(*counts), SMALL),
    )


def _in_place(
    tile: Tile, starts: Callable[[], Places], counts: list[Expr], classes: list[Steps]
) -> Block:
    """Return one step of the batch: its tiles, then the columns that are too few for one."""
    result_rows, result_columns, left_rows, left_depth, right_depth, _ = classes
    rows, columns, depth = counts
    c, a, b = starts()
    tables = (*result_rows.places(0), *result_columns.places(0))
    strides = (left_rows.stride, left_depth.stride)
    steps = (*result_rows.values, *result_columns.values)
    full_columns = mul(div(columns, tile.columns), tile.columns)
    tile_steps = (
        mul(left_rows.stride, tile.rows),
        right_depth.stride,
        const(tile.columns),
        const(False),
    )
    some = Invoke(
        BLOCK, (c, a, b, *tables), (rows, full_columns, depth, *strides, *tile_steps, *steps)
    )
    edge = (rows, full_columns, columns, depth, *strides, right_depth.stride, const(1), *steps)
    rest = Invoke(EDGE, (c, a, b, *tables), edge)
    return block(
        If(lt(0, full_columns), block(some)), If(lt(0, sub(columns, full_columns)), block(rest))
    )


def _is_turned(tile: Tile, counts: list[Expr], classes: list[Steps]) -> Expr:
    """Tell whether each step of the batch is small and consists of full squares.

    Rows must be contiguous in left and columns in the result; partial squares would be computed
    element by element.
    """
    rows, columns, depth = counts
    _, result_columns, left_rows, left_depth, right_depth, right_columns = classes
    neighbours = and_(eq(left_rows.stride, 1), eq(result_columns.stride, 1))
    even = (left_rows, left_depth, right_depth, right_columns, result_columns)
    square = tile.lanes * TURNS
    return and_(
        *(steps.even for steps in even),
        neighbours,
        eq(mod(rows, tile.lanes), 0),
        eq(mod(columns, tile.lanes), 0),
        le(rows, square),
        le(columns, square),
        le(depth, square),
    )


def _turned(starts: Callable[[], Places], counts: list[Expr], classes: list[Steps]) -> Invoke:
    """Return one step of the batch in squares."""
    result_rows, result_columns, left_rows, left_depth, right_depth, right_columns = classes
    tables = (*result_rows.places(0), *result_columns.places(0))
    strides = tuple(s.stride for s in (left_rows, left_depth, right_depth, right_columns))
    steps = (*result_rows.values, *result_columns.values)
    return Invoke(TURNED, (*starts(), *tables), (*counts, *strides, *steps))


def coordinates_of(step: Var, batch: tuple[str, ...], sizes: Mapping[str, Expr]) -> dict[str, Expr]:
    """Return the coordinates of a step of the batch along its loops; the last one runs fastest."""
    coordinates: dict[str, Expr] = {}
    rest: Expr = step
    for loop in reversed(batch[1:]):
        coordinates[loop] = mod(rest, sizes[loop])
        rest = div(rest, sizes[loop])
    if batch:
        coordinates[batch[0]] = rest
    return coordinates
