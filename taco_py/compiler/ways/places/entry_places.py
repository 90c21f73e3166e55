"""The places of extrema of lines whose entries come one here, one there, in one pass over all."""

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
    """The best of each line so far, for entries that come in any order of lines: its value, its
    place, and the first place of the line that no entry had."""

    elements: Elements
    best: Array
    place: Array
    gap: Array

    @staticmethod
    def of(elements: Elements) -> Lines:
        """Return the arrays, with names of their own."""
        fresh, local = elements.names.fresh, Storage.LOCAL
        best = Array(fresh("bests"), elements.element, local)
        return Lines(
            elements, best, Array(fresh("places"), INT64, local), Array(fresh("gaps"), INT64, local)
        )

    def begun(self, count: Expr) -> list[Stmt]:
        """Return the statements that make the arrays, of so many lines."""
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
        """Return the statements for an entry; those of a line come in ascending order."""
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
        """Return the statements that find the place in a line once all entries were met, and the
        place."""
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
