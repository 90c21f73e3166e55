"""The code of a staged sum: a stage that is filled, transposed, and written.

threads share blocks of i, or the outermost loop
  for pieces of a row:
    for i and the sums in it:      W[i,k] += …       several terms at a time
    strip(C, W, …)                                   `polyhedral.products.permutation`
    C[k,i] *= …                                      the factors that come late
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
    Fill,
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
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL
from polyhedral.products.contraction_code import Data
from polyhedral.products.permutation import LINE, STRIP, TransposeTile, strip_function
from polyhedral.products.register_tile import Machine
from polyhedral.products.staging import Staged

TILES = 2
"""Tiles side by side in a block: longer parts of a row of the result are then written, while the
stage is still in a near cache."""
TERMS = 4
"""Terms that are added to an element of the stage at a time."""
SHORT, LONG = 128, 512
"""Elements in a row of the stage: few where all rows are traversed for each term of the sums, or
once; more where a row is summed before the next one."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The variables and arrays that all parts of the code share.

    counters      of all loops; counters of the target loop and of a row start at 0
    begin, wide   start and length of the block of the target loop
    first, size   start and length of the piece of each loop of a row, `piece` after piece of `most`
    rows, sides, run  how the stage is traversed: iterations of rows, of `middle_loop`, and elements
    pitch         elements from one row of the stage to the next
    part          the first column of a tile in the block
    """

    order: Staged
    tile: TransposeTile
    target: Data
    factors: Sequence[Data]
    sizes: Mapping[str, Expr]
    counters: Mapping[str, Var]
    stage: Array
    begin: Var
    wide: Var
    first: Mapping[str, Var]
    size: Mapping[str, Var]
    piece: Mapping[str, Var]
    most: Mapping[str, Var]
    part: Var
    pitch: Var
    rows: Var
    sides: Var
    run: Var
    merged: Var
    even: Var

    @property
    def row(self) -> Var:
        """Return the counter of the target loop in a block."""
        return self.counters[self.order.target_loop]

    @property
    def columns(self) -> int:
        """Return the elements of the target loop in a block."""
        return TILES * self.tile.columns

    @property
    def room(self) -> int:
        """Return the elements of a row of the stage, for blocks that fill the tile."""
        order = self.order
        return LONG if order.reduced and order.nest[0] == order.target_loop else SHORT

    @property
    def early(self) -> Iterable[Data]:
        """Return the factors that are multiplied before the sum."""
        return (data for place, data in enumerate(self.factors) if place not in self.order.late)

    def at(self, loop_: str = "", by: int = 0) -> dict[str, Expr]:
        """Return the coordinates of all loops, `loop` advanced by `by` iterations."""
        coordinates: dict[str, Expr] = dict(self.counters)
        coordinates[self.order.target_loop] = add(self.begin, self.row)
        for loop, first in self.first.items():
            coordinates[loop] = add(first, self.counters[loop])
        if loop_:
            coordinates[loop_] = add(coordinates[loop_], by)
        return coordinates

    def product(self, factors: Iterable[Data], at: Mapping[str, Expr]) -> Expr:
        return mul(*(load(data.array, place(data, at)) for data in factors))


def place(data: Data, at: Mapping[str, Expr]) -> Expr:
    """Return the offset of the element of an array at these coordinates."""
    return add(*(mul(at[loop], step) for loop, step in data.strides.items()))


def to_functions(
    order: Staged,
    tile: TransposeTile,
    machine: Machine,
    target: Data,
    factors: Sequence[Data],
    sizes: Mapping[str, Expr],
    head: Function,
    names: Names,
) -> Module:
    """Return a module whose last function is `head` with the body of the sum.

    head   a threaded function without a body
    names  a supply that has handed out the names of `head`'s parameters
    """
    kernel = _kernel(order, tile, target, factors, sizes, names)
    start, streaming = Var(names.fresh("start")), Var(names.fresh("streaming"), BOOL)
    columns, length = kernel.columns, sizes[order.target_loop]
    last = machine.caches[-1] // machine.element_bytes if machine.caches else 1 << 22
    result = [sizes[loop] for loop in (*order.outer, *order.row, order.target_loop)]
    large = const(False) if order.late else ge(mul(*result), last)
    before = mod(sub(columns, Lead(target.array, LINE)), columns)
    body = block(
        Declare(kernel.begin, maximum(start, 0), True),
        Declare(kernel.wide, sub(minimum(length, add(start, columns)), kernel.begin), True),
        _pieces(kernel, streaming),
    )
    nest = For(start, sub(0, before), length, body, columns)
    for loop in reversed(order.outer):
        nest = For(kernel.counters[loop], const(0), sizes[loop], Block((nest,)))
    stage = Allocate(kernel.stage, const(columns * (kernel.room + tile.line)), align=LINE)
    body = block(stage, nest.body)
    nest = For(nest.var, nest.start, nest.stop, body, nest.step)
    shared = For(nest.var, nest.start, nest.stop, body, nest.step, LoopKind.PARALLEL)
    shared_or_serial = If(lt(1, THREADS), Block((shared,)), Block((nest,)))
    main = block(Declare(streaming, large, True), shared_or_serial)
    function = Function(head.name, head.arrays, head.scalars, main, threaded=True)
    return Module((strip_function(tile, target.array.element), function))


def _kernel(
    order: Staged,
    tile: TransposeTile,
    target: Data,
    factors: Sequence[Data],
    sizes: Mapping[str, Expr],
    names: Names,
) -> _Kernel:
    loops = (*order.outer, *order.nest, *order.row)
    return _Kernel(
        order,
        tile,
        target,
        factors,
        sizes,
        {loop: Var(names.fresh(loop)) for loop in loops},
        Array(names.fresh("stage"), target.array.element, Storage.LOCAL),
        Var(names.fresh("begin")),
        Var(names.fresh("wide")),
        {loop: Var(names.fresh(f"first_{loop}")) for loop in order.row},
        {loop: Var(names.fresh(f"size_{loop}")) for loop in order.row},
        {loop: Var(names.fresh(f"piece_{loop}")) for loop in order.row},
        {loop: Var(names.fresh(f"most_{loop}")) for loop in order.row},
        *(Var(names.fresh(name)) for name in ("part", "pitch", "rows", "sides", "run")),
        *(Var(names.fresh(name), BOOL) for name in ("joined", "even")),
    )


def _pieces(kernel: _Kernel, streaming: Expr) -> Stmt:
    """Return loops over pieces of a row: fill the stage, transpose it, multiply late factors."""
    order, sizes = kernel.order, kernel.sizes
    source_loop = order.source_loop
    columns, most = kernel.columns, kernel.most
    room = div(columns * kernel.room, maximum(1, minimum(columns, sizes[order.target_loop])))
    body = block(
        _shape(kernel),
        _filled(kernel),
        _transposed(kernel, streaming),
        _multiplied(kernel) if order.late else None,
    )
    declares = [Declare(most[source_loop], maximum(1, minimum(room, sizes[source_loop])), True)]
    if order.middle_loop:
        several = minimum(div(room, most[source_loop]), sizes[order.middle_loop])
        declares.append(Declare(most[order.middle_loop], maximum(1, several), True))
        body = Block((_piece(kernel, order.middle_loop, body),))
    return block(*declares, _piece(kernel, source_loop, body))


def _piece(kernel: _Kernel, loop: str, body: Block) -> For:
    """Return `body` for each piece of a loop."""
    piece, first, size = kernel.piece[loop], kernel.first[loop], kernel.size[loop]
    most = kernel.most[loop]
    count = div(sub(add(kernel.sizes[loop], most), 1), most)
    pieces = block(
        Declare(first, mul(piece, most), True),
        Declare(size, minimum(most, sub(kernel.sizes[loop], first)), True),
        body,
    )
    return For(piece, const(0), count, pieces)


def _shape(kernel: _Kernel) -> Block:
    """Return declarations of how the stage is traversed."""
    order, wide = kernel.order, kernel.wide
    length_ = kernel.size[order.source_loop]
    sides: Expr = kernel.size[order.middle_loop] if order.middle_loop else const(1)
    length = mul(sides, length_)
    merged: Expr = const(order.merges)
    even: Expr = const(order.even)
    if order.middle_loop and order.merges:
        merged = _all_go_on(kernel, order.middle_loop, length_)
    if order.even:
        even = and_(kernel.merged, _all_go_on(kernel, order.target_loop, length))
    run = select(kernel.merged, length, length_)
    return block(
        Declare(kernel.merged, merged, True),
        Declare(kernel.even, even, True),
        Declare(kernel.pitch, add(length, select(kernel.even, 0, kernel.tile.line)), True),
        Declare(kernel.rows, select(kernel.even, 1, wide), True),
        Declare(kernel.sides, select(kernel.merged, 1, sides), True),
        Declare(kernel.run, select(kernel.even, mul(wide, length), run), True),
    )


def _all_go_on(kernel: _Kernel, loop: str, length: Expr) -> Expr:
    """Return whether the coordinates of a loop are `length` elements apart in all its factors."""
    strides = (data.strides[loop] for data in kernel.early if loop in data.strides)
    return and_(*(eq(stride, length) for stride in strides))


def _filled(kernel: _Kernel) -> Block:
    """Return the code that fills the stage with sums of the early factors."""
    order = kernel.order
    if not order.reduced:
        value = kernel.product(kernel.early, kernel.at())
        return Block((_over_rows(kernel, _row(kernel, value, None)),))
    element = kernel.stage.element
    full = mul(sub(kernel.pitch, select(kernel.even, 0, kernel.tile.line)), kernel.wide)
    count = select(kernel.even, full, mul(kernel.sides, kernel.run))
    zeros = Fill(kernel.stage, mul(kernel.row, kernel.pitch), count, const(0.0, element))
    return block(_over_rows(kernel, zeros), _sums(kernel, order.nest))


def _over_rows(kernel: _Kernel, body: Stmt) -> For:
    return For(kernel.row, const(0), kernel.rows, Block((body,)))


def _row(kernel: _Kernel, value: Expr, op: str | None) -> Stmt:
    """Return the innermost loops, over a row of the stage."""
    order = kernel.order
    column = kernel.counters[order.source_loop]
    start = mul(kernel.row, kernel.pitch)
    if order.middle_loop:
        start = add(start, mul(kernel.counters[order.middle_loop], kernel.size[order.source_loop]))
    store = Store(kernel.stage, add(start, column), value, op)
    loop = For(column, const(0), kernel.run, Block((store,)))
    if not order.middle_loop:
        return loop
    return For(kernel.counters[order.middle_loop], const(0), kernel.sides, Block((loop,)))


def _sums(kernel: _Kernel, loops: tuple[str, ...]) -> Stmt:
    """Return the loops around the rows.

    With TERMS iterations of the last reduced one at a time.
    """
    order = kernel.order
    if not loops:
        return _row(kernel, kernel.product(kernel.early, kernel.at()), "+")
    loop, *inside = loops
    if loop == order.target_loop:
        return _over_rows(kernel, _sums(kernel, tuple(inside)))
    var, size = kernel.counters[loop], kernel.sizes[loop]
    if loop != order.reduced[-1]:
        return For(var, const(0), size, Block((_sums(kernel, tuple(inside)),)))

    def terms(count: int) -> Stmt:
        values = [kernel.product(kernel.early, kernel.at(loop, by)) for by in range(count)]
        row = _row(kernel, add(*values), "+")
        return _over_rows(kernel, row) if inside else row

    full = mul(div(size, TERMS), TERMS)
    return block(
        For(var, const(0), full, Block((terms(TERMS),)), TERMS),
        For(var, full, size, Block((terms(1),))),
    )


def _transposed(kernel: _Kernel, streaming: Expr) -> Stmt:
    """Return the copy of the stage into the result, tile after tile of a block."""
    order, target, part = kernel.order, kernel.target, kernel.part
    at = kernel.at()
    at[order.target_loop] = add(kernel.begin, part)
    at[order.source_loop] = kernel.first[order.source_loop]
    start: Expr = mul(part, kernel.pitch)
    if order.middle_loop:
        start = add(start, mul(kernel.counters[order.middle_loop], kernel.size[order.source_loop]))
    strip = Invoke(
        STRIP,
        (Place(target.array, place(target, at)), Place(kernel.stage, start)),
        (
            minimum(kernel.tile.columns, sub(kernel.wide, part)),
            kernel.size[order.source_loop],
            target.strides[order.source_loop],
            kernel.pitch,
            streaming,
        ),
    )
    tiles = For(part, const(0), kernel.wide, Block((strip,)), kernel.tile.columns)
    return _over_middle(kernel, tiles)


def _multiplied(kernel: _Kernel) -> Stmt:
    """Return the multiplication of the block of the result by the late factors."""
    order, target, at = kernel.order, kernel.target, kernel.at()
    late = [kernel.factors[number] for number in sorted(order.late)]
    store = Store(target.array, place(target, at), kernel.product(late, at), "*")
    inner = For(kernel.row, const(0), kernel.wide, Block((store,)))
    loop = order.source_loop
    rows = For(kernel.counters[loop], const(0), kernel.size[loop], block(inner))
    return _over_middle(kernel, rows)


def _over_middle(kernel: _Kernel, body: Stmt) -> Stmt:
    middle = kernel.order.middle_loop
    if not middle:
        return body
    return For(kernel.counters[middle], const(0), kernel.size[middle], Block((body,)))
