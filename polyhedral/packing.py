"""Copies of blocks of operands in the order in which tiles read them.

    right   a panel of as many columns as a tile has, zeros behind the last column:
            P[k*columns + c] = B[k, c]
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
    or_,
    select,
    sub,
    zero,
)
from codegen.ir import (
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    Stmt,
    Storage,
    Store,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.types import BOOL, ScalarType, vector
from polyhedral.offsets import Steps, parameters
from polyhedral.register_tile import Tile
from polyhedral.squares import transposed

PAD = 8
"""Elements between packed rows, lest a power of two put them all into one set of the cache."""
PACK_LEFT, PACK_RIGHT = "pack_left", "pack_right"

DEPTH, ROWS, COLUMNS = Var("depth"), Var("rows"), Var("columns")
ALONG = Var("along", BOOL)
K, ROW, COLUMN, APART, WIDTH = (Var(name) for name in ("k", "row", "column", "apart", "width"))
FIRST, NEXT, TURN, TURNS, HOP = (Var(n) for n in ("first", "next", "turn", "turns", "hop"))


def pack_right(tile: Tile, element: ScalarType, across: Steps, down: Steps) -> Function:
    """The function that packs a panel: `columns`, steps `across`, over `depth`, steps `down`.

    `along` says that k runs through neighbouring elements, as one loop. Where it does so, or one
    of its loops does, squares of a whole panel are transposed in registers.
    """
    panel, source = Array("P", element, Storage.OUTPUT), Array("B", element, Storage.INPUT)
    width = tile.columns
    place = add(mul(K, width), COLUMN)
    one = Store(panel, place, load(source, add(down.at(K), across.at(COLUMN))))
    rest = Fill(panel, const(0), mul(DEPTH, width), zero(element))
    scattered = block(
        if_(lt(COLUMNS, width), rest),
        If(
            ALONG,
            _nest(one, (COLUMN, COLUMNS), (K, DEPTH)),
            _nest(one, (K, DEPTH), (COLUMN, COLUMNS)),
        ),
    )
    neighbours = _nest(_whole_row(panel, source, tile, across, down), (K, DEPTH))
    if tile.lanes > 1:
        squares = block(_in_squares(panel, source, tile, across, down))
        scattered = Block((If(and_(eq(COLUMNS, width), lt(0, HOP)), squares, scattered),))
    body = block(
        _apart(across, width),
        Declare(HOP, select(ALONG, 1, 0 if down.table is None else down.hop), True),
        If(ne(APART, 0), scattered, neighbours),
    )
    tables, scalars = parameters(across, down)
    return Function(
        PACK_RIGHT, (panel, source, *tables), (COLUMNS, DEPTH, ALONG, *scalars), body, internal=True
    )


def _in_squares(panel: Array, source: Array, tile: Tile, across: Steps, down: Steps) -> For:
    """A whole panel where neighbours along k lie `hop` steps apart.

        for first in 0..hop, k = first, first + hop …, so many at a time as a vector has lanes:
          P[k: , :] = B[k: , :] transposed        element by element where these are no neighbours

    Each line of B is read from end to end at once: lines as far apart as columns are fall into few
    sets of the cache, and would be gone before the next of their elements is wanted.
    """
    at = add(FIRST, mul(TURN, HOP))
    element = Store(
        panel, add(mul(K, tile.columns), COLUMN), load(source, add(down.at(K), across.at(COLUMN)))
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
        place = add(start, across.at(add(COLUMN, n)))
        code.append(Declare(var, VectorLoad(source, place, tile.lanes), True))
    for k, row in zip(steps, transposed(read, code), strict=True):
        code.append(VectorStore(panel, add(mul(k, tile.columns), COLUMN), row))
    return Block((For(COLUMN, const(0), const(tile.columns), block(*code), tile.lanes),))


def _whole_row(panel: Array, source: Array, tile: Tile, across: Steps, down: Steps) -> Block:
    """One row of a panel whose columns are neighbours, in vectors."""
    start = add(down.at(K), across.at(0))
    return block(
        *(
            VectorStore(
                panel,
                add(mul(K, tile.columns), lane),
                VectorLoad(source, add(start, lane), tile.lanes),
            )
            for lane in range(0, tile.columns, tile.lanes)
        )
    )


def _apart(across: Steps, width: int) -> Block:
    """`apart` is 0 where the panel is whole and its columns are neighbours."""
    short = ne(COLUMNS, width)
    if across.table is None:
        return block(Declare(APART, select(or_(short, ne(across.stride, 1)), 1, 0), True))
    step = select(ne(across.at(COLUMN), add(across.at(0), COLUMN)), 1, 0)
    return block(
        Declare(APART, select(short, 1, 0)), _nest(Assign(APART, step, "+"), (COLUMN, COLUMNS))
    )


def pack_left(tile: Tile, element: ScalarType, across: Steps, down: Steps) -> Function:
    """The function that packs a block of `rows`, steps `across`, over `depth`, steps `down`; as
    rows where `along`, which says that k runs through neighbouring elements."""
    packed, source = Array("P", element, Storage.OUTPUT), Array("A", element, Storage.INPUT)
    start, first = Var("start"), Var("first")
    copied = Store(packed, add(mul(ROW, add(DEPTH, PAD)), K), load(source, add(start, K)))
    as_rows = _nest(
        block(Declare(start, add(across.at(ROW), down.at(0)), True), _nest(copied, (K, DEPTH))),
        (ROW, ROWS),
    )

    def panel(rows: Expr | int) -> Stmt:
        place = add(mul(first, DEPTH), mul(K, tile.rows), ROW)
        element_ = load(source, add(start, across.at(add(first, ROW))))
        row = For(ROW, const(0), add(rows, 0), Block((Store(packed, place, element_),)))
        return _nest(block(Declare(start, down.at(K), True), row), (K, DEPTH))

    left = sub(ROWS, first)
    whole_or_rest = If(lt(left, tile.rows), block(panel(left)), block(panel(tile.rows)))
    panels = For(first, const(0), ROWS, Block((whole_or_rest,)), tile.rows)
    tables, scalars = parameters(across, down)
    return Function(
        PACK_LEFT,
        (packed, source, *tables),
        (ROWS, DEPTH, ALONG, *scalars),
        block(If(ALONG, Block((as_rows,)), Block((panels,)))),
        internal=True,
    )


def _nest(inner: Stmt, *loops: tuple[Var, Expr]) -> Block:
    """Loops from 0 around `inner`, outermost first."""
    body = block(inner)
    for variable, size in reversed(loops):
        body = Block((For(variable, const(0), size, body),))
    return body
