"""A contraction of matrices of any size: cache blocks, threads, and copies.

    for blocks of columns:                   right's block in the third cache
      for blocks of depth:
        parallel for panels: pack right      (not where tiles can read right in place)
        parallel for blocks of rows:         left's block in the second cache
          pack left                          (not where tiles can read left in place)
          block                              (polyhedral.products.blocked)

(Goto and van de Geijn 2008). Depth and rows are split into equal blocks, so that there is no
remainder, and rows into at least one block a thread.

Where one block holds all rows, no other block uses a packed panel again. Then `strips` splits
the columns into strips whose packed panels fit half of the second cache, and threads share these.

Right is read in place where its columns are contiguous and all of it fits the first cache (rows a
power of two apart share few sets of a larger cache), or where it is read once or twice. Left is
read in place where k runs along its rows and these are less than a page apart, or where there are
few panels of right; it is packed where a factor other than 1 multiplies it.
"""

from __future__ import annotations

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    le,
    lt,
    maximum,
    minimum,
    mul,
    one,
    or_,
    select,
    sub,
)
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
    Place,
    Stmt,
    Storage,
    Var,
)
from codegen.records import dataclass
from codegen.types import BOOL, INT32
from polyhedral.products.blocked import BLOCK, LINE, Shape
from polyhedral.products.offsets import parameters
from polyhedral.products.packing import PACK_LEFT, PACK_RIGHT, PAD
from polyhedral.products.register_tile import PAGE

PRODUCT, STRIPS = "product", "strips"
FEW = 16
"""The most panels of right for which one copy of left costs more than it saves."""
SEVERAL = 16
"""The most panels of right that a thread packs in one call."""

VISITED = 16
"""Tiles of rows in a block for a visitor."""

ROWS, COLUMNS, DEPTH = Var("rows"), Var("columns"), Var("depth")
LEFT_IN_PLACE, RIGHT_IN_PLACE = Var("left_in_place", BOOL), Var("right_in_place", BOOL)
LEFT_ALONG, RIGHT_ALONG = Var("left_along", BOOL), Var("right_along", BOOL)
DEEP, HIGH = Var("deep"), Var("high")
"""Depth and rows of the equal blocks."""
J0, WIDE = Var("j0"), Var("wide")
K0, STEEP, KB = Var("k0"), Var("steep"), Var("kb")
I0, TALL, IB = Var("i0"), Var("tall"), Var("ib")
"""Start and size of the current block of columns, depth and rows."""
P, FIRST, IN_PLACE, GROUP = Var("p"), Var("first"), Var("whole"), Var("group")


def rounded(value: Expr, of: int) -> Expr:
    """Return `value` rounded up to a multiple of `of`."""
    return mul(_quotient(value, const(of)), of)


def _quotient(value: Expr, by: Expr) -> Expr:
    """Return `value / by`, rounded up."""
    return div(sub(add(value, by), 1), by)


@dataclass(frozen=True, slots=True)
class _Arrays:
    """The results (or a visitor's arrays), the operands, and the arrays for packed operands."""

    results: tuple[Array, ...]
    a: Array
    b: Array
    panels: Array
    packed: Array


def product_function(shape: Shape) -> Function:
    """Return `product(C, A, B, …)`: C = A * B, or C += factor * A * B, by `threads` threads."""
    element = shape.element
    arrays = _Arrays(
        (Array("C", element, Storage.OUTPUT),) if shape.visitor is None else shape.visitor.arrays,
        Array("A", element, Storage.INPUT),
        Array("B", element, Storage.INPUT),
        Array("right_panels", element, Storage.LOCAL),
        Array("left_block", element, Storage.LOCAL),
    )
    widest = rounded(minimum(COLUMNS, shape.blocks.columns), shape.tile.columns)
    room = mul(DEEP, select(RIGHT_IN_PLACE, shape.tile.columns, widest))
    body = block(
        _block_sizes(shape),
        _decisions(shape),
        *(
            ()
            if shape.visitor is None
            else shape.visitor.before_tiles(ROWS, COLUMNS, _blocks_of_rows())
        ),
        Allocate(arrays.panels, room, align=LINE),
        For(J0, const(0), COLUMNS, _columns_block(shape, arrays), shape.blocks.columns),
        *(() if shape.visitor is None else shape.visitor.after_tiles(COLUMNS, _blocks_of_rows())),
    )
    tables, steps = parameters(*shape.classes)
    visitor_scalars = () if shape.visitor is None else shape.visitor.scalars
    scalars = (ROWS, COLUMNS, DEPTH, *steps, *shape.factors, *visitor_scalars)
    parameters_ = (*arrays.results, arrays.a, arrays.b, *tables)
    return Function(PRODUCT, parameters_, scalars, body, threaded=True, internal=True)


# ---------------------------------------------------------------- decisions at run time


