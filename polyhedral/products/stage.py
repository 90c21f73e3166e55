"""The code of what `products.staging` finds: a stage that is filled, transposed, and written.

threads share blocks of along, or the outermost loop
  for pieces of a row:
    for along and the sums in it:  W[i,k] += …       several terms at a time
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
"""Tiles side by side in a block: a row of the result is then written some way along, and what they
are transposed from is near."""
TERMS = 4
"""Terms that are added to an element of the stage at a time."""
SHORT, LONG = 128, 512
"""Elements in a row of the stage: few where it is run through for each term of the sums, or once;
more where a row is summed before the next one."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What the parts of the code are made of.

    counters      of all loops; those of along and of a row count from where the stage begins
    begin, wide   where the block of `along` begins, and how long it is
    first, size   of each loop of a row likewise, `piece` after piece of at `most` so many
    rows, sides, run  how the stage is run through: for so many rows, for so many coordinates of
                  `beside`, so many elements
    pitch         elements from one row of it to the next
    part          the first column of a tile in the block
    """

    found: Staged
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
    joined: Var
    even: Var

    @property
    def row(self) -> Var:
        """Return the counter of `along` within a block of it."""
        return self.counters[self.found.along]

    @property
    def columns(self) -> int:
        """Return elements of `along` in a block."""
        return TILES * self.tile.columns

    @property
    def room(self) -> int:
        """Return elements of a row of the stage, for blocks that fill the tile."""
        found = self.found
        return LONG if found.reduced and found.around[0] == found.along else SHORT

    @property
    def early(self) -> Iterable[Data]:
        """Return the factors that are not multiplied in afterwards."""
        return (data for place, data in enumerate(self.factors) if place not in self.found.late)

    def at(self, moved: str = "", by: int = 0) -> dict[str, Expr]:
        """Where the loops stand, one of them `by` iterations further on."""
        found: dict[str, Expr] = dict(self.counters)
        found[self.found.along] = add(self.begin, self.row)
        for loop, first in self.first.items():
            found[loop] = add(first, self.counters[loop])
        if moved:
            found[moved] = add(found[moved], by)
        return found

    def product(self, factors: Iterable[Data], at: Mapping[str, Expr]) -> Expr:
        return mul(*(load(data.array, place(data, at)) for data in factors))


def place(data: Data, at: Mapping[str, Expr]) -> Expr:
    """Return the element of an array where the loops stand."""
    return add(*(mul(at[loop], step) for loop, step in data.strides.items()))


def to_functions(
    found: Staged,
    tile: TransposeTile,
    machine: Machine,
    target: Data,
    factors: Sequence[Data],
    sizes: Mapping[str, Expr],
    head: Function,
    names: Names,
) -> Module:
    """Return the module whose last function is `head`, a threaded function without a body, with
    one.

    names  a supply that has handed out those of `head`'s parameters
    """
    kernel = _kernel(found, tile, target, factors, sizes, names)
    start, streaming = Var(names.fresh("start")), Var(names.fresh("streaming"), BOOL)
    columns, length = kernel.columns, sizes[found.along]
    last = machine.caches[-1] // machine.element_bytes if machine.caches else 1 << 22
    result = [sizes[loop] for loop in (*found.outer, *found.row, found.along)]
    large = const(False) if found.late else ge(mul(*result), last)
    before = mod(sub(columns, Lead(target.array, LINE)), columns)
    body = block(
        Declare(kernel.begin, maximum(start, 0), True),
        Declare(kernel.wide, sub(minimum(length, add(start, columns)), kernel.begin), True),
        _pieces(kernel, streaming),
    )
    nest = For(start, sub(0, before), length, body, columns)
    for loop in reversed(found.outer):
        nest = For(kernel.counters[loop], const(0), sizes[loop], Block((nest,)))
    stage = Allocate(kernel.stage, const(columns * (kernel.room + tile.line)), align=LINE)
    body = block(stage, nest.body)
    nest = For(nest.var, nest.start, nest.stop, body, nest.step)
    shared = For(nest.var, nest.start, nest.stop, body, nest.step, LoopKind.PARALLEL)
    both = If(lt(1, THREADS), Block((shared,)), Block((nest,)))
    main = block(Declare(streaming, large, True), both)
    whole = Function(head.name, head.arrays, head.scalars, main, threaded=True)
    return Module((strip_function(tile, target.array.element), whole))


def _kernel(
    found: Staged,
    tile: TransposeTile,
    target: Data,
    factors: Sequence[Data],
    sizes: Mapping[str, Expr],
    names: Names,
) -> _Kernel:
    loops = (*found.outer, *found.around, *found.row)
    return _Kernel(
        found,
        tile,
        target,
        factors,
        sizes,
        {loop: Var(names.fresh(loop)) for loop in loops},
        Array(names.fresh("stage"), target.array.element, Storage.LOCAL),
        Var(names.fresh("begin")),
        Var(names.fresh("wide")),
        {loop: Var(names.fresh(f"first_{loop}")) for loop in found.row},
        {loop: Var(names.fresh(f"size_{loop}")) for loop in found.row},
        {loop: Var(names.fresh(f"piece_{loop}")) for loop in found.row},
        {loop: Var(names.fresh(f"most_{loop}")) for loop in found.row},
        *(Var(names.fresh(name)) for name in ("part", "pitch", "rows", "sides", "run")),
        *(Var(names.fresh(name), BOOL) for name in ("joined", "even")),
    )


def _pieces(kernel: _Kernel, streaming: Expr) -> Stmt:
    """For pieces of a row: fill the stage, transpose it, multiply in what is left."""
    found, sizes = kernel.found, kernel.sizes
    across = found.across
    columns, most = kernel.columns, kernel.most
    room = div(columns * kernel.room, maximum(1, minimum(columns, sizes[found.along])))
    body = block(
        _shape(kernel),
        _filled(kernel),
        _transposed(kernel, streaming),
        _multiplied(kernel) if found.late else None,
    )
    declares = [Declare(most[across], maximum(1, minimum(room, sizes[across])), True)]
    if found.beside:
        several = minimum(div(room, most[across]), sizes[found.beside])
        declares.append(Declare(most[found.beside], maximum(1, several), True))
        body = Block((_piece(kernel, found.beside, body),))
    return block(*declares, _piece(kernel, across, body))


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
    """Return how the stage is run through."""
    found, wide = kernel.found, kernel.wide
    across = kernel.size[found.across]
    sides: Expr = kernel.size[found.beside] if found.beside else const(1)
    length = mul(sides, across)
    joined: Expr = const(found.joined)
    even: Expr = const(found.even)
    if found.beside and found.joined:
        joined = _all_go_on(kernel, found.beside, across)
    if found.even:
        even = and_(kernel.joined, _all_go_on(kernel, found.along, length))
    run = select(kernel.joined, length, across)
    return block(
        Declare(kernel.joined, joined, True),
        Declare(kernel.even, even, True),
        Declare(kernel.pitch, add(length, select(kernel.even, 0, kernel.tile.line)), True),
        Declare(kernel.rows, select(kernel.even, 1, wide), True),
        Declare(kernel.sides, select(kernel.joined, 1, sides), True),
        Declare(kernel.run, select(kernel.even, mul(wide, length), run), True),
    )


def _all_go_on(kernel: _Kernel, loop: str, length: Expr) -> Expr:
    """Tell whether the factors that a loop indexes have its coordinates `length` elements apart."""
    own = (data.strides[loop] for data in kernel.early if loop in data.strides)
    return and_(*(eq(stride, length) for stride in own))


def _filled(kernel: _Kernel) -> Block:
    """Return the stage with the sums of the factors that come first."""
    found = kernel.found
    if not found.reduced:
        value = kernel.product(kernel.early, kernel.at())
        return Block((_along(kernel, _row(kernel, value, None)),))
    element = kernel.stage.element
    whole = mul(sub(kernel.pitch, select(kernel.even, 0, kernel.tile.line)), kernel.wide)
    count = select(kernel.even, whole, mul(kernel.sides, kernel.run))
    zeros = Fill(kernel.stage, mul(kernel.row, kernel.pitch), count, const(0.0, element))
    return block(_along(kernel, zeros), _sums(kernel, found.around))


def _along(kernel: _Kernel, body: Stmt) -> For:
    return For(kernel.row, const(0), kernel.rows, Block((body,)))


def _row(kernel: _Kernel, value: Expr, op: str | None) -> Stmt:
    """Return the innermost loops, over a row of the stage."""
    found = kernel.found
    column = kernel.counters[found.across]
    start = mul(kernel.row, kernel.pitch)
    if found.beside:
        start = add(start, mul(kernel.counters[found.beside], kernel.size[found.across]))
    store = Store(kernel.stage, add(start, column), value, op)
    loop = For(column, const(0), kernel.run, Block((store,)))
    if not found.beside:
        return loop
    return For(kernel.counters[found.beside], const(0), kernel.sides, Block((loop,)))


def _sums(kernel: _Kernel, loops: tuple[str, ...]) -> Stmt:
    """Return the loops around the rows; TERMS rounds of the last reduced one at a time."""
    found = kernel.found
    if not loops:
        return _row(kernel, kernel.product(kernel.early, kernel.at()), "+")
    loop, *inside = loops
    if loop == found.along:
        return _along(kernel, _sums(kernel, tuple(inside)))
    var, size = kernel.counters[loop], kernel.sizes[loop]
    if loop != found.reduced[-1]:
        return For(var, const(0), size, Block((_sums(kernel, tuple(inside)),)))

    def terms(count: int) -> Stmt:
        values = [kernel.product(kernel.early, kernel.at(loop, by)) for by in range(count)]
        row = _row(kernel, add(*values), "+")
        return _along(kernel, row) if inside else row

    whole = mul(div(size, TERMS), TERMS)
    return block(
        For(var, const(0), whole, Block((terms(TERMS),)), TERMS),
        For(var, whole, size, Block((terms(1),))),
    )


def _transposed(kernel: _Kernel, streaming: Expr) -> Stmt:
    """Return the stage copied into the result, tile after tile of a block."""
    found, target, part = kernel.found, kernel.target, kernel.part
    at = kernel.at()
    at[found.along], at[found.across] = add(kernel.begin, part), kernel.first[found.across]
    start: Expr = mul(part, kernel.pitch)
    if found.beside:
        start = add(start, mul(kernel.counters[found.beside], kernel.size[found.across]))
    strip = Invoke(
        STRIP,
        (Place(target.array, place(target, at)), Place(kernel.stage, start)),
        (
            minimum(kernel.tile.columns, sub(kernel.wide, part)),
            kernel.size[found.across],
            target.strides[found.across],
            kernel.pitch,
            streaming,
        ),
    )
    tiles = For(part, const(0), kernel.wide, Block((strip,)), kernel.tile.columns)
    return _beside(kernel, tiles)


def _multiplied(kernel: _Kernel) -> Stmt:
    """Return the block of the result times the factors that run through its neighbours."""
    found, target, at = kernel.found, kernel.target, kernel.at()
    late = [kernel.factors[number] for number in sorted(found.late)]
    store = Store(target.array, place(target, at), kernel.product(late, at), "*")
    inner = For(kernel.row, const(0), kernel.wide, Block((store,)))
    rows = For(kernel.counters[found.across], const(0), kernel.size[found.across], block(inner))
    return _beside(kernel, rows)


def _beside(kernel: _Kernel, body: Stmt) -> Stmt:
    beside = kernel.found.beside
    if not beside:
        return body
    return For(kernel.counters[beside], const(0), kernel.size[beside], Block((body,)))
