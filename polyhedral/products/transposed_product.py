"""Small products of matrices whose result is stored in the other order than the operands.

    turned(C, A, B, …):   for squares of rows r and columns c, as wide as a vector:
                            t_c = sum(k, A[r:+lanes, k] * B[k, c])
                            C[r, c:+lanes] = the square of all t_c transposed
                          the remainder: edge

Rows of A and columns of C are contiguous, rows and columns of B are not: a copy of B in another
order would take longer than the product.
"""

from __future__ import annotations

from codegen.build import add, block, const, div, load, lt, mul, sub, zero
from codegen.ir import (
    Array,
    Assign,
    Binary,
    Block,
    Broadcast,
    Declare,
    For,
    Function,
    If,
    Invoke,
    Place,
    Stmt,
    Storage,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.types import vector
from polyhedral.products.blocked import Shape
from polyhedral.products.edge import A_K, A_ROW, B_COLUMN, B_K, COLUMNS, DEPTH, EDGE, ROWS, I, J, K
from polyhedral.products.offsets import parameters
from polyhedral.products.squares import transposed

TURNED = "turned"
HIGH, WIDE = Var("high"), Var("wide")
"""Rows and columns that fill squares."""


def turned_function(shape: Shape) -> Function:
    """Return `turned(C, A, B, …)`, for contiguous rows of A and columns of C."""
    element, lanes = shape.element, shape.tile.lanes
    c = Array("C", element, Storage.OUTPUT)
    a, b = Array("A", element, Storage.INPUT), Array("B", element, Storage.INPUT)
    rows, columns = shape.result_rows, shape.result_columns
    steps = (A_ROW, A_K, B_K, B_COLUMN, *rows.values, *columns.values)
    edge_rows = Invoke(
        EDGE,
        (
            Place(c, rows.origin(HIGH)),
            Place(a, mul(HIGH, A_ROW)),
            Place(b, const(0)),
            *rows.places(HIGH),
            *columns.places(0),
        ),
        (sub(ROWS, HIGH), const(0), WIDE, DEPTH, *steps),
    )
    starts = (Place(c, const(0)), Place(a, const(0)), Place(b, const(0)))
    edge_columns = Invoke(
        EDGE,
        (*starts, *rows.places(0), *columns.places(0)),
        (ROWS, WIDE, COLUMNS, DEPTH, *steps),
    )
    squares = For(I, const(0), HIGH, _square(shape, c, a, b), lanes)
    body = block(
        Declare(HIGH, mul(div(ROWS, lanes), lanes), True),
        Declare(WIDE, mul(div(COLUMNS, lanes), lanes), True),
        For(J, const(0), WIDE, Block((squares,)), lanes),
        If(lt(HIGH, ROWS), block(edge_rows)),
        If(lt(WIDE, COLUMNS), block(edge_columns)),
    )
    tables, more = parameters(rows, columns)
    scalars = (ROWS, COLUMNS, DEPTH, A_ROW, A_K, B_K, B_COLUMN, *more)
    return Function(TURNED, (c, a, b, *tables), scalars, body, internal=True)


def _square(shape: Shape, c: Array, a: Array, b: Array) -> Block:
    lanes = shape.tile.lanes
    kind = vector(shape.element, lanes)
    totals = [Var(f"t_{column}", kind) for column in range(lanes)]
    left = Var("left", kind)
    products: list[Stmt] = [Declare(left, VectorLoad(a, add(I, mul(K, A_K)), lanes), constant=True)]
    for column, total in enumerate(totals):
        right = load(b, add(mul(K, B_K), mul(add(J, column), B_COLUMN)))
        products.append(Assign(total, Binary("*", Broadcast(right, lanes), left), "+"))
    after: list[Stmt] = []
    for row, line in enumerate(transposed(totals, after)):
        place = add(shape.result_rows.at(add(I, row)), shape.result_columns.at(J))
        after.append(VectorStore(c, place, line))
    declared = (Declare(total, Broadcast(zero(shape.element), lanes)) for total in totals)
    return block(*declared, For(K, const(0), DEPTH, block(*products)), *after)
