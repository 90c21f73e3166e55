"""Copies in another order of dimensions, transposed in registers.

    C[k, j, i] = A[i, j, k]                 for j:  for blocks of i:  for blocks of k:  a tile

`target_loop` is the loop of stride 1 in the target (i), `source_loop` that of the source (k).
A tile is two cache lines of the target by a vector of the source: its rows are loaded as vectors,
transposed by shuffles (`products.squares`), and stored as whole lines.

The other loops are outside, in the target's order. Tiles begin where a line of the target begins,
in all rows if the distance of rows is a multiple of lines.

A result too large for the caches is written with streaming stores, which saves reading it first;
where either loop fills it, from a stage in the second cache:

    for blocks of k:  for blocks of i:  for k:  squares of the source → stage
                      for k:  four lines of the stage → the target

Memory is fast where neighbouring addresses follow one another: the source is read in rows of a
block, and the target is written four lines at a time. Rows that are a power of 2 apart are in the
same sets of a cache and the same banks of memory: of such a source, hardly more than a line of
each row would stay in the first cache, and of such a target, runs of one line take three times as
long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    ge,
    load,
    lt,
    maximum,
    minimum,
    mod,
    mul,
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
"""Lines side by side in a tile: with four the rows of the source do not stay in the first cache."""
STAGED_LINES = 4
"""Lines side by side in a stage: streaming stores of two at a time take 1.7 times as long."""
STAGE_BYTES = 1 << 18
"""Of the largest stage: rows of 4 KB of the source, beyond which they are read as fast as whole."""
STRIP, STAGED = "strip", "staged_strip"
WIDE, LENGTH = Var("wide"), Var("length")
PITCH, STEP = Var("apart"), Var("step")
"""Elements between iterations of `source_loop` in the target, of `target_loop` in the source."""
STREAMING = Var("streaming", BOOL)
N, M = Var("n"), Var("m")
START, COUNT = Var("start"), Var("count")


@dataclass(frozen=True, slots=True)
class Permutation:
    """The loops of stride 1 in target and source, and the `outer` loops, the first outermost."""

    target_loop: str
    source_loop: str
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TransposeTile:
    """`columns` elements of the target, full lines of `line`, by `lanes` of the source.

    staged_columns, staged_rows    elements of the target by elements of the source in a stage
    """

    columns: int
    line: int
    lanes: int
    staged_columns: int
    staged_rows: int


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
    if lanes == 1:
        return None
    staged = STAGED_LINES * line
    second = machine.caches[1] if len(machine.caches) > 1 else STAGE_BYTES
    rows = min(STAGE_BYTES, second // 2) // (staged * machine.element_bytes) // lanes * lanes
    return TransposeTile(LINES * line, line, lanes, staged, max(rows, lanes))


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
    first, begin = Var(names.fresh("first")), Var(names.fresh("begin"))
    counters = {loop: Var(names.fresh(loop)) for loop in order.outer}

    def start(data: Data) -> Expr:
        steps = (mul(counters[loop], data.strides[loop]) for loop in order.outer)
        return add(mul(begin, data.strides[order.target_loop]), *steps)

    def strips(function: str, columns: int, *more: Expr) -> Block:
        """Return the loops over strips of so many columns, shared by threads where there are."""
        call: Stmt = Invoke(
            function,
            (Place(target.array, start(target)), Place(source.array, start(source))),
            (
                sub(minimum(sizes[order.target_loop], add(first, columns)), begin),
                sizes[order.source_loop],
                target.strides[order.source_loop],
                source.strides[order.target_loop],
                *more,
            ),
        )
        before = mod(sub(columns, Lead(target.array, LINE)), columns)
        body = block(Declare(begin, maximum(first, 0), True), call)
        nest = For(first, sub(0, before), sizes[order.target_loop], body, columns)
        for loop in reversed(order.outer):
            nest = For(counters[loop], const(0), sizes[loop], Block((nest,)))
        shared = For(nest.var, nest.start, nest.stop, nest.body, nest.step, LoopKind.PARALLEL)
        return Block((If(lt(1, THREADS), Block((shared,)), Block((nest,))),))

    streaming = ge(mul(*sizes.values()), last)
    fills = or_(
        ge(sizes[order.target_loop], tile.staged_columns),
        ge(sizes[order.source_loop], tile.staged_rows),
    )
    staged = strips(STAGED, tile.staged_columns)
    direct = strips(STRIP, tile.columns, streaming)
    main_body = Block((If(and_(streaming, fills), staged, direct),))
    main = Function(head.name, head.arrays, head.scalars, main_body, threaded=True)
    element = target.array.element
    return Module((strip_function(tile, element), staged_function(tile, element), main))


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


def staged_function(tile: TransposeTile, element: ScalarType) -> Function:
    """Return `staged_strip(C, A, …)`: the same copy through a stage, lines past the caches."""
    c, a = Array("C", element, Storage.OUTPUT), Array("A", element, Storage.INPUT)
    stage, full = Array("stage", element, Storage.LOCAL), Var("whole")
    squares, lines = Var("squares"), Var("lines")
    columns, rows = tile.staged_columns, tile.staged_rows
    body = block(
        Declare(COUNT, minimum(rows, sub(full, START)), True),
        For(M, const(0), squares, _into_stage(tile, stage, a), tile.lanes),
        For(N, const(0), COUNT, _out_of_stage(tile, c, stage, squares, lines)),
    )
    in_lines = and_(eq(Lead(c, LINE), 0), eq(mod(PITCH, tile.line), 0))
    staged = block(
        Declare(full, mul(div(LENGTH, tile.lanes), tile.lanes), True),
        Declare(squares, mul(div(WIDE, tile.lanes), tile.lanes), True),
        Declare(lines, select(in_lines, mul(div(squares, tile.line), tile.line), 0), True),
        Allocate(stage, mul(minimum(rows, maximum(full, 1)), columns), align=LINE),
        For(START, const(0), full, body, rows),
        _one_by_one(c, a, (const(0), full), squares),
        _one_by_one(c, a, (full, LENGTH), const(0)),
    )
    return Function(STAGED, (c, a), (WIDE, LENGTH, PITCH, STEP), staged, internal=True)


def _into_stage(tile: TransposeTile, stage: Array, a: Array) -> Block:
    """Return the loop that transposes squares of `lanes` rows of the source into the stage."""
    lanes = tile.lanes
    rows = [Var(f"q{n}", vector(a.element, lanes)) for n in range(lanes)]
    body: list[Stmt] = [
        Declare(row, VectorLoad(a, add(mul(add(M, n), STEP), add(START, N)), lanes), True)
        for n, row in enumerate(rows)
    ]
    for n, column in enumerate(transposed(rows, body)):
        body.append(VectorStore(stage, add(mul(add(N, n), tile.staged_columns), M), column))
    return Block((For(N, const(0), COUNT, block(*body), lanes),))


def _out_of_stage(tile: TransposeTile, c: Array, stage: Array, squares: Expr, lines: Expr) -> Block:
    """Return the loops that write a row of the stage: `lines` past the caches, then vectors."""

    def stores(width: int, streaming: bool) -> Block:
        place, row = mul(add(START, N), PITCH), mul(N, tile.staged_columns)
        vectors = (
            VectorStore(
                c,
                add(place, add(M, n)),
                VectorLoad(stage, add(row, add(M, n)), tile.lanes),
                streaming=streaming,
            )
            for n in range(0, width, tile.lanes)
        )
        return block(*vectors)

    return block(
        For(M, const(0), lines, stores(tile.line, True), tile.line),
        For(M, lines, squares, stores(tile.lanes, False), tile.lanes),
    )


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
