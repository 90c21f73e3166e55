"""The place of an extremum in a contiguous line of dense elements, or of entries.

    best, start = -inf, 0
    for blocks of the line: m = max of the block
        if m > best: best, start = m, first of the block
    search best from start on

Every element is read once, except those of one block, which is in the first cache.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.build import (
    add,
    and_,
    block,
    cast,
    const,
    eq,
    increment,
    le,
    load_index,
    lt,
    minimum,
    not_,
    or_,
    sub,
    zero,
)
from codegen.ir import (
    Array,
    Assign,
    Declare,
    Expr,
    For,
    If,
    LoopKind,
    Reduction,
    Role,
    Stmt,
    Var,
    While,
)
from codegen.records import dataclass
from codegen.types import BOOL
from taco_py.compiler.ways.places.place_elements import BLOCK, PLACES, Elements, beside_fill

STEP = 64
"""Elements of a part of a block, for which one test tells whether the place is in it."""
SHORT = 64
"""Lines of fewer elements are searched element by element."""


@dataclass(frozen=True, slots=True)
class _Line:
    """Writes the search in one line.

    place  the position of an element in the array, from its number between `first` and `stop`
    best   the best so far; `at` its number; `start` the first element of its block
    """

    elements: Elements
    first: Expr
    stop: Expr
    place: Callable[[Expr], Expr]
    best: Var
    at: Var
    start: Var

    def element(self, number: Expr) -> Expr:
        """Return an element of the line."""
        return self.elements.at(self.place(number))

    @property
    def width(self) -> int:
        """Return the number of elements of a block."""
        return max(BLOCK // self.elements.element.itemsize, STEP)

    def one_by_one(self) -> Stmt:
        """Return the loop that compares each element with the best so far."""
        number = self.elements.var("q")
        update = block(Assign(self.best, self.element(number)), Assign(self.at, number))
        better = self.elements.beats(self.element(number), self.best)
        return For(number, self.first, self.stop, block(If(better, update)))

    def blocks(self) -> Stmt:
        """Return the loop that compares the best of each block with the best so far."""
        elements, var = self.elements, self.elements.var
        begin, end, number = var("begin"), var("end"), var("q")
        block_best = var("own", elements.element)
        update = Assign(block_best, self.element(number), elements.operation, Role.VALUES)
        reductions = (Reduction(elements.operation, block_best),)
        of_block = For(
            number, begin, end, block(update), kind=LoopKind.VECTOR, reductions=reductions
        )
        body = block(
            Declare(end, minimum(add(begin, self.width), self.stop), True),
            Declare(block_best, elements.worst()),
            of_block,
            If(
                elements.beats(block_best, self.best),
                block(Assign(self.best, block_best), Assign(self.start, begin)),
            ),
        )
        return For(begin, self.first, self.stop, body, step=self.width)

    def looked_for(self) -> list[Stmt]:
        """Return the search in the block that has the best: part by part, then in the part."""
        elements, var = self.elements, self.elements.var
        last, going = var("last"), var("going", BOOL)
        small = PLACES[elements.element.itemsize]
        hits, some, at = var("hits", small), var("q"), self.at
        hit = cast(small, elements.is_best(self.element(some), self.best, without_branch=True))
        counted = For(
            some,
            at,
            add(at, STEP),
            block(Assign(hits, hit, "+", Role.VALUES)),
            kind=LoopKind.VECTOR,
            reductions=(Reduction("+", hits),),
        )
        stop = block(Assign(going, const(False, BOOL)))
        part = block(
            Declare(hits, zero(small)),
            counted,
            If(eq(hits, zero(small)), block(increment(at, STEP)), stop),
        )
        is_found = elements.is_best(self.element(at), self.best)
        return [
            Declare(last, minimum(add(self.start, self.width), self.stop), True),
            Assign(at, self.start),
            Declare(going, const(True, BOOL)),
            While(and_(going, le(add(at, STEP), last)), part),
            While(and_(lt(add(at, 1), last), not_(is_found)), block(increment(at))),
        ]


def place_in_line(
    elements: Elements, first: Expr, stop: Expr, place: Callable[[Expr], Expr]
) -> tuple[list[Stmt], Var, Var]:
    """Return the statements that find the best of a nonempty line, the best, and its number.

    place  the position of an element in the array, from its number between `first` and `stop`
    """
    best, at = elements.var("best", elements.element), elements.var("at")
    line = _Line(elements, first, stop, place, best, at, elements.var("start"))
    long = block(Declare(line.start, first), line.blocks(), *line.looked_for())
    is_short = lt(sub(stop, first), SHORT)
    head: list[Stmt] = [Declare(best, elements.worst()), Declare(at, first)]
    return [*head, If(is_short, block(line.one_by_one()), long)], best, at


def place_among_entries(
    elements: Elements, entries: tuple[Expr, Expr], crd: Array, size: Expr
) -> tuple[list[Stmt], Var]:
    """Return the statements that find the place of the best of a line with entries, and the place.

    entries  the begin and the end of the line's entries; the place is 0 where there are none
    crd      their coordinates, ascending
    size     of the line, including elements that are not stored
    """
    var = elements.var
    first, stop = entries
    answer, gap = var("found"), var("gap")
    inside, best, at = place_in_line(elements, first, stop, lambda place: place)
    better, equal = beside_fill(elements, best)
    count = sub(stop, first)
    walked = While(
        and_(lt(gap, count), eq(load_index(crd, add(first, gap)), gap)), block(increment(gap))
    )
    absent = block(
        Declare(gap, const(0)),
        walked,
        If(or_(better, lt(gap, answer)), block(Assign(answer, gap))),
    )
    some = block(
        *inside,
        Assign(answer, load_index(crd, at)),
        If(and_(lt(count, size), or_(better, equal)), absent),
    )
    return [Declare(answer, const(0)), If(lt(first, stop), some)], answer
