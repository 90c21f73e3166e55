"""The places of extrema of lines whose entries are interleaved, in one pass over all entries."""

from __future__ import annotations

from codegen.build import (
    add,
    and_,
    binary,
    block,
    const,
    eq,
    load,
    lt,
    maximum,
    or_,
)
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Declare,
    Expr,
    Fill,
    If,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.records import dataclass
from codegen.types import INT64
from taco_py.compiler.ways.places.place_elements import Elements, beside_fill


@dataclass(frozen=True, slots=True)
class Lines:
    """The best element of each line so far, for entries of lines in any order.

    Three arrays have its value, its place, and the first place of the line without an entry.
    """

    elements: Elements
    best: Array
    place: Array
    gap: Array

    @staticmethod
    def of(elements: Elements) -> Lines:
        """Return the arrays, with fresh names."""
        fresh, local = elements.names.fresh, Storage.LOCAL
        best = Array(fresh("bests"), elements.element, local)
        return Lines(
            elements, best, Array(fresh("places"), INT64, local), Array(fresh("gaps"), INT64, local)
        )

    def begin(self, count: Expr) -> list[Stmt]:
        """Return the statements that allocate the arrays for `count` lines."""
        lines = maximum(count, 1)
        return [
            Allocate(self.best, lines),
            Allocate(self.place, lines),
            Allocate(self.gap, lines),
            Fill(self.best, const(0), count, self.elements.worst()),
            Fill(self.place, const(0), count, const(-1)),
            Fill(self.gap, const(0), count, const(0)),
        ]

    def visit(self, line: Expr, coordinate: Expr, at: Expr) -> list[Stmt]:
        """Return the statements for an entry; entries of a line come in ascending order."""
        elements, var = self.elements, self.elements.var
        x, current, k = var("x", elements.element), var("line"), var("k")
        is_better = or_(
            lt(load(self.place, current), 0), elements.beats(x, load(self.best, current))
        )
        return [
            Declare(x, elements.at(at), True),
            Declare(current, line, True),
            Declare(k, coordinate, True),
            If(is_better, block(Store(self.best, current, x), Store(self.place, current, k))),
            If(eq(load(self.gap, current), k), block(Store(self.gap, current, add(k, 1)))),
        ]

    def end(self, line: Expr, size: Expr) -> tuple[list[Stmt], Var]:
        """Return the statements that find the place in a line after all entries, and the place."""
        var = self.elements.var
        current, place, gap = var("line"), var("found"), var("gap")
        best = var("best", self.elements.element)
        better, equal = beside_fill(self.elements, best)
        absent = or_(better, binary("&", equal, lt(gap, place)))
        return [
            Declare(current, line, True),
            Declare(place, load(self.place, current)),
            Declare(gap, load(self.gap, current), True),
            Declare(best, load(self.best, current), True),
            If(
                lt(place, 0),
                block(Assign(place, const(0))),
                block(If(and_(lt(gap, size), absent), block(Assign(place, gap)))),
            ),
        ], place
