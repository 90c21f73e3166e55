"""Copies in another order of dimensions, transposed in registers.

    C[k, j, i] = A[i, j, k]                 for j:  for blocks of i:  for blocks of k:  a tile

`target_loop` is the loop of stride 1 in the target (i), `source_loop` that of the source (k).
A tile is two cache lines of the target by a vector of the source: its rows are loaded as vectors,
transposed by shuffles (`products.squares`), and stored as whole lines.

The other loops are outside, in the target's order. A result too large for the caches is written
with streaming stores, which saves reading it first. Tiles begin where a line of the target begins,
in all rows if the distance of rows is a multiple of lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.build import add, block, const, div, eq, ge, load, lt, maximum, minimum, mod, mul, sub
from codegen.emit.abi import THREADS
from codegen.ir import (
    Array,
    Block,
    Declare,
    Expr,
    For,
    Function,
    If,
    Invoke,
    Lead,
    LoopKind,
    Module,
    Place,
    Stmt,
    Storage,
    Store,
    Var,
    VectorLoad,
    VectorStore,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL, ScalarType, vector
from polyhedral.products.contraction_code import Data
from polyhedral.products.register_tile import Machine
from polyhedral.products.squares import transposed

LINE = 64
"""Bytes of a cache line."""
LINES = 2
"""Lines side by side in a tile: streaming stores of one line at a time take 1.4 times as long as of
two; with four the rows of the source do not stay in the first cache."""
STRIP = "strip"
WIDE, LENGTH = Var("wide"), Var("length")
PITCH, STEP = Var("apart"), Var("step")
"""Elements between iterations of `source_loop` in the target, of `target_loop` in the source."""
STREAMING = Var("streaming", BOOL)
N, M = Var("n"), Var("m")


@dataclass(frozen=True, slots=True)
class Permutation:
    """The loops of stride 1 in target and source, and the `outer` loops, the first outermost."""

    target_loop: str
    source_loop: str
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TransposeTile:
    """`columns` elements of the target, full lines of `line`, by `lanes` of the source."""

    columns: int
    line: int
    lanes: int


def permutation(target: tuple[str, ...], source: tuple[str, ...]) -> Permutation | None:
    """Return the copy of an array with the loops `source` to one with the loops `target`.

    None where the last loops, of stride 1, are the same, so that rows are copied.
    """
    if len(target) < 2 or set(target) != set(source) or target[-1] == source[-1]:
        return None
    target_last, source_last = target[-1], source[-1]
    return Permutation(
        target_last, source_last, tuple(x for x in target if x not in (target_last, source_last))
    )


def transpose_tile(machine: Machine) -> TransposeTile | None:
    """Return the tile for a machine; None where it has no vectors of such elements."""
    lanes = machine.lanes
    line = max(lanes, LINE // machine.element_bytes)
    return TransposeTile(LINES * line, line, lanes) if lanes > 1 else None


def to_functions(
    order: Permutation,
    tile: TransposeTile,
    machine: Machine,
    target: Data,
    source: Data,
    sizes: Mapping[str, Expr],
    head: Function,
    names: Names,
) -> Module:
    """Return a module whose last function is `head` with the body of the copy.

    head   a threaded function without a body
    names  a supply that has handed out the names of `head`'s parameters
    """
    last = machine.caches[-1] // machine.element_bytes if machine.caches else 1 << 22
    streaming = ge(mul(*sizes.values()), last)
    first, begin = Var(names.fresh("first")), Var(names.fresh("begin"))
    before = mod(sub(tile.columns, Lead(target.array, LINE)), tile.columns)
    counters = {loop: Var(names.fresh(loop)) for loop in order.outer}

    def start(data: Data) -> Expr:
        steps = (mul(counters[loop], data.strides[loop]) for loop in order.outer)
        return add(mul(begin, data.strides[order.target_loop]), *steps)

    call: Stmt = Invoke(
        STRIP,
        (Place(target.array, start(target)), Place(source.array, start(source))),
        (
            sub(minimum(sizes[order.target_loop], add(first, tile.columns)), begin),
            sizes[order.source_loop],
            target.strides[order.source_loop],
            source.strides[order.target_loop],
            streaming,
        ),
    )
    body = block(Declare(begin, maximum(first, 0), True), call)
    nest = For(first, sub(0, before), sizes[order.target_loop], body, tile.columns)
    for loop in reversed(order.outer):
        nest = For(counters[loop], const(0), sizes[loop], Block((nest,)))
    shared = For(nest.var, nest.start, nest.stop, nest.body, nest.step, LoopKind.PARALLEL)
    shared_or_serial = If(lt(1, THREADS), Block((shared,)), Block((nest,)))
    main = Function(head.name, head.arrays, head.scalars, Block((shared_or_serial,)), threaded=True)
    return Module((strip_function(tile, target.array.element), main))


def strip_function(tile: TransposeTile, element: ScalarType) -> Function:
    """Return `strip(C, A, …)`: a copy of `wide` elements of the target loop by `length` of the
    other.

    In tiles where `wide` fills them, otherwise in squares, and one by one at the edges.
    """
    c, a = Array("C", element, Storage.OUTPUT), Array("A", element, Storage.INPUT)
    full, squares = Var("whole"), Var("squares")
    tiles = If(STREAMING, _tiles(tile, c, a, full, True), _tiles(tile, c, a, full, False))
    body = block(
        Declare(full, mul(div(LENGTH, tile.lanes), tile.lanes), True),
        Declare(squares, mul(div(WIDE, tile.lanes), tile.lanes), True),
        If(
            eq(WIDE, tile.columns),
            Block((tiles,)),
            block(
                _squares(tile, c, a, full, squares),
                _one_by_one(c, a, (const(0), full), squares),
            ),
        ),
        _one_by_one(c, a, (full, LENGTH), const(0)),
    )
    scalars = (WIDE, LENGTH, PITCH, STEP, STREAMING)
    return Function(STRIP, (c, a), scalars, body, internal=True)


def _one_by_one(c: Array, a: Array, rows: tuple[Expr, Expr], first: Expr) -> For:
    copied = Store(c, add(mul(N, PITCH), M), load(a, add(mul(M, STEP), N)))
    return For(N, *rows, Block((For(M, first, WIDE, Block((copied,))),)))


def _squares(tile: TransposeTile, c: Array, a: Array, length: Expr, columns: Expr) -> For:
    """Return the copy square by square, where there are too few columns for a tile."""
    lanes = tile.lanes
    rows = [Var(f"q{n}", vector(a.element, lanes)) for n in range(lanes)]
    body: list[Stmt] = [
        Declare(row, VectorLoad(a, add(mul(add(M, n), STEP), N), lanes), True)
        for n, row in enumerate(rows)
    ]
    for n, column in enumerate(transposed(rows, body)):
        body.append(VectorStore(c, add(mul(add(N, n), PITCH), M), column))
    return For(M, const(0), columns, block(For(N, const(0), length, block(*body), lanes)), lanes)


def _tiles(tile: TransposeTile, c: Array, a: Array, length: Expr, streaming: bool) -> Block:
    lines = (
        stmt
        for first in range(0, tile.columns, tile.line)
        for stmt in _line(tile, c, a, first, streaming)
    )
    return Block((For(N, const(0), length, block(*lines), tile.lanes),))


def _line(tile: TransposeTile, c: Array, a: Array, first: int, streaming: bool) -> Iterator[Stmt]:
    """Yield a line of each row of the target in the tile, from column `first` on.

    All squares are transposed, then all are stored.
    """
    lanes = tile.lanes
    squares: list[list[Var]] = []
    for start in range(first, first + tile.line, lanes):
        rows = [Var(f"r{start + n}", vector(a.element, lanes)) for n in range(lanes)]
        for number, var in enumerate(rows):
            yield Declare(var, VectorLoad(a, add(mul(start + number, STEP), N), lanes), True)
        square: list[Stmt] = []
        squares.append(transposed(rows, square))
        yield from square
    for row in range(lanes):
        for number, columns in enumerate(squares):
            place = add(mul(add(N, row), PITCH), first + number * lanes)
            yield VectorStore(c, place, columns[row], streaming=streaming)
