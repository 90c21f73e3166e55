"""Copies of blocks of operands in the order in which tiles read them.

    right   panels of as many columns as a tile has, zeros behind the last column:
            P[p*columns*depth + k*columns + c] = B[k, p*columns + c]
    left    rows as they are, where k runs along them: P[r*(depth + PAD) + k] = A[r, k];
            else panels of as many rows as a tile has: P[p*rows*depth + k*rows + r] = A[r, k]

The copy takes its elements from wherever strides or tables say, so that no operand is transposed
before.
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
from codegen.types import BOOL, ScalarType, vector
from polyhedral.products.offsets import Steps, parameters
from polyhedral.products.register_tile import Tile
from polyhedral.products.squares import transposed

PAD = 8
"""Elements between packed rows, lest a power of two put them all into one set of the cache."""
SOON = 4
"""Rows between the one that is packed and the one that is fetched from memory meanwhile."""
PACK_LEFT, PACK_RIGHT = "pack_left", "pack_right"

DEPTH, ROWS, COLUMNS = Var("depth"), Var("rows"), Var("columns")
ALONG = Var("along", BOOL)
K, ROW, COLUMN, APART, WIDTH = (Var(name) for name in ("k", "row", "column", "apart", "width"))
PANEL, COUNT, SOME = Var("panel"), Var("count"), Var("some")
FIRST, NEXT, TURN, TURNS, HOP = (Var(n) for n in ("first", "next", "turn", "turns", "hop"))


def pack_right(tile: Tile, element: ScalarType, across: Steps, down: Steps) -> Function:
    """Return the function that packs panels: `columns` in all, steps `across`, over `depth`, steps
    `down`.

    `along` says that k runs through neighbouring elements, as one loop. Where it does so, or one
    of its loops does, squares of a whole panel are transposed in registers.
    """
    panels, source = Array("P", element, Storage.OUTPUT), Array("B", element, Storage.INPUT)
    width = tile.columns
    whole = mul(div(COLUMNS, width), width)
    body = block(
        Declare(SOME, select(and_(across.even, eq(across.stride, 1)), whole, 0), True),
        _side_by_side(panels, source, tile, across, down),
        Declare(HOP, select(ALONG, 1, 0 if down.table is None else down.hop), True),
        For(PANEL, SOME, COLUMNS, _one_panel(panels, source, tile, across, down), width),
    )
    tables, scalars = parameters(across, down)
    return Function(
        PACK_RIGHT,
        (panels, source, *tables),
        (COLUMNS, DEPTH, ALONG, *scalars),
        body,
        internal=True,
    )


def _side_by_side(panels: Array, source: Array, tile: Tile, across: Steps, down: Steps) -> Block:
    """Return the whole panels of columns that are neighbours, all of each row at once.

    Rows of a large operand lie pages apart; to fetch them from memory a panel's width at a time
    takes twice as long.
    """
    start = add(across.at(0), COLUMN)
    soon = add(down.at(minimum(add(K, SOON), sub(DEPTH, 1))), start)
    place = add(mul(COLUMN, DEPTH), mul(K, tile.columns))
    row = _row_of(panels, place, source, add(down.at(K), start), tile)
    body = block(Prefetch(source, soon), *row)
    return _nest(For(COLUMN, const(0), SOME, body, tile.columns), (K, DEPTH))


def _one_panel(panels: Array, source: Array, tile: Tile, across: Steps, down: Steps) -> Block:
    """Return the panel that starts at column `panel`, `count` of whose columns there are."""
    start = mul(PANEL, DEPTH)
    one = Store(
        panels,
        add(start, mul(K, tile.columns), COLUMN),
        load(source, add(down.at(K), across.at(add(PANEL, COLUMN)))),
    )
    rest = Fill(panels, start, mul(DEPTH, tile.columns), zero(panels.element))
    body = block(
        if_(lt(COUNT, tile.columns), rest),
        If(ALONG, _nest(one, (COLUMN, COUNT), (K, DEPTH)), _nest(one, (K, DEPTH), (COLUMN, COUNT))),
    )
    if tile.lanes > 1:
        squares = block(_in_squares(panels, source, tile, across, down))
        body = Block((If(and_(eq(COUNT, tile.columns), lt(0, HOP)), squares, body),))
    if across.table is not None:
        place = add(start, mul(K, tile.columns))
        row = _row_of(panels, place, source, add(down.at(K), across.at(PANEL)), tile)
        neighbours = _nest(block(*row), (K, DEPTH))
        body = block(_apart(across, tile.columns), If(ne(APART, 0), body, neighbours))
    return block(Declare(COUNT, minimum(sub(COLUMNS, PANEL), tile.columns), True), body)


def _row_of(panels: Array, place: Expr, source: Array, start: Expr, tile: Tile) -> list[Stmt]:
    """Return one row of a panel whose columns are neighbours, in vectors."""
    return [
        VectorStore(panels, add(place, lane), VectorLoad(source, add(start, lane), tile.lanes))
        for lane in range(0, tile.columns, tile.lanes)
    ]


def _in_squares(panel: Array, source: Array, tile: Tile, across: Steps, down: Steps) -> For:
    """Return a whole panel where neighbours along k lie `hop` steps apart.

        for first in 0..hop, k = first, first + hop …, so many at a time as a vector has lanes:
          P[k: , :] = B[k: , :] transposed        element by element where these are no neighbours

    Each line of B is read from end to end at once: lines as far apart as columns are fall into few
    sets of the cache, and would be gone before the next of their elements is wanted.
    """
    at = add(FIRST, mul(TURN, HOP))
    start = mul(PANEL, DEPTH)
    element = Store(
        panel,
        add(start, mul(K, tile.columns), COLUMN),
        load(source, add(down.at(K), across.at(add(PANEL, COLUMN)))),
    )
    row = _nest(element, (COLUMN, const(tile.columns)))
    single = For(
        TURN, NEXT, minimum(add(NEXT, tile.lanes), TURNS), block(Declare(K, at, True), *row.body)
    )
    steps = [add(FIRST, mul(add(NEXT, lane), HOP)) for lane in range(tile.lanes)]
    neighbours = and_(*(eq(down.at(k), add(down.at(steps[0]), n)) for n, k in enumerate(steps)))
    whole = and_(le(add(NEXT, tile.lanes), TURNS), neighbours)
    square = _square(panel, source, tile, across, down.at(steps[0]), steps)
    body = block(
        Declare(TURNS, div(sub(add(sub(DEPTH, FIRST), HOP), 1), HOP), True),
        For(NEXT, const(0), TURNS, Block((If(whole, square, block(single)),)), tile.lanes),
    )
    return For(FIRST, const(0), minimum(HOP, DEPTH), body)


def _square(
    panel: Array, source: Array, tile: Tile, across: Steps, start: Expr, steps: list[Expr]
) -> Block:
    """Vectors of each column from `start` on, transposed into rows of the panel."""
    code: list[Stmt] = []
    read = [Var(f"b_{n}", vector(panel.element, tile.lanes)) for n in range(tile.lanes)]
    for n, var in enumerate(read):
        place = add(start, across.at(add(PANEL, COLUMN, n)))
        code.append(Declare(var, VectorLoad(source, place, tile.lanes), True))
    for k, row in zip(steps, transposed(read, code), strict=True):
        code.append(VectorStore(panel, add(mul(PANEL, DEPTH), mul(k, tile.columns), COLUMN), row))
    return Block((For(COLUMN, const(0), const(tile.columns), block(*code), tile.lanes),))


def _apart(across: Steps, width: int) -> Block:
    """Return `apart` is 0 where the panel is whole and its columns are neighbours."""
    start, here = across.at(PANEL), across.at(add(PANEL, COLUMN))
    step = select(ne(here, add(start, COLUMN)), 1, 0)
    return block(
        Declare(APART, select(ne(COUNT, width), 1, 0)),
        _nest(Assign(APART, step, "+"), (COLUMN, COUNT)),
    )


def pack_left(
    tile: Tile,
    element: ScalarType,
    across: Steps,
    down: Steps,
    factor: Var | None = None,
    few: LoopKind = LoopKind.SERIAL,
) -> Function:
    """Return the function that packs a block of `rows`, steps `across`, over `depth`, steps `down`;
    as rows where `along`, which says that k runs through neighbouring elements. Each is multiplied
    by `factor` where that is given, a parameter.

    few  of the loop over the rows of a tile: a serial one of so few keeps gcc 12 from vectors of
         what has conditions, anywhere in the source (`codegen.toolchain.compiler`)
    """

    def taken(at: Expr) -> Expr:
        value = load(source, at)
        return value if factor is None else Binary("*", factor, value)

    packed, source = Array("P", element, Storage.OUTPUT), Array("A", element, Storage.INPUT)
    start, first = Var("start"), Var("first")
    copied = Store(packed, add(mul(ROW, add(DEPTH, PAD)), K), taken(add(start, K)))
    as_rows = _nest(
        block(Declare(start, add(across.at(ROW), down.at(0)), True), _nest(copied, (K, DEPTH))),
        (ROW, ROWS),
    )

    def panel(rows: Expr | int) -> Stmt:
        place = add(mul(first, DEPTH), mul(K, tile.rows), ROW)
        element_ = taken(add(start, across.at(add(first, ROW))))
        row = For(ROW, const(0), add(rows, 0), Block((Store(packed, place, element_),)), 1, few)
        return _nest(block(Declare(start, down.at(K), True), row), (K, DEPTH))

    left = sub(ROWS, first)
    whole_or_rest = If(lt(left, tile.rows), block(panel(left)), block(panel(tile.rows)))
    panels = For(first, const(0), ROWS, Block((whole_or_rest,)), tile.rows)
    tables, scalars = parameters(across, down)
    return Function(
        PACK_LEFT,
        (packed, source, *tables),
        (ROWS, DEPTH, ALONG, *scalars, *(() if factor is None else (factor,))),
        block(If(ALONG, Block((as_rows,)), Block((panels,)))),
        internal=True,
    )


def _nest(inner: Stmt, *loops: tuple[Var, Expr]) -> Block:
    """Return loops from 0 around `inner`, outermost first."""
    body = block(inner)
    for variable, size in reversed(loops):
        body = Block((For(variable, const(0), size, body),))
    return body
