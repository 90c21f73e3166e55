"""The places of extrema as loop IR, value and place carried through one loop over the elements.

    line of neighbours    best, start = -inf, 0
                          for blocks of the line: m = max of the block
                              if m > best: best, start = m, first of the block
                          look for best from start on
    line across rows      best[j], place[j] for neighbours j, over rows i: one pass
    line of entries       that of their values; the first gap between coordinates where what is not
                          stored is as good

A NaN is better than any number, and no NaN better than another: the first one is found, as by
NumPy. Every element is read once but for one block of a line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from codegen.build import (
    add,
    and_,
    binary,
    block,
    cast,
    const,
    div,
    eq,
    ge,
    increment,
    le,
    load,
    load_index,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    not_,
    or_,
    select,
    sub,
    zero,
)
from codegen.emit.abi import THREADS
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    If,
    LoopKind,
    Reduction,
    Role,
    Stmt,
    Storage,
    Store,
    Var,
    While,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL, INT8, INT16, INT32, INT64, UINT8, ScalarType, scalar
from taco_py.ways.places.place_match import Walk

BLOCK = 8192
"""Bytes of a block of a line, which stays in the first cache; of a row of accumulators."""
STEP = 64
"""Elements of the parts of a block that are compared as a whole when a place is looked for."""
SHORT = 64
"""Lines of fewer elements are gone through one by one."""
ROWS, AT_ONCE = 64, 8
"""Rows of a block whose columns are compared across; of which so many are read together."""
PLACES = {1: INT8, 2: INT16, 4: INT32, 8: INT64}
"""The type of places beside values of so many bytes: as many in a vector."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements that are compared.

    element  the type in which they are
    names    a supply of names
    """

    walk: Walk
    array: Array
    element: ScalarType
    names: Names

    @staticmethod
    def of(walk: Walk, array: Array, dtype: str, names: Names) -> Elements:
        """The elements of an array in the type of its operand; truths as numbers."""
        element = scalar(dtype)
        return Elements(walk, array, UINT8 if element == BOOL else element, names)

    @property
    def floats(self) -> bool:
        """Whether elements may be NaN."""
        return self.element.kind == "float"

    @property
    def operation(self) -> str:
        """The operator of the loop IR that takes the better of two elements."""
        return "max" if self.walk.is_maximum else "min"

    def at(self, place: Expr) -> Expr:
        """The element at a place of the array."""
        return cast(self.element, load(self.array, place))

    def worst(self) -> Const:
        """What no element is worse than."""
        dtype = np.dtype(self.element.name)
        found = self.walk.place.extremum.identity_of(dtype)
        return Const(found if found is not None else 0, self.element)

    def beats(self, one: Expr, other: Expr) -> Expr:
        """Whether an element is better than another: larger, say, or the first NaN."""
        left, right = (other, one) if self.walk.is_maximum else (one, other)
        if not self.floats:
            return lt(left, right)
        no_more = le(one, other) if self.walk.is_maximum else le(other, one)
        return binary("&", not_(no_more), eq(other, other))

    def is_best(self, one: Expr, best: Expr, both: bool = False) -> Expr:
        """Whether an element is the best one, or a NaN, which is the best if there is any.

        both  compute both comparisons, as lanes of vectors do
        """
        if not self.floats:
            return eq(one, best)
        parts = eq(one, best), ne(one, one)
        return binary("|", *parts) if both else or_(*parts)

    def better(self, one: Expr, other: Expr) -> Expr:
        """The better one of two elements."""
        return binary(self.operation, one, other)

    def var(self, wish: str, type: ScalarType = INT64) -> Var:
        """A variable with a name of its own."""
        return Var(self.names.fresh(wish), type)


def place_in_line(
    elements: Elements, first: Expr, stop: Expr, place: Callable[[Expr], Expr]
) -> tuple[list[Stmt], Var, Var]:
    """The statements that find the best of a line that has elements, the best, and where it is.

    place  of an element of the line in the array, from its number between `first` and `stop`
    """
    var, element = elements.var, elements.element
    best, start, at = var("best", element), var("start"), var("at")
    begin, end, own, here = var("begin"), var("end"), var("own", element), var("q")
    width = const(max(BLOCK // element.itemsize, STEP))
    worst, after = elements.worst(), [Declare(own, elements.worst())]
    of_block = For(
        here,
        begin,
        end,
        _taken(elements, own, place(here)),
        kind=LoopKind.VECTOR,
        reductions=(Reduction(elements.operation, own),),
    )
    blocks = For(
        begin,
        first,
        stop,
        block(
            Declare(end, minimum(add(begin, width), stop), True),
            *after,
            of_block,
            If(elements.beats(own, best), block(Assign(best, own), Assign(start, begin))),
        ),
        step=max(BLOCK // element.itemsize, STEP),
    )
    last, going = var("last"), var("going", BOOL)
    small = PLACES[element.itemsize]
    hits, some = var("hits", small), var("q")
    hit = cast(small, elements.is_best(elements.at(place(some)), best, both=True))
    steps = For(
        some,
        at,
        add(at, STEP),
        block(Assign(hits, hit, "+", Role.VALUES)),
        kind=LoopKind.VECTOR,
        reductions=(Reduction("+", hits),),
    )
    coarse = While(
        and_(going, le(add(at, STEP), last)),
        block(
            Declare(hits, zero(small)),
            steps,
            If(
                eq(hits, zero(small)),
                block(increment(at, STEP)),
                block(Assign(going, const(False, BOOL))),
            ),
        ),
    )
    fine = While(
        and_(lt(add(at, 1), last), not_(elements.is_best(elements.at(place(at)), best))),
        block(increment(at)),
    )
    each = var("q")
    one_by_one = For(
        each,
        first,
        stop,
        block(
            If(
                elements.beats(elements.at(place(each)), best),
                block(Assign(best, elements.at(place(each))), Assign(at, each)),
            )
        ),
    )
    long = block(
        Declare(start, first),
        blocks,
        Declare(last, minimum(add(start, width), stop), True),
        Assign(at, start),
        Declare(going, const(True, BOOL)),
        coarse,
        fine,
    )
    head: list[Stmt] = [Declare(best, worst), Declare(at, first)]
    return [*head, If(lt(sub(stop, first), SHORT), block(one_by_one), long)], best, at


def _taken(elements: Elements, best: Var, place: Expr) -> Block:
    """One element compared with the best so far."""
    return block(Assign(best, elements.at(place), elements.operation, Role.VALUES))


def places_across(
    elements: Elements,
    rows: Expr,
    columns: tuple[Expr, Expr],
    place: Callable[[Expr, Expr], Expr],
    store: Callable[[Expr, Expr], Stmt],
) -> list[Stmt]:
    """The statements that find the best of each column, of a few neighbours, in one pass over rows.

    Of each block of rows the best is compared with the best so far; the row is then looked for in
    the block that had it.

    columns  the first one and the number of them, at most `width_across`
    place    of the element in a row and a column
    store    the statement that stores the place of a column
    """
    var, element = elements.var, elements.element
    first, count = columns
    small = PLACES[element.itemsize]
    best = Array(elements.names.fresh("bests"), element, Storage.LOCAL)
    near = Array(elements.names.fresh("places"), small, Storage.LOCAL)
    found = Array(elements.names.fresh("found"), INT64, Storage.LOCAL)
    held = Array(elements.names.fresh("held"), element, Storage.LOCAL)
    most = 2 ** (min(small.bits, 32) - 1) - 1
    number, begin, end, c = var("number"), var("begin"), var("end"), var("c")
    start, stop, seen, there = var("start"), var("stop"), var("c"), var("c")
    own, before = load(held, c), load(best, c)
    is_better = var("better", BOOL)
    kept = block(
        Declare(is_better, elements.beats(own, before), True, Role.VALUES),
        Store(best, c, select(is_better, own, before)),
        Store(near, c, select(is_better, cast(small, sub(number, begin)), load(near, c))),
    )
    one_block = block(
        Declare(start, mul(number, ROWS), True),
        Declare(stop, minimum(add(start, ROWS), rows), True),
        Fill(held, const(0), count, elements.worst()),
        *_best_of_rows(elements, held, (start, stop), columns, place),
        For(c, const(0), count, kept, kind=LoopKind.VECTOR),
    )
    is_met = ge(load(near, seen), zero(small))
    met = Store(found, seen, add(begin, cast(INT64, load(near, seen))))
    blocks, at, last = var("blocks"), var("row"), var("last")
    parts = block(
        Declare(end, minimum(add(begin, most), blocks), True),
        Fill(near, const(0), count, Const(-1, small)),
        For(number, begin, end, one_block),
        For(seen, const(0), count, block(If(is_met, block(met)))),
    )
    element_there = elements.at(place(at, add(first, there)))
    found_row = block(
        Declare(at, mul(load(found, there), ROWS)),
        Declare(last, minimum(add(at, ROWS), rows), True),
        While(
            and_(lt(add(at, 1), last), not_(elements.is_best(element_there, load(best, there)))),
            block(increment(at)),
        ),
        store(add(first, there), at),
    )
    width = const(width_across(element))
    arrays = (best, near, held, found)
    return [
        *(Allocate(array, width, align=64) for array in arrays),
        Fill(best, const(0), count, elements.worst()),
        Fill(found, const(0), count, const(0)),
        Declare(blocks, div(add(rows, ROWS - 1), ROWS), True),
        For(begin, const(0), blocks, parts, step=most),
        For(there, const(0), count, found_row),
    ]


def _best_of_rows(
    elements: Elements,
    held: Array,
    rows: tuple[Expr, Expr],
    columns: tuple[Expr, Expr],
    place: Callable[[Expr, Expr], Expr],
) -> list[Stmt]:
    """The statements that take the best of some rows into an array, several rows at once."""
    var, (start, stop), (first, count) = elements.var, rows, columns
    row, rest, c = var("row"), var("rest"), var("c")

    def across(here: Var, much: int) -> For:
        c = var("c")
        column = add(first, c)
        each = [elements.at(place(add(here, k), column)) for k in range(much)]
        best = reduce(elements.better, _by_pairs(elements, each), load(held, c))
        return For(c, const(0), count, block(Store(held, c, best)), kind=LoopKind.VECTOR)

    together = block(across(row, AT_ONCE), increment(row, AT_ONCE))
    return [
        Declare(row, start),
        While(le(add(row, AT_ONCE), stop), together),
        For(rest, row, stop, block(across(rest, 1))),
    ]


def _by_pairs(elements: Elements, each: list[Expr]) -> list[Expr]:
    """The better ones of pairs, of pairs of these, and so on: one is left."""
    while len(each) > 1:
        pairs = zip(each[::2], each[1::2], strict=True)
        each = [elements.better(one, other) for one, other in pairs]
    return each


def width_across(element: ScalarType) -> int:
    """How many neighbours have their accumulators in the first cache."""
    return BLOCK // element.itemsize


def place_among_entries(
    elements: Elements, entries: tuple[Expr, Expr], crd: Array, size: Expr
) -> tuple[list[Stmt], Var]:
    """The statements that find the place of the best of a line with entries, and the place.

    entries  where those of the line begin and end; 0 is the place where there are none
    crd      their coordinates, ascending
    size     of the line, what is not stored included
    """
    var = elements.var
    first, stop = entries
    found, gap = var("found"), var("gap")
    inside, best, at = place_in_line(elements, first, stop, lambda place: place)
    better, equal = beside_fill(elements, best)
    count = sub(stop, first)
    walked = While(
        and_(lt(gap, count), eq(load_index(crd, add(first, gap)), gap)), block(increment(gap))
    )
    absent = block(
        Declare(gap, const(0)),
        walked,
        If(or_(better, lt(gap, found)), block(Assign(found, gap))),
    )
    some = block(
        *inside,
        Assign(found, load_index(crd, at)),
        If(and_(lt(count, size), or_(better, equal)), absent),
    )
    return [Declare(found, const(0)), If(lt(first, stop), some)], found


@dataclass(frozen=True, slots=True)
class Lines:
    """The best of each line so far, for entries that come in any order of lines: its value, its
    place, and the first place of the line that no entry had."""

    elements: Elements
    best: Array
    place: Array
    gap: Array

    @staticmethod
    def of(elements: Elements) -> Lines:
        """The arrays, with names of their own."""
        fresh, local = elements.names.fresh, Storage.LOCAL
        best = Array(fresh("bests"), elements.element, local)
        return Lines(
            elements, best, Array(fresh("places"), INT64, local), Array(fresh("gaps"), INT64, local)
        )

    def begun(self, count: Expr) -> list[Stmt]:
        """The statements that make the arrays, of so many lines."""
        lines = maximum(count, 1)
        return [
            Allocate(self.best, lines),
            Allocate(self.place, lines),
            Allocate(self.gap, lines),
            Fill(self.best, const(0), count, self.elements.worst()),
            Fill(self.place, const(0), count, const(-1)),
            Fill(self.gap, const(0), count, const(0)),
        ]

    def met(self, line: Expr, coordinate: Expr, at: Expr) -> list[Stmt]:
        """The statements for an entry; those of a line come in ascending order."""
        elements, var = self.elements, self.elements.var
        x, here, k = var("x", elements.element), var("line"), var("k")
        is_better = or_(lt(load(self.place, here), 0), elements.beats(x, load(self.best, here)))
        return [
            Declare(x, elements.at(at), True),
            Declare(here, line, True),
            Declare(k, coordinate, True),
            If(is_better, block(Store(self.best, here, x), Store(self.place, here, k))),
            If(eq(load(self.gap, here), k), block(Store(self.gap, here, add(k, 1)))),
        ]

    def ended(self, line: Expr, size: Expr) -> tuple[list[Stmt], Var]:
        """The statements that find the place in a line once all entries were met, and the place."""
        var = self.elements.var
        here, found, gap = var("line"), var("found"), var("gap")
        best = var("best", self.elements.element)
        better, equal = beside_fill(self.elements, best)
        absent = or_(better, binary("&", equal, lt(gap, found)))
        return [
            Declare(here, line, True),
            Declare(found, load(self.place, here)),
            Declare(gap, load(self.gap, here), True),
            Declare(best, load(self.best, here), True),
            If(
                lt(found, 0),
                block(Assign(found, const(0))),
                block(If(and_(lt(gap, size), absent), block(Assign(found, gap)))),
            ),
        ], found


def beside_fill(elements: Elements, best: Expr) -> tuple[Expr, Expr]:
    """Whether what is not stored is better than the best of a line, and whether it is as good."""
    fill = elements.walk.fill
    if fill != fill:
        return eq(best, best), ne(best, best)
    number = Const(np.dtype(elements.element.name).type(fill).item(), elements.element)
    better = lt(best, number) if elements.walk.is_maximum else lt(number, best)
    return better, eq(best, number)


def shared(loop: For) -> Stmt:
    """A loop whose iterations threads share where there are several."""
    many = For(loop.var, loop.start, loop.stop, loop.body, loop.step, LoopKind.PARALLEL)
    return If(lt(1, THREADS), Block((many,)), Block((loop,)))


def nested(
    loops: Sequence[tuple[Var, Expr]], inside: Sequence[Stmt], is_shared: bool = True
) -> Stmt | Block:
    """Loops from 0 on round some statements, the outermost shared."""
    body = block(*inside)
    for var, size in reversed(loops[1:] if is_shared else loops):
        body = block(For(var, const(0), size, body))
    if not is_shared or not loops:
        return body
    var, size = loops[0]
    return shared(For(var, const(0), size, body))


def offset(strides: Mapping[str, Expr], places: Mapping[str, Expr]) -> Expr:
    """The place of an element in an array, from its coordinates."""
    return reduce(add, (mul(places[i], strides[i]) for i in strides if i in places), const(0))
