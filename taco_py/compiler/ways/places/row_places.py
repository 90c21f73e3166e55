"""The places of extrema down many contiguous columns, in one pass over the rows."""

from __future__ import annotations

from collections.abc import Callable

from codegen.build import (
    add,
    and_,
    block,
    cast,
    const,
    div,
    ge,
    increment,
    le,
    load,
    lt,
    minimum,
    mul,
    not_,
    select,
    sub,
    zero,
)
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    If,
    LoopKind,
    Role,
    Stmt,
    Storage,
    Store,
    Var,
    While,
)
from codegen.records import dataclass
from codegen.types import BOOL, INT64, ScalarType
from taco_py.compiler.ways.places.place_elements import BLOCK, PLACES, Elements

ROWS, AT_ONCE = 64, 8
"""The rows of a block, and the rows that are read at once."""


@dataclass(frozen=True, slots=True)
class _ColumnSearch:
    """Writes the search in a few contiguous columns.

    columns  the first one and the number of them
    place    the position of the element in a row and a column
    best, near, held, found  a number for each column: the best so far; the number of its block of
             rows in a narrow type, and in a wide one; the best of one block
    """

    elements: Elements
    rows: Expr
    columns: tuple[Expr, Expr]
    place: Callable[[Expr, Expr], Expr]
    best: Array
    near: Array
    block_best: Array
    block: Array

    @property
    def small(self) -> ScalarType:
        """Return the narrow type."""
        return self.near.element

    def parts(self, blocks: Expr) -> Stmt:
        """Return the loop over as many blocks of rows at a time as the narrow type counts."""
        var, (_, count), small = self.elements.var, self.columns, self.small
        most = 2 ** (min(small.bits, 32) - 1) - 1
        number, begin, end, c = var("number"), var("begin"), var("end"), var("c")
        near = load(self.near, c)
        update = block(Store(self.block, c, add(begin, cast(INT64, near))))
        body = block(
            Declare(end, minimum(add(begin, most), blocks), True),
            Fill(self.near, const(0), count, Const(-1, small)),
            For(number, begin, end, self.of_block(number, begin)),
            For(c, const(0), count, block(If(ge(near, zero(small)), update))),
        )
        return For(begin, const(0), blocks, body, step=most)

    def of_block(self, number: Expr, begin: Expr) -> Block:
        """Return the code that compares the best of a block of rows with the best so far."""
        elements, var, (_, count) = self.elements, self.elements.var, self.columns
        start, stop, c = var("start"), var("stop"), var("c")
        best_here, before, is_better = (
            load(self.block_best, c),
            load(self.best, c),
            var("better", BOOL),
        )
        place = cast(self.small, sub(number, begin))
        update = block(
            Declare(is_better, elements.beats(best_here, before), True, Role.VALUES),
            Store(self.best, c, select(is_better, best_here, before)),
            Store(self.near, c, select(is_better, place, load(self.near, c))),
        )
        return block(
            Declare(start, mul(number, ROWS), True),
            Declare(stop, minimum(add(start, ROWS), self.rows), True),
            Fill(self.block_best, const(0), count, elements.worst()),
            *self.best_of_rows(start, stop),
            For(c, const(0), count, update, kind=LoopKind.VECTOR),
        )

    def best_of_rows(self, start: Expr, stop: Expr) -> list[Stmt]:
        """Return the code for the best of some rows, of which several are read at once."""
        row, rest = self.elements.var("row"), self.elements.var("rest")
        several = block(self.over(row, AT_ONCE), increment(row, AT_ONCE))
        return [
            Declare(row, start),
            While(le(add(row, AT_ONCE), stop), several),
            For(rest, row, stop, block(self.over(rest, 1))),
        ]

    def over(self, row: Var, much: int) -> For:
        """Return the loop over columns that reduces `count` rows to the best of each column."""
        (first, count), c = self.columns, self.elements.var("c")
        elements = [self.elements.at(self.place(add(row, k), add(first, c))) for k in range(much)]
        while len(elements) > 1:
            pairs = zip(elements[::2], elements[1::2], strict=True)
            elements = [self.elements.better(one, other) for one, other in pairs]
        best = self.elements.better(load(self.block_best, c), *elements)
        return For(c, const(0), count, block(Store(self.block_best, c, best)), kind=LoopKind.VECTOR)

    def looked_for(self, store: Callable[[Expr, Expr], Stmt]) -> Stmt:
        """Return the search of each column's row in the block that has its best."""
        elements, var, (first, count) = self.elements, self.elements.var, self.columns
        c, at, last = var("c"), var("row"), var("last")
        element = elements.at(self.place(at, add(first, c)))
        is_found = elements.is_best(element, load(self.best, c))
        body = block(
            Declare(at, mul(load(self.block, c), ROWS)),
            Declare(last, minimum(add(at, ROWS), self.rows), True),
            While(and_(lt(add(at, 1), last), not_(is_found)), block(increment(at))),
            store(add(first, c), at),
        )
        return For(c, const(0), count, body)


def places_across(
    elements: Elements,
    rows: Expr,
    columns: tuple[Expr, Expr],
    place: Callable[[Expr, Expr], Expr],
    store: Callable[[Expr, Expr], Stmt],
) -> list[Stmt]:
    """Return the statements that find the best of each of a few columns, in one pass over rows.

    The best of each block of rows is compared with the best so far; the row is then searched in the
    block that has it.

    columns  the first one and the number of them, at most `width_across`
    place    the position of the element in a row and a column
    store    the statement that stores the place of a column
    """
    element, fresh, local = elements.element, elements.names.fresh, Storage.LOCAL
    best, block_bests = Array(fresh("bests"), element, local), Array(fresh("held"), element, local)
    near = Array(fresh("places"), PLACES[element.itemsize], local)
    blocks_found = Array(fresh("found"), INT64, local)
    search = _ColumnSearch(elements, rows, columns, place, best, near, block_bests, blocks_found)
    width, blocks = const(width_across(element)), elements.var("blocks")
    return [
        *(Allocate(array, width, align=64) for array in (best, near, block_bests, blocks_found)),
        Fill(best, const(0), columns[1], elements.worst()),
        Fill(blocks_found, const(0), columns[1], const(0)),
        Declare(blocks, div(add(rows, ROWS - 1), ROWS), True),
        search.parts(blocks),
        search.looked_for(store),
    ]


def width_across(element: ScalarType) -> int:
    """Return the number of columns whose accumulators fit the first cache."""
    return BLOCK // element.itemsize
