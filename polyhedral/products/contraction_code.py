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
from polyhedral.products.offsets import Steps, made
from polyhedral.products.packing import pack_left, pack_right
from polyhedral.products.product import STRIPS, product_function, strips_function
from polyhedral.products.register_tile import Blocks, Tile
from polyhedral.products.transposed_product import TURNED, turned_function

SMALL = 1 << 15
"""Products of elements up to which a step of a batch is small."""
SHARED = 1 << 20
"""Products of elements from which on threads share a block of the depth: each is begun and ended by
all of them, which takes microseconds, and a hundred where other processes have the cores."""
TURNS = 4
"""Vectors along rows, columns and depth up to which squares take less time than a copy."""
ONE_THREAD = const(1, INT32)
BATCHES_A_THREAD = 4
"""Steps of a batch for each thread from which on threads share them."""


Places = tuple[Place, Place, Place]
"""Where result, left and right begin."""


@dataclass(frozen=True, slots=True)
class Data:
    """One array of a contraction, and the distance in elements of its steps along each loop."""

    array: Array
    strides: Mapping[str, Expr]

    def along(self, loops: tuple[str, ...]) -> list[Expr]:
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
    found: Contraction,
    tile: Tile,
    blocks: Blocks,
    operands: Operands,
    head: Function,
    names: Names,
) -> Module:
    """Return the module whose last function is `head`, a threaded function without a body, with
    one.

    names  a supply that has handed out those of `head`'s parameters
    """
    whole = shape(operands.element, tile, blocks, several_loops(found))
    main = Function(
        head.name,
        head.arrays,
        head.scalars,
        _main(found, operands, names, tile, blocks),
        threaded=True,
    )
    return Module((*functions_of(whole, bool(found.batch)), main))


def several_loops(found: Contraction) -> dict[str, bool]:
    """Which classes have several loops."""
    return {
        "rows": len(found.rows) > 1,
        "columns": len(found.columns) > 1,
        "depth": len(found.depth) > 1,
    }


def functions_of(whole: Shape, batch: bool) -> tuple[Function, ...]:
    """Return the internal functions of contractions of one shape, with those for steps of a
    `batch`."""
    tile, element = whole.tile, whole.element
    return (
        *(tile_function(rows, tile, element) for rows in range(1, tile.rows + 1)),
        block_function(whole),
        *(_small_functions(whole) if batch else ()),
        pack_right(tile, element, whole.right_columns, whole.right_depth),
        pack_left(tile, element, whole.left_rows, whole.left_depth, whole.factor),
        product_function(whole),
        strips_function(whole),
    )


def _small_functions(whole: Shape) -> tuple[Function, ...]:
    """Those for the steps of a batch: `turned` where vectors have several lanes."""
    edge = edge_function(whole)
    return (edge, turned_function(whole)) if whole.tile.lanes > 1 else (edge,)


def _main(
    found: Contraction, operands: Operands, names: Names, tile: Tile, blocks: Blocks
) -> Block:
    code, classes = class_steps(found, operands, names)
    return block(code, _batch(found, operands, classes, names, tile, blocks))


def class_steps(found: Contraction, operands: Operands, names: Names) -> tuple[Block, list[Steps]]:
    """Return each class in each array, in the order in which functions take them, and the code
    before."""
    code: list[Stmt] = []
    classes: list[Steps] = []
    for name, loops, data in (
        ("result_rows", found.rows, operands.result),
        ("result_columns", found.columns, operands.result),
        ("left_rows", found.rows, operands.left),
        ("left_depth", found.depth, operands.left),
        ("right_depth", found.depth, operands.right),
        ("right_columns", found.columns, operands.right),
    ):
        sizes = [operands.sizes[loop] for loop in loops]
        before, steps = made(name, sizes, data.along(loops), names)
        code.append(before)
        classes.append(steps)
    return block(*code), classes


def _batch(
    found: Contraction,
    operands: Operands,
    classes: list[Steps],
    names: Names,
    tile: Tile,
    blocks: Blocks,
) -> Stmt:
    """Return the product for each step of the batch."""
    sizes = operands.sizes
    counts = [mul(*(sizes[x] for x in loops)) for loops in (found.rows, found.columns, found.depth)]
    step = Var(names.fresh("step"))
    total = mul(*(sizes[loop] for loop in found.batch))
    coordinates = coordinates_of(step, found.batch, sizes)

    def start(data: Data) -> Place:
        return Place(data.array, add(*(mul(coordinates[x], data.strides[x]) for x in found.batch)))

    def starts() -> Places:
        return start(operands.result), start(operands.left), start(operands.right)

    def product(threads: Expr) -> Invoke:
        tables = [place for steps in classes for place in steps.places(0)]
        values = [value for steps in classes for value in steps.values]
        return Invoke(STRIPS, (*starts(), *tables), (*counts, *values), threads)

    def over(call: Stmt, kind: LoopKind = LoopKind.SERIAL) -> Block:
        return Block((For(step, const(0), total, block(call), 1, kind),))

    def tiles(kind: LoopKind = LoopKind.SERIAL) -> Block:
        return over(_in_place(tile, starts, counts, classes), kind)

    rows, columns, depth = counts
    a_block = mul(rows, columns, minimum(depth, blocks.depth))
    own = select(ge(a_block, SHARED), THREADS, ONE_THREAD)
    if not found.batch:
        return product(own)

    def turned(kind: LoopKind = LoopKind.SERIAL) -> Block:
        return over(_turned(starts, counts, classes), kind)

    many = ge(total, mul(THREADS, BATCHES_A_THREAD))
    general = block(If(many, over(product(ONE_THREAD), LoopKind.PARALLEL), over(product(own))))
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
    """Tell whether each step of the batch is a few tiles that can read both operands in place: to
    decide and to copy would take longer than to compute. Columns too few for a tile must be
    neighbours in the result as well."""
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
    whole = mul(div(columns, tile.columns), tile.columns)
    own = (mul(left_rows.stride, tile.rows), right_depth.stride, const(tile.columns), const(False))
    some = Invoke(BLOCK, (c, a, b, *tables), (rows, whole, depth, *strides, *own, *steps))
    edge = (rows, whole, columns, depth, *strides, right_depth.stride, const(1), *steps)
    rest = Invoke(EDGE, (c, a, b, *tables), edge)
    return block(If(lt(0, whole), block(some)), If(lt(0, sub(columns, whole)), block(rest)))


def _is_turned(tile: Tile, counts: list[Expr], classes: list[Steps]) -> Expr:
    """Tell whether each step of the batch is small and fills squares, with rows that are neighbours
    in left and columns that are in the result: what fills none is computed element by element."""
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
    """Where a step of the batch stands along each of its loops; the last one runs fastest."""
    found: dict[str, Expr] = {}
    rest: Expr = step
    for loop in reversed(batch[1:]):
        found[loop] = mod(rest, sizes[loop])
        rest = div(rest, sizes[loop])
    if batch:
        found[batch[0]] = rest
    return found
