"""Copies of blocks of operands in the order in which tiles read them.

    right   a panel of as many columns as a tile has, zeros behind the last column:
            P[k*columns + c] = B[k, c]
    left    rows as they are, where k runs along them: P[r*(depth + PAD) + k] = A[r, k];
            else panels of as many rows as a tile has: P[p*rows*depth + k*rows + r] = A[r, k]

The copy takes its elements from wherever strides or tables say, so that no operand is transposed
before.
"""

from __future__ import annotations

from codegen.build import add, block, const, if_, load, lt, mul, ne, or_, select, sub, zero
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
from codegen.types import BOOL, ScalarType
from polyhedral.offsets import Steps, parameters
from polyhedral.register_tile import Tile

PAD = 8
"""Elements between packed rows, lest a power of two put them all into one set of the cache."""
PACK_LEFT, PACK_RIGHT = "pack_left", "pack_right"

DEPTH, ROWS, COLUMNS = Var("depth"), Var("rows"), Var("columns")
ALONG = Var("along", BOOL)
K, ROW, COLUMN, APART, WIDTH = (Var(name) for name in ("k", "row", "column", "apart", "width"))


def pack_right(tile: Tile, element: ScalarType, across: Steps, down: Steps) -> Function:
    """The function that packs a panel: `columns`, steps `across`, over `depth`, steps `down`.

    `along` says that k runs through neighbouring elements.
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
    body = block(_apart(across, width), If(ne(APART, 0), scattered, neighbours))
    tables, scalars = parameters(across, down)
    return Function(
        PACK_RIGHT, (panel, source, *tables), (COLUMNS, DEPTH, ALONG, *scalars), body, internal=True
    )


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
