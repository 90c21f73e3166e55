"""A copy in another order of dimensions, transposed in registers.

    C[k, j, i] = A[i, j, k]                 for j:  for blocks of i:  for blocks of k:  a tile

`along` is the loop that runs through neighbours of the target (i), `across` the one that does in
the source (k). A tile is two cache lines of the target by a vector of the source: its rows are
loaded as vectors, transposed by shuffles (`products.squares`), and stored as whole lines.

The other loops stand outside, as the target is stored. A result too large for the caches is written
past them, which saves reading it first. Tiles begin where a line of the target begins, in all rows
if these are whole lines apart.
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
"""Lines side by side in a tile: written past the caches one at a time, they take 1.4 times as long
as two by two; with four the rows of the source do not stay in the first cache."""
STRIP = "strip"
WIDE, LENGTH = Var("wide"), Var("length")
APART, STEP = Var("apart"), Var("step")
"""Elements from one iteration to the next, of `across` in the target, of `along` in the source."""
STREAMING = Var("streaming", BOOL)
N, M = Var("n"), Var("m")


@dataclass(frozen=True, slots=True)
class Permutation:
    """`along` and `across` as above, and the `outer` loops, the first outermost."""

    along: str
    across: str
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TransposeTile:
    """`columns` elements of the target, which are whole lines of `line`, by `lanes` of the
    source."""

    columns: int
    line: int
    lanes: int


def permutation(target: tuple[str, ...], source: tuple[str, ...]) -> Permutation | None:
    """Return the copy of an array stored with the loops `source` to one with `target`, the last
    ones through neighbours; None where these are the same, so that rows are copied."""
    if len(target) < 2 or set(target) != set(source) or target[-1] == source[-1]:
        return None
    along, across = target[-1], source[-1]
    return Permutation(along, across, tuple(x for x in target if x not in (along, across)))


def transpose_tile(machine: Machine) -> TransposeTile | None:
    """Return the tile for a machine, None where it has no vectors of such elements."""
    lanes = machine.lanes
    line = max(lanes, LINE // machine.element_bytes)
    return TransposeTile(LINES * line, line, lanes) if lanes > 1 else None


def to_functions(
    found: Permutation,
    tile: TransposeTile,
    machine: Machine,
    target: Data,
    source: Data,
    sizes: Mapping[str, Expr],
    head: Function,
    names: Names,
) -> Module:
    """Return the module whose last function is `head`, a threaded function without a body, with
    one.

    names  a supply that has handed out those of `head`'s parameters
    """
    last = machine.caches[-1] // machine.element_bytes if machine.caches else 1 << 22
    streaming = ge(mul(*sizes.values()), last)
    first, begin = Var(names.fresh("first")), Var(names.fresh("begin"))
    before = mod(sub(tile.columns, Lead(target.array, LINE)), tile.columns)
    counters = {loop: Var(names.fresh(loop)) for loop in found.outer}

    def start(data: Data) -> Expr:
        steps = (mul(counters[loop], data.strides[loop]) for loop in found.outer)
        return add(mul(begin, data.strides[found.along]), *steps)

    call: Stmt = Invoke(
        STRIP,
        (Place(target.array, start(target)), Place(source.array, start(source))),
        (
            sub(minimum(sizes[found.along], add(first, tile.columns)), begin),
            sizes[found.across],
            target.strides[found.across],
            source.strides[found.along],
            streaming,
        ),
    )
    body = block(Declare(begin, maximum(first, 0), True), call)
    nest = For(first, sub(0, before), sizes[found.along], body, tile.columns)
    for loop in reversed(found.outer):
        nest = For(counters[loop], const(0), sizes[loop], Block((nest,)))
    shared = For(nest.var, nest.start, nest.stop, nest.body, nest.step, LoopKind.PARALLEL)
    both = If(lt(1, THREADS), Block((shared,)), Block((nest,)))
    main = Function(head.name, head.arrays, head.scalars, Block((both,)), threaded=True)
    return Module((strip_function(tile, target.array.element), main))


def strip_function(tile: TransposeTile, element: ScalarType) -> Function:
    """Return `strip(C, A, …)`: `wide` elements of `along` by all `length` of `across`, in tiles
    where `wide` fills them, in squares where it does not, and one by one at the edges."""
    c, a = Array("C", element, Storage.OUTPUT), Array("A", element, Storage.INPUT)
    whole, squares = Var("whole"), Var("squares")
    tiles = If(STREAMING, _tiles(tile, c, a, whole, True), _tiles(tile, c, a, whole, False))
    body = block(
        Declare(whole, mul(div(LENGTH, tile.lanes), tile.lanes), True),
        Declare(squares, mul(div(WIDE, tile.lanes), tile.lanes), True),
        If(
            eq(WIDE, tile.columns),
            Block((tiles,)),
            block(
                _squares(tile, c, a, whole, squares),
                _one_by_one(c, a, (const(0), whole), squares),
            ),
        ),
        _one_by_one(c, a, (whole, LENGTH), const(0)),
    )
    scalars = (WIDE, LENGTH, APART, STEP, STREAMING)
    return Function(STRIP, (c, a), scalars, body, internal=True)


def _one_by_one(c: Array, a: Array, rows: tuple[Expr, Expr], first: Expr) -> For:
    copied = Store(c, add(mul(N, APART), M), load(a, add(mul(M, STEP), N)))
    return For(N, *rows, Block((For(M, first, WIDE, Block((copied,))),)))


def _squares(tile: TransposeTile, c: Array, a: Array, whole: Expr, columns: Expr) -> For:
    """Return one square after another, where there are too few columns for a tile."""
    lanes = tile.lanes
    rows = [Var(f"q{n}", vector(a.element, lanes)) for n in range(lanes)]
    body: list[Stmt] = [
        Declare(row, VectorLoad(a, add(mul(add(M, n), STEP), N), lanes), True)
        for n, row in enumerate(rows)
    ]
    for n, column in enumerate(transposed(rows, body)):
        body.append(VectorStore(c, add(mul(add(N, n), APART), M), column))
    return For(M, const(0), columns, block(For(N, const(0), whole, block(*body), lanes)), lanes)


def _tiles(tile: TransposeTile, c: Array, a: Array, whole: Expr, streaming: bool) -> Block:
    lines = (
        stmt
        for first in range(0, tile.columns, tile.line)
        for stmt in _line(tile, c, a, first, streaming)
    )
    return Block((For(N, const(0), whole, block(*lines), tile.lanes),))


def _line(tile: TransposeTile, c: Array, a: Array, first: int, streaming: bool) -> Iterator[Stmt]:
    """Yield a line of each of the target's rows in the tile, from column `first` on: square after
    square is transposed, then all are stored."""
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
            place = add(mul(add(N, row), APART), first + number * lanes)
            yield VectorStore(c, place, columns[row], streaming=streaming)
