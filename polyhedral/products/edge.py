"""The last columns of a small product of matrices, too few for a tile, without a copy.

    edge(C, A, B, first, …):   for columns first..columns, so many at a time as a vector has lanes,
                               then one by one:
                                 for rows, FOUR at a time, then one by one:
                                   c_r = sum(k, A[r, k] * B[k, column:+lanes])
                                   C[r, column:+lanes] = c_r

A tile would need zeros after the last column, in a copy that takes longer than a product of a few
elements. Both operands are read in place, and nothing beyond them.
"""

from __future__ import annotations

from codegen.build import add, block, const, div, eq, load, mul, select, sub, zero
from codegen.ir import (
    Array,
    Assign,
    Binary,
    Block,
    Broadcast,
    Declare,
    Expr,
    For,
    Function,
    Stmt,
    Storage,
    Store,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.types import vector
from polyhedral.products.blocked import Shape
from polyhedral.products.offsets import parameters

EDGE = "edge"
FOUR = 4
"""Rows at a time: their sums are independent, and share loads of right."""

ROWS, COLUMNS, DEPTH, FIRST = Var("rows"), Var("columns"), Var("depth"), Var("first")
A_ROW, A_K, B_K, B_COLUMN = Var("a_row"), Var("a_k"), Var("b_k"), Var("b_column")
I, J, K = Var("i"), Var("j"), Var("k")  # noqa: E741
FULL_ROWS, LAST = Var("whole"), Var("last")


def edge_function(shape: Shape) -> Function:
    """Return `edge(C, A, B, …)`: columns from `first` on, contiguous in C.

    Where they are not contiguous in B, that is where `b_column` is not 1, they are computed one by
    one.
    """
    element, lanes = shape.element, shape.tile.lanes
    arrays = (
        Array("C", element, Storage.OUTPUT),
        Array("A", element, Storage.INPUT),
        Array("B", element, Storage.INPUT),
    )
    filled = mul(div(sub(COLUMNS, FIRST), lanes), lanes)
    body = block(
        Declare(FULL_ROWS, mul(div(ROWS, FOUR), FOUR), True),
        Declare(LAST, select(eq(B_COLUMN, 1), add(FIRST, filled), FIRST), True),
        _columns(shape, arrays, FIRST, LAST, lanes),
        _columns(shape, arrays, LAST, COLUMNS, 1),
    )
    tables, steps = parameters(shape.result_rows, shape.result_columns)
    scalars = (ROWS, FIRST, COLUMNS, DEPTH, A_ROW, A_K, B_K, B_COLUMN, *steps)
    return Function(EDGE, (*arrays, *tables), scalars, body, internal=True)


Arrays = tuple[Array, Array, Array]


def _columns(shape: Shape, arrays: Arrays, start: Expr, stop: Expr, lanes: int) -> For:
    body = block(
        For(I, const(0), FULL_ROWS, _sums(shape, arrays, FOUR, lanes), FOUR),
        For(I, FULL_ROWS, ROWS, _sums(shape, arrays, 1, lanes)),
    )
    return For(J, start, stop, body, lanes)


def _sums(shape: Shape, arrays: Arrays, rows: int, lanes: int) -> Block:
    """Return the sums of `rows` rows from `i` on, for `lanes` columns from `j` on."""
    c, a, b = arrays
    kind = vector(shape.element, lanes) if lanes > 1 else shape.element
    totals = [Var(f"c_{row}", kind) for row in range(rows)]
    right, at = Var("right", kind), add(mul(K, B_K), J if lanes > 1 else mul(J, B_COLUMN))
    nothing, read = _wide(zero(shape.element), lanes), load(b, at)
    products: list[Stmt] = [
        Declare(right, VectorLoad(b, at, lanes) if lanes > 1 else read, constant=True)
    ]
    stores: list[Stmt] = []
    for row, total in enumerate(totals):
        left = load(a, add(mul(add(I, row), A_ROW), mul(K, A_K)))
        products.append(Assign(total, Binary("*", _wide(left, lanes), right), "+"))
        place = add(shape.result_rows.at(add(I, row)), shape.result_columns.at(J))
        stores.append(VectorStore(c, place, total) if lanes > 1 else Store(c, place, total))
    declared = (Declare(total, nothing) for total in totals)
    return block(*declared, For(K, const(0), DEPTH, block(*products)), *stores)


def _wide(value: Expr, lanes: int) -> Expr:
    return Broadcast(value, lanes) if lanes > 1 else value