def _block_sizes(shape: Shape) -> Block:
    """Return declarations of the equal blocks of depth and rows.

    For a visitor the depth is one block, because it reads complete sums, and blocks of rows are the
    same for any number of threads.
    """
    blocks, tile = shape.blocks, shape.tile
    if shape.visitor is not None:
        return block(
            Declare(DEEP, maximum(rounded(DEPTH, 8), 8), True),
            Declare(HIGH, const(min(blocks.rows, VISITED * tile.rows)), True),
        )
    depth_blocks = maximum(_quotient(DEPTH, const(blocks.depth)), 1)
    rounds = maximum(_quotient(ROWS, mul(THREADS, blocks.rows)), 1)
    share = _quotient(ROWS, mul(THREADS, rounds))
    return block(
        Declare(DEEP, maximum(rounded(_quotient(DEPTH, depth_blocks), 8), 8), True),
        Declare(HIGH, maximum(rounded(share, tile.rows), tile.rows), True),
    )


def _decisions(shape: Shape) -> Block:
    tile, size = shape.tile, shape.element.itemsize
    near = shape.blocks.near
    rows, depth = shape.left_rows, shape.left_depth
    is_contiguous = and_(depth.even, eq(depth.stride, 1))
    by_rows = or_(lt(rows.stride, PAGE // size), le(COLUMNS, FEW * tile.columns))
    is_narrow = le(COLUMNS, tile.columns)
    left = and_(
        rows.even,
        depth.even,
        or_(and_(is_contiguous, by_rows), le(mul(DEPTH, depth.stride), near), is_narrow),
        *(eq(factor, one(shape.element)) for factor in shape.factors),
    )
    columns, deep = shape.right_columns, shape.right_depth
    readable = and_(columns.even, eq(columns.stride, 1), deep.even)
    right = and_(readable, or_(le(mul(DEPTH, deep.stride), near), le(ROWS, 2 * tile.rows)))
    return block(
        Declare(LEFT_ALONG, is_contiguous, True),
        Declare(RIGHT_ALONG, and_(deep.even, eq(deep.stride, 1)), True),
        Declare(LEFT_IN_PLACE, left, True),
        Declare(RIGHT_IN_PLACE, right, True),
    )


# ---------------------------------------------------------------- blocks


def _columns_block(shape: Shape, arrays: _Arrays) -> Block:
    width = shape.tile.columns
    in_place = select(RIGHT_IN_PLACE, mul(div(WIDE, width), width), 0)
    body = block(
        Declare(K0, mul(KB, DEEP), True),
        Declare(STEEP, minimum(sub(DEPTH, K0), DEEP), True),
        *_packed_right(shape, arrays).body,
        _row_blocks(shape, arrays),
    )
    return block(
        Declare(WIDE, minimum(sub(COLUMNS, J0), shape.blocks.columns), True),
        Declare(IN_PLACE, in_place, True),
        For(KB, const(0), maximum(_quotient(DEPTH, DEEP), 1), body),
    )


def _packed_right(shape: Shape, arrays: _Arrays) -> Block:
    """Return the packing of the panels that tiles cannot read in place.

    All, or the last one where it is not full.
    """
    width = shape.tile.columns
    columns, down = shape.right_columns, shape.right_depth
    start = add(columns.origin(add(J0, FIRST)), down.origin(K0))
    packing = Invoke(
        PACK_RIGHT,
        (
            Place(arrays.panels, mul(sub(FIRST, IN_PLACE), STEEP)),
            Place(arrays.b, start),
            *columns.places(add(J0, FIRST)),
            *down.places(K0),
        ),
        (minimum(sub(WIDE, FIRST), GROUP), STEEP, RIGHT_ALONG, *columns.values, *down.values),
    )
    body = block(Declare(FIRST, add(IN_PLACE, mul(P, GROUP)), True), packing)
    left = sub(WIDE, IN_PLACE)
    panels = minimum(maximum(_quotient(left, mul(THREADS, width)), 1), SEVERAL)
    return block(
        Declare(GROUP, mul(panels, width), True),
        _shared(P, const(0), _quotient(left, GROUP), body),
    )


def _row_blocks(shape: Shape, arrays: _Arrays) -> If:
    tile, rows, depth = shape.tile, shape.left_rows, shape.left_depth
    a_place = Place(arrays.a, add(rows.at(I0), depth.at(K0)))
    steps = (rows.stride, depth.stride, mul(rows.stride, tile.rows))
    in_place = _both_parts(shape, arrays, a_place, steps)
    pitch = select(LEFT_ALONG, add(STEEP, PAD), 1)
    packed_steps = (
        pitch,
        select(LEFT_ALONG, 1, tile.rows),
        mul(select(LEFT_ALONG, add(STEEP, PAD), STEEP), tile.rows),
    )
    packing = Invoke(
        PACK_LEFT,
        (
            Place(arrays.packed, const(0)),
            Place(arrays.a, add(rows.origin(I0), depth.origin(K0))),
            *rows.places(I0),
            *depth.places(K0),
        ),
        (TALL, STEEP, LEFT_ALONG, *rows.values, *depth.values, *shape.factors),
    )
    copied = block(
        Allocate(arrays.packed, mul(HIGH, add(STEEP, PAD)), align=LINE),
        packing,
        _both_parts(shape, arrays, Place(arrays.packed, const(0)), packed_steps),
    )
    body = block(
        Declare(I0, mul(IB, HIGH), True),
        Declare(TALL, minimum(sub(ROWS, I0), HIGH), True),
        If(LEFT_IN_PLACE, in_place, copied),
    )
    return _shared(IB, const(0), _blocks_of_rows(), body)


def _blocks_of_rows() -> Expr:
    return _quotient(ROWS, HIGH)


def _shared(var: Var, start: Expr, stop: Expr, body: Block) -> If:
    """Return a loop shared by the threads.

    With one thread, no parallel region is entered.
    """
    parallel = For(var, start, stop, body, 1, LoopKind.PARALLEL)
    return If(lt(1, THREADS), Block((parallel,)), Block((For(var, start, stop, body),)))


def _both_parts(
    shape: Shape, arrays: _Arrays, left: Place, steps: tuple[Expr, Expr, Expr]
) -> Block:
    """Return the products with the columns of right in place, then with packed columns."""
    tile, columns, down = shape.tile, shape.right_columns, shape.right_depth
    in_place = Place(arrays.b, add(columns.at(J0), down.at(K0)))
    packed = Place(arrays.panels, const(0))
    in_place_steps = (down.stride, const(tile.columns))
    copied = (const(tile.columns), mul(tile.columns, STEEP))
    first = _block_call(shape, arrays, left, in_place, (*steps, *in_place_steps), J0, IN_PLACE)
    rest = sub(WIDE, IN_PLACE)
    second = _block_call(shape, arrays, left, packed, (*steps, *copied), add(J0, IN_PLACE), rest)
    return block(If(lt(0, IN_PLACE), block(first)), If(lt(0, rest), block(second)))


def _block_call(
    shape: Shape,
    arrays: _Arrays,
    left: Place,
    right: Place,
    steps: tuple[Expr, ...],
    j: Expr,
    columns: Expr,
) -> Stmt:
    if shape.visitor is not None:
        visited = (*map(_start, arrays.results), *(_start(p.local) for p in shape.visitor.parts))
        where = (I0, j, IB, COLUMNS)
        scalars = (*where, TALL, columns, STEEP, *steps, *shape.visitor.scalars)
        return Invoke(BLOCK, (*visited, left, right), scalars)
    rows, result_columns = shape.result_rows, shape.result_columns
    start = add(rows.origin(I0), result_columns.origin(j))
    places = (
        Place(arrays.results[0], start),
        left,
        right,
        *rows.places(I0),
        *result_columns.places(j),
    )
    adds = lt(0, K0) if shape.factor is None else const(True)
    scalars = (TALL, columns, STEEP, *steps, adds, *rows.values, *result_columns.values)
    return Invoke(BLOCK, places, scalars)


def _start(array: Array) -> Place:
    return Place(array, const(0))


# ---------------------------------------------------------------- strips


def strips_function(shape: Shape) -> Function:
    """Return `strips(C, A, B, …)`, which calls `product` once or for each strip.

    It has the parameters of `product`.
    """
    element, result_columns, right_columns = (
        shape.element,
        shape.result_columns,
        shape.right_columns,
    )
    c = Array("C", element, Storage.OUTPUT)
    a, b = Array("A", element, Storage.INPUT), Array("B", element, Storage.INPUT)
    tables, steps = parameters(*shape.classes)
    width = shape.blocks.strip
    strip = Var("strip")
    j = mul(strip, width)

    def product(places: tuple[Place, Place], columns: Expr, j: Expr, threads: Expr) -> Invoke:
        advancing = (result_columns, right_columns)
        inside = [
            place
            for steps_ in shape.classes
            for place in steps_.places(j if steps_ in advancing else const(0))
        ]
        left = Place(a, const(0))
        operands = (places[0], left, places[1])
        scalars = (ROWS, columns, DEPTH, *steps, *shape.factors)
        return Invoke(PRODUCT, (*operands, *inside), scalars, threads)

    start = (Place(c, result_columns.origin(j)), Place(b, right_columns.origin(j)))
    part = product(start, minimum(sub(COLUMNS, j), width), j, const(1, INT32))
    all_at_once = product((Place(c, const(0)), Place(b, const(0))), COLUMNS, const(0), THREADS)
    flat = and_(le(ROWS, shape.blocks.rows), lt(width, COLUMNS))
    body = If(
        flat,
        block(_shared(strip, const(0), _quotient(COLUMNS, const(width)), Block((part,)))),
        block(all_at_once),
    )
    scalars = (ROWS, COLUMNS, DEPTH, *steps, *shape.factors)
    return Function(
        STRIPS, (c, a, b, *tables), scalars, Block((body,)), threaded=True, internal=True
    )
