"""A sum of products stored in another order than its operands: summed near, then transposed.

    C[k,i] = sum(j, A[i,j,k] * v[j])      for blocks of i, for pieces of k:
                                            for i, j, k of them:  W[i,k] += A[i,j,k] * v[j]
                                            C[k,i] = W[i,k], transposed in registers

`along` is the loop that runs through neighbours of the result (i), `across` the one that does in
the operands (k). Loops alone would read the one or write the other a line for each element. What is
summed, the operands' stage, is so small that it stays in the first caches until it is transposed by
`polyhedral.permutation`; sums run in the order in which the largest operand is stored, four terms
at a time, so that the stage is read and written a quarter as often.

Factors that run through neighbours of the result instead, as in C[k,i] = A[i,k] * B[k,i], are
multiplied in afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codegen.build import add, block, const, div, ge, load, lt, maximum, minimum, mod, mul, sub
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
from codegen.types import BOOL
from polyhedral.contract import Data
from polyhedral.permutation import LINE, STRIP, TransposeTile, strip_function
from polyhedral.register_tile import Machine

TERMS = 4
"""Terms that are added to an element of the stage at a time."""
SHORT, LONG = 128, 512
"""Elements of `across` in a stage: few where sums run over all of it, row after row, for each of
their terms; more where a row is summed before the next one."""


@dataclass(frozen=True, slots=True)
class Staged:
    """`along` and `across` as above, the `outer` loops, the first outermost, and those `around` the
    innermost loop: along and the reduced ones, as the largest operand is stored.

    late  the places of the factors that are multiplied in afterwards
    """

    along: str
    across: str
    outer: tuple[str, ...]
    around: tuple[str, ...]
    late: frozenset[int]

    @property
    def reduced(self) -> tuple[str, ...]:
        return tuple(loop for loop in self.around if loop != self.along)


def staged(
    target: tuple[str, ...], factors: Sequence[tuple[str, ...]], largest: int
) -> Staged | None:
    """The product of factors stored with such loops, the last ones through neighbours, summed over
    those that the target does not have; None where no stage is needed, or where a factor runs
    through neighbours of neither.

    largest  the place of the factor that takes the longest to read
    """
    if len(target) < 2 or not factors[largest]:
        return None
    along, across = target[-1], factors[largest][-1]
    if along == across or across not in target or along not in factors[largest]:
        return None
    reduced = {loop for factor in factors for loop in factor if loop not in target}
    late = frozenset(
        place for place, loops in enumerate(factors) if across in loops and loops[-1] != across
    )
    if any(factors[place][-1] != along or reduced & {*factors[place]} for place in late):
        return None
    stored = [loop for loop in factors[largest] if loop in reduced or loop == along]
    others = sorted(reduced - set(stored))
    outer = tuple(loop for loop in target if loop not in (along, across))
    return Staged(along, across, outer, (*others, *stored), late)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What the parts of the code are made of."""

    found: Staged
    tile: TransposeTile
    target: Data
    factors: Sequence[Data]
    sizes: Mapping[str, Expr]
    counters: Mapping[str, Var]
    stage: Array
    pitch: int
    begin: Var
    wide: Var
    first: Var
    length: Var

    @property
    def row(self) -> Var:
        """The counter of `along` within a block of it."""
        return self.counters[self.found.along]

    def place(self, data: Data, at: Mapping[str, Expr]) -> Expr:
        """The element of an array where the loops stand."""
        return add(*(mul(at[loop], step) for loop, step in data.strides.items()))

    def at(self, moved: str = "", by: int = 0) -> dict[str, Expr]:
        """Where the loops stand, one of them `by` iterations further on."""
        found: dict[str, Expr] = dict(self.counters)
        found[self.found.along] = add(self.begin, self.row)
        found[self.found.across] = add(self.first, self.counters[self.found.across])
        if moved:
            found[moved] = add(found[moved], by)
        return found

    def product(self, late: bool, at: Mapping[str, Expr]) -> Expr:
        """Of the factors that are, or are not, multiplied in afterwards."""
        places = (p for p in range(len(self.factors)) if (p in self.found.late) == late)
        loads = [load(self.factors[p].array, self.place(self.factors[p], at)) for p in places]
        return mul(*loads)


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
    """The module whose last function is `head`, a threaded function without a body, with one.

    names  a supply that has handed out those of `head`'s parameters
    """
    element = target.array.element
    loops = (*found.outer, *found.around, found.across)
    by_rows = not found.around or found.around[0] == found.along
    kernel = _Kernel(
        found,
        tile,
        target,
        factors,
        sizes,
        {loop: Var(names.fresh(loop)) for loop in loops},
        Array(names.fresh("stage"), element, Storage.LOCAL),
        (LONG if by_rows else SHORT) + tile.line,
        Var(names.fresh("begin")),
        Var(names.fresh("wide")),
        Var(names.fresh("first")),
        Var(names.fresh("length")),
    )
    start = Var(names.fresh("start"))
    streaming = Var(names.fresh("streaming"), BOOL)
    columns, length = tile.columns, sizes[found.along]
    last = machine.caches[-1] // machine.element_bytes if machine.caches else 1 << 22
    result = [sizes[loop] for loop in (*found.outer, found.along, found.across)]
    large = const(False) if found.late else ge(mul(*result), last)
    before = mod(sub(columns, Lead(target.array, LINE)), columns)
    body = block(
        Declare(kernel.begin, maximum(start, 0), True),
        Declare(kernel.wide, sub(minimum(length, add(start, columns)), kernel.begin), True),
        Allocate(kernel.stage, const(columns * kernel.pitch), align=LINE),
        _pieces(kernel, streaming),
    )
    nest = For(start, sub(0, before), length, body, columns)
    for loop in reversed(found.outer):
        nest = For(kernel.counters[loop], const(0), sizes[loop], Block((nest,)))
    shared = For(nest.var, nest.start, nest.stop, nest.body, nest.step, LoopKind.PARALLEL)
    both = If(lt(1, THREADS), Block((shared,)), Block((nest,)))
    main = block(Declare(streaming, large, True), both)
    whole = Function(head.name, head.arrays, head.scalars, main, threaded=True)
    return Module((strip_function(tile, element), whole))


