"""Copies of blocks of operands in the order in which tiles read them.

    right   panels of as many columns as a tile has, zeros behind the last column:
            P[p*columns*depth + k*columns + c] = B[k, p*columns + c]
    left    rows as they are, where k runs along them: P[r*(depth + PAD) + k] = A[r, k];
            else panels of as many rows as a tile has: P[p*rows*depth + k*rows + r] = A[r, k]

The copy reads elements by strides or tables, so that no operand is transposed beforehand.
"""

from __future__ import annotations

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    if_,
    le,
    load,
    lt,
    minimum,
    mul,
    ne,
    select,
    sub,
    zero,
)
from codegen.ir import (
    Array,
    Assign,
    Binary,
    Block,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    LoopKind,
    Prefetch,
    Stmt,
    Storage,
    Store,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.shared_work import shared_function
from codegen.types import BOOL, ScalarType, vector
from polyhedral.products.offsets import Steps, parameters
from polyhedral.products.register_tile import Tile
from polyhedral.products.squares import transposed

PAD = 8
"""Elements between packed rows, so that rows a power of two apart do not share a set of the
cache."""
SOON = 4
"""Rows from the packed one to the one that is prefetched."""
PACK_LEFT, PACK_RIGHT = "pack_left", "pack_right"

DEPTH, ROWS, COLUMNS = Var("depth"), Var("rows"), Var("columns")
CONTIGUOUS = Var("along", BOOL)
K, ROW, COLUMN, SCATTERED, WIDTH = (Var(name) for name in ("k", "row", "column", "apart", "width"))
PANEL, COUNT, SOME = Var("panel"), Var("count"), Var("some")
FIRST, NEXT, TURN, TURNS, HOP = (Var(n) for n in ("first", "next", "turn", "turns", "hop"))


@shared_function
def pack_right(tile: Tile, element: ScalarType, edge: Steps, down: Steps) -> Function:
    """Return the function that packs panels of `columns`, steps `edge`, over `depth`, steps
    `down`.

    `along` tells whether k is one loop of stride 1. Where it is, or one of its loops has stride 1,
    squares of a full panel are transposed in registers.
    """
    panels, source = Array("P", element, Storage.OUTPUT), Array("B", element, Storage.INPUT)
    width = tile.columns
    full = mul(div(COLUMNS, width), width)
    body = block(
        Declare(SOME, select(and_(edge.even, eq(edge.stride, 1)), full, 0), True),
        _side_by_side(panels, source, tile, edge, down),
        Declare(HOP, select(CONTIGUOUS, 1, 0 if down.table is None else down.hop), True),
        For(PANEL, SOME, COLUMNS, _one_panel(panels, source, tile, edge, down), width),
    )
    tables, scalars = parameters(edge, down)
    return Function(
        PACK_RIGHT,
        (panels, source, *tables),
        (COLUMNS, DEPTH, CONTIGUOUS, *scalars),
        body,
        internal=True,
    )


def _side_by_side(panels: Array, source: Array, tile: Tile, edge: Steps, down: Steps) -> Block:
    """Return the packing of full panels of contiguous columns, all of each row at once.

    Rows of a large operand are pages apart; to fetch them from memory a panel's width at a time
    takes twice as long.
    """
    start = add(edge.at(0), COLUMN)
    soon = add(down.at(minimum(add(K, SOON), sub(DEPTH, 1))), start)
    place = add(mul(COLUMN, DEPTH), mul(K, tile.columns))
    row = _row_of(panels, place, source, add(down.at(K), start), tile)
    body = block(Prefetch(source, soon), *row)
    return _nest(For(COLUMN, const(0), SOME, body, tile.columns), (K, DEPTH))


def _one_panel(panels: Array, source: Array, tile: Tile, edge: Steps, down: Steps) -> Block:
    """Return the packing of the panel at column `panel`, of which `count` columns exist."""
    start = mul(PANEL, DEPTH)
    one = Store(
        panels,
        add(start, mul(K, tile.columns), COLUMN),
        load(source, add(down.at(K), edge.at(add(PANEL, COLUMN)))),
    )
    rest = Fill(panels, start, mul(DEPTH, tile.columns), zero(panels.element))
    body = block(
        if_(lt(COUNT, tile.columns), rest),
        If(
            CONTIGUOUS,
            _nest(one, (COLUMN, COUNT), (K, DEPTH)),
            _nest(one, (K, DEPTH), (COLUMN, COUNT)),
        ),
    )
    if tile.lanes > 1:
        squares = block(_in_squares(panels, source, tile, edge, down))
        body = Block((If(and_(eq(COUNT, tile.columns), lt(0, HOP)), squares, body),))
    if edge.table is not None:
        place = add(start, mul(K, tile.columns))
        row = _row_of(panels, place, source, add(down.at(K), edge.at(PANEL)), tile)
        neighbours = _nest(block(*row), (K, DEPTH))
        body = block(_find_scattered(edge, tile.columns), If(ne(SCATTERED, 0), body, neighbours))
    return block(Declare(COUNT, minimum(sub(COLUMNS, PANEL), tile.columns), True), body)


def _row_of(panels: Array, place: Expr, source: Array, start: Expr, tile: Tile) -> list[Stmt]:
    """Return the copy of one row of a panel of contiguous columns, in vectors."""
    return [
        VectorStore(panels, add(place, lane), VectorLoad(source, add(start, lane), tile.lanes))
        for lane in range(0, tile.columns, tile.lanes)
    ]


def _in_squares(panel: Array, source: Array, tile: Tile, edge: Steps, down: Steps) -> For:
    """Return the packing of a full panel where neighbours along k are `hop` steps apart.

        for first in 0..hop, k = first, first + hop …, as many at a time as a vector has lanes:
          P[k: , :] = B[k: , :] transposed        element by element where these are not contiguous

    Each cache line of B is read completely at once: lines as far apart as columns share few sets of
    the cache, and would be evicted before their next element is read.
    """
    at = add(FIRST, mul(TURN, HOP))
    start = mul(PANEL, DEPTH)
    element = Store(
        panel,
        add(start, mul(K, tile.columns), COLUMN),
        load(source, add(down.at(K), edge.at(add(PANEL, COLUMN)))),
    )
    row = _nest(element, (COLUMN, const(tile.columns)))
    single = For(
        TURN, NEXT, minimum(add(NEXT, tile.lanes), TURNS), block(Declare(K, at, True), *row.body)
    )
    steps = [add(FIRST, mul(add(NEXT, lane), HOP)) for lane in range(tile.lanes)]
    neighbours = and_(*(eq(down.at(k), add(down.at(steps[0]), n)) for n, k in enumerate(steps)))
    is_square = and_(le(add(NEXT, tile.lanes), TURNS), neighbours)
    square = _square(panel, source, tile, edge, down.at(steps[0]), steps)
    body = block(
        Declare(TURNS, div(sub(add(sub(DEPTH, FIRST), HOP), 1), HOP), True),
        For(NEXT, const(0), TURNS, Block((If(is_square, square, block(single)),)), tile.lanes),
    )
    return For(FIRST, const(0), minimum(HOP, DEPTH), body)


def _square(
    panel: Array, source: Array, tile: Tile, edge: Steps, start: Expr, steps: list[Expr]
) -> Block:
    """Return loads of vectors of each column from `start` on, transposed into rows of the panel."""
    code: list[Stmt] = []
    read = [Var(f"b_{n}", vector(panel.element, tile.lanes)) for n in range(tile.lanes)]
    for n, var in enumerate(read):
        place = add(start, edge.at(add(PANEL, COLUMN, n)))
        code.append(Declare(var, VectorLoad(source, place, tile.lanes), True))
    for k, row in zip(steps, transposed(read, code), strict=True):
        code.append(VectorStore(panel, add(mul(PANEL, DEPTH), mul(k, tile.columns), COLUMN), row))
    return Block((For(COLUMN, const(0), const(tile.columns), block(*code), tile.lanes),))


def _find_scattered(edge: Steps, width: int) -> Block:
    """Return code that sets `apart` to 0 where the panel is full and its columns are contiguous."""
    start, position = edge.at(PANEL), edge.at(add(PANEL, COLUMN))
    step = select(ne(position, add(start, COLUMN)), 1, 0)
    return block(
        Declare(SCATTERED, select(ne(COUNT, width), 1, 0)),
        _nest(Assign(SCATTERED, step, "+"), (COLUMN, COUNT)),
    )


def pack_left(
    tile: Tile,
    element: ScalarType,
    edge: Steps,
    down: Steps,
    factor: Var | None = None,
    few: LoopKind = LoopKind.SERIAL,
) -> Function:
    """Return the function that packs a block of `rows`, steps `edge`, over `depth`, steps `down`.

    As rows where `along`: where k is one loop of stride 1. Elements are multiplied by the parameter
    `factor`, if not None.

    few  the kind of the loop over the rows of a tile: as a serial one of few iterations, it keeps
         gcc 12 from vectorizing code with conditions anywhere in the source
         (`codegen.toolchain.compiler`)
    """

    def scaled(at: Expr) -> Expr:
        value = load(source, at)
        return value if factor is None else Binary("*", factor, value)

    packed, source = Array("P", element, Storage.OUTPUT), Array("A", element, Storage.INPUT)
    start, first = Var("start"), Var("first")
    copied = Store(packed, add(mul(ROW, add(DEPTH, PAD)), K), scaled(add(start, K)))
    as_rows = _nest(
        block(Declare(start, add(edge.at(ROW), down.at(0)), True), _nest(copied, (K, DEPTH))),
        (ROW, ROWS),
    )

    def panel(rows: Expr | int) -> Stmt:
        place = add(mul(first, DEPTH), mul(K, tile.rows), ROW)
        element_ = scaled(add(start, edge.at(add(first, ROW))))
        row = For(ROW, const(0), add(rows, 0), Block((Store(packed, place, element_),)), 1, few)
        return _nest(block(Declare(start, down.at(K), True), row), (K, DEPTH))

    left = sub(ROWS, first)
    tile_or_rest = If(lt(left, tile.rows), block(panel(left)), block(panel(tile.rows)))
    panels = For(first, const(0), ROWS, Block((tile_or_rest,)), tile.rows)
    tables, scalars = parameters(edge, down)
    return Function(
        PACK_LEFT,
        (packed, source, *tables),
        (ROWS, DEPTH, CONTIGUOUS, *scalars, *(() if factor is None else (factor,))),
        block(If(CONTIGUOUS, Block((as_rows,)), Block((panels,)))),
        internal=True,
    )


def _nest(inner: Stmt, *loops: tuple[Var, Expr]) -> Block:
    """Return loops from 0 around `inner`, outermost first."""
    body = block(inner)
    for variable, size in reversed(loops):
        body = Block((For(variable, const(0), size, body),))
    return body
