"""The innermost product of a contraction: one tile of the result, held in registers.

    tile_2(C, A, B, depth, a_row, a_k, b_k, c_row, adds)     2 rows, 2 vectors of 4

    c_0_0 = c_0_1 = c_1_0 = c_1_1 = {0}
    for k in 0..depth:
      b_0 = B[k*b_k:+4]; b_1 = B[k*b_k + 4:+4]
      a_0 = A[k*a_k];         c_0_0 += a_0 * b_0; c_0_1 += a_0 * b_1
      a_1 = A[a_row + k*a_k]; c_1_0 += a_1 * b_0; c_1_1 += a_1 * b_1
    if adds: c_0_0 += C[0:+4] ...
    C[0:+4] = c_0_0 ...

The strides are arguments, so that one function reads packed operands and operands in place. Each
accumulator is a separate variable: gcc keeps no array of accumulators in registers.
"""

from __future__ import annotations

from codegen.build import add, block, const, load, mul, zero
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
    If,
    Prefetch,
    Stmt,
    Storage,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.records import dataclass
from codegen.shared_work import shared_function
from codegen.types import BOOL, ScalarType, vector
from polyhedral.products.register_tile import Tile

DEPTH, A_ROW, A_K, B_K, C_ROW = (Var(n) for n in ("depth", "a_row", "a_k", "b_k", "c_row"))
ADDS = Var("adds", BOOL)
K = Var("k")


def tile_name(rows: int) -> str:
    """Return the name of the function for a tile of `rows` rows."""
    return f"tile_{rows}"


@dataclass(frozen=True, slots=True)
class _Arrays:
    """The parameters of one function, and the shape of its tile."""

    rows: int
    tile: Tile
    c: Array
    a: Array
    b: Array

    def accumulator(self, row: int, vector_: int) -> Var:
        return Var(f"c_{row}_{vector_}", vector(self.c.element, self.tile.lanes))

    def accumulators(self) -> list[tuple[Var, Expr]]:
        """Return each accumulator with its offset in the result."""
        lanes = self.tile.lanes
        return [
            (self.accumulator(row, v), add(mul(row, C_ROW), v * lanes))
            for row in range(self.rows)
            for v in range(self.tile.vectors)
        ]


@shared_function
def tile_function(rows: int, tile: Tile, element: ScalarType) -> Function:
    """Return the function for the first `rows` rows of `tile`."""
    arrays = _Arrays(
        rows,
        tile,
        Array("C", element, Storage.OUTPUT),
        Array("A", element, Storage.INPUT),
        Array("B", element, Storage.INPUT),
    )
    nothing = Broadcast(zero(element), tile.lanes)
    places = arrays.accumulators()
    body = block(
        *(Prefetch(arrays.c, mul(row, C_ROW)) for row in range(rows)),
        *(Declare(total, nothing) for total, _ in places),
        For(K, const(0), DEPTH, _products(arrays)),
        If(ADDS, _accumulate(arrays)),
        *(VectorStore(arrays.c, at, total) for total, at in places),
    )
    scalars = (DEPTH, A_ROW, A_K, B_K, C_ROW, ADDS)
    return Function(tile_name(rows), (arrays.c, arrays.a, arrays.b), scalars, body, internal=True)


def _products(arrays: _Arrays) -> Block:
    tile, element = arrays.tile, arrays.c.element
    kind = vector(element, tile.lanes)
    right = [Var(f"b_{v}", kind) for v in range(tile.vectors)]
    body: list[Stmt] = [
        Declare(b, VectorLoad(arrays.b, add(mul(K, B_K), v * tile.lanes), tile.lanes), True)
        for v, b in enumerate(right)
    ]
    for row in range(arrays.rows):
        a = Var(f"a_{row}", element)
        body.append(Declare(a, load(arrays.a, add(mul(row, A_ROW), mul(K, A_K))), True))
        for v, b in enumerate(right):
            product = Binary("*", Broadcast(a, tile.lanes), b)
            body.append(Assign(arrays.accumulator(row, v), product, "+"))
    return block(*body)


def _accumulate(arrays: _Arrays) -> Block:
    return block(
        *(
            Assign(total, VectorLoad(arrays.c, at, arrays.tile.lanes), "+")
            for total, at in arrays.accumulators()
        )
    )