def _pieces(kernel: _Kernel, streaming: Expr) -> For:
    """For pieces of `across`: fill the stage, transpose it, multiply in what is left."""
    found, first, target = kernel.found, kernel.first, kernel.target
    width = kernel.pitch - kernel.tile.line
    size = kernel.sizes[found.across]
    at: dict[str, Expr] = {
        **{loop: kernel.counters[loop] for loop in found.outer},
        found.along: kernel.begin,
        found.across: first,
    }
    strip = Invoke(
        STRIP,
        (Place(target.array, kernel.place(target, at)), Place(kernel.stage, const(0))),
        (
            kernel.wide,
            kernel.length,
            target.strides[found.across],
            const(kernel.pitch),
            streaming,
        ),
    )
    late = (_multiplied(kernel),) if found.late else ()
    length = Declare(kernel.length, minimum(width, sub(size, first)), True)
    return For(first, const(0), size, block(length, _filled(kernel), strip, *late), width)


def _filled(kernel: _Kernel) -> Block:
    """The stage with the sums of the factors that come first."""
    found = kernel.found
    if not found.reduced:
        return Block((_along(kernel, _across(kernel, kernel.product(False, kernel.at()), None)),))
    zeros = Fill(
        kernel.stage,
        mul(kernel.row, kernel.pitch),
        kernel.length,
        const(0.0, kernel.stage.element),
    )
    return block(_along(kernel, zeros), _sums(kernel, found.around))


def _along(kernel: _Kernel, body: Stmt) -> For:
    return For(kernel.row, const(0), kernel.wide, Block((body,)))


def _across(kernel: _Kernel, value: Expr, op: str | None) -> For:
    """The innermost loop, over a row of the stage."""
    column = kernel.counters[kernel.found.across]
    place = add(mul(kernel.row, kernel.pitch), column)
    return For(column, const(0), kernel.length, Block((Store(kernel.stage, place, value, op),)))


def _sums(kernel: _Kernel, loops: tuple[str, ...]) -> Stmt:
    """The loops around the innermost one; TERMS rounds of the last reduced one at a time."""
    found = kernel.found
    if not loops:
        return _across(kernel, kernel.product(False, kernel.at()), "+")
    loop, *inside = loops
    if loop == found.along:
        return _along(kernel, _sums(kernel, tuple(inside)))
    var, size = kernel.counters[loop], kernel.sizes[loop]
    if loop != found.reduced[-1]:
        return For(var, const(0), size, Block((_sums(kernel, tuple(inside)),)))

    def terms(count: int) -> Stmt:
        values = [kernel.product(False, kernel.at(loop, by)) for by in range(count)]
        inner: Stmt = _across(kernel, add(*values), "+")
        return _along(kernel, inner) if inside else inner

    whole = mul(div(size, TERMS), TERMS)
    return block(
        For(var, const(0), whole, Block((terms(TERMS),)), TERMS),
        For(var, whole, size, Block((terms(1),))),
    )


def _multiplied(kernel: _Kernel) -> For:
    """The block of the result times the factors that run through its neighbours."""
    target = kernel.target
    at = kernel.at()
    column = kernel.counters[kernel.found.across]
    store = Store(target.array, kernel.place(target, at), kernel.product(True, at), "*")
    inner = For(kernel.row, const(0), kernel.wide, Block((store,)))
    return For(column, const(0), kernel.length, Block((inner,)))
