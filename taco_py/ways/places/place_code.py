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
    eq,
    ge,
    increment,
    le,
    load,
    load_index,
    lt,
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

BLOCK = 4096
"""Bytes of a block of a line, which stays in the first cache; of a row of accumulators."""
STEP = 64
"""Elements of the parts of a block that are compared as a whole when a place is looked for."""
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

    def is_best(self, one: Expr, best: Expr) -> Expr:
        """Whether an element is the best one, or a NaN, which is the best if there is any."""
        return or_(eq(one, best), ne(one, one)) if self.floats else eq(one, best)

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
    part, some = var("part", element), var("q")
    steps = For(
        some,
        at,
        add(at, STEP),
        _taken(elements, part, place(some)),
        kind=LoopKind.VECTOR,
        reductions=(Reduction(elements.operation, part),),
    )
    coarse = While(
        and_(going, le(add(at, STEP), last)),
        block(
            Declare(part, worst),
            steps,
            If(
                elements.is_best(part, best),
                block(Assign(going, const(False, BOOL))),
                block(increment(at, STEP)),
            ),
        ),
    )
    fine = While(
        and_(lt(add(at, 1), last), not_(elements.is_best(elements.at(place(at)), best))),
        block(increment(at)),
    )
    return (
        [
            Declare(best, worst),
            Declare(start, first),
            blocks,
            Declare(last, minimum(add(start, width), stop), True),
            Declare(at, start),
            Declare(going, const(True, BOOL)),
            coarse,
            fine,
        ],
        best,
        at,
    )


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
    narrow = small != INT64
    most = 2 ** (small.bits - 1) - 1
    row, c, begin, end = var("row"), var("c"), var("begin"), var("end")
    x, is_better = var("x", element), var("better", BOOL)
    body = block(
        Declare(x, elements.at(place(row, add(first, c))), True, Role.VALUES),
        Declare(is_better, elements.beats(x, load(best, c)), True, Role.VALUES),
        Store(best, c, select(is_better, x, load(best, c))),
        Store(near, c, select(is_better, cast(small, sub(row, begin)), load(near, c))),
    )
    across = For(c, const(0), count, body, kind=LoopKind.VECTOR)
    width = const(width_across(element))
    head: list[Stmt] = [Allocate(best, width, align=64), Allocate(near, width, align=64)]
    head.append(Fill(best, const(0), count, elements.worst()))
    if not narrow:
        head += [
            Fill(near, const(0), count, zero(small)),
            Declare(begin, const(0), True),
            For(row, const(0), rows, block(across)),
        ]
        c = var("c")
        return [*head, For(c, const(0), count, block(store(add(first, c), load(near, c))))]
    c2, c3 = var("c"), var("c")
    seen = ge(load(near, c2), zero(small))
    later = block(If(seen, block(Store(found, c2, add(begin, cast(INT64, load(near, c2)))))))
    parts = block(
        Declare(end, minimum(add(begin, most), rows), True),
        Fill(near, const(0), count, Const(-1, small)),
        For(row, begin, end, block(across)),
        For(c2, const(0), count, later),
    )
    return [
        *head,
        Allocate(found, width, align=64),
        Fill(found, const(0), count, const(0)),
        For(begin, const(0), rows, parts, step=most),
        For(c3, const(0), count, block(store(add(first, c3), load(found, c3)))),
    ]


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
    fill = elements.walk.fill
    is_nan = fill != fill
    number = Const(fill if is_nan else np.dtype(elements.element.name).type(fill).item(),
                   elements.element)  # fmt: skip
    if is_nan:
        better, equal = eq(best, best), ne(best, best)
    else:
        better = lt(best, number) if elements.walk.is_maximum else lt(number, best)
        equal = eq(best, number)
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
