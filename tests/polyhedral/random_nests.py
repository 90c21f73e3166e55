"""Random small affine nests and random bands of them, for property tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from polyhedral.affine import Affine, affine, variable
from polyhedral.band_schedule import Row
from polyhedral.model import Access, Loop, Mode, Nest, Statement

NAMES = ("i", "j", "k")
PARAMETERS = {"N": 4}


@st.composite
def loops(draw: st.DrawFn, depth: int, longest: Affine) -> tuple[Loop, ...]:
    made: list[Loop] = []
    for name in NAMES[:depth]:
        lowers = [affine(0), affine(1), *(variable(outer.name) for outer in made)]
        uppers = [affine(3), affine(2), longest, *(variable(o.name) + 1 for o in made)]
        lower, upper = draw(st.sampled_from(lowers)), draw(st.sampled_from(uppers))
        made.append(Loop(name, (lower,), (upper,)))
    return tuple(made)


@st.composite
def subscripts(draw: st.DrawFn, names: tuple[str, ...], count: int) -> tuple[Affine, ...]:
    factors = st.sampled_from((0, 0, 1, 1, 1, -1, 2))
    return tuple(
        sum((variable(name) * draw(factors) for name in names), affine(draw(st.integers(-1, 1))))
        for _ in range(count)
    )


@st.composite
def accesses(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[Access, ...]:
    """A write and up to two other accesses, which often differ from it in constants only."""
    array = draw(st.sampled_from(("A", "A", "B")))
    places = draw(subscripts(names, 2 if array == "B" else 1))
    mode = draw(st.sampled_from((Mode.WRITE, Mode.UPDATE)))
    made = [Access(array, places, mode, draw(operators) if mode is Mode.UPDATE else None)]
    for _ in range(draw(st.integers(0, 2))):
        near = tuple(place + draw(st.integers(-1, 1)) for place in places)
        mode = draw(st.sampled_from((Mode.READ, Mode.READ, Mode.WRITE)))
        other = draw(st.sampled_from((near, near, draw(subscripts(names, len(places))))))
        made.append(Access(array, other, mode))
    return tuple(made)


operators = st.sampled_from((None, "+", "+", "*"))


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    """One to three loops around one or two statements, the second inside some of them; bounds may
    use the parameter N, or there is none."""
    parameters = draw(st.sampled_from((("N",), ())))
    size = variable("N") if parameters else affine(PARAMETERS["N"])
    nested = draw(loops(draw(st.sampled_from((1, 2, 2, 3))), size))
    names = tuple(loop.name for loop in nested)
    first = Statement("S", nested, draw(accesses(names)), (0,) * (len(nested) + 1))
    statements = [first]
    if draw(st.booleans()):
        shared = draw(st.integers(0, len(nested)))
        order = (*(0,) * shared, draw(st.sampled_from((-1, 1))))
        own = draw(accesses(names[:shared]))
        statements.append(Statement("T", nested[:shared], own, order))
    known = (size - PARAMETERS["N"], PARAMETERS["N"] - size) if parameters else ()
    return Nest(tuple(statements), parameters, known)


@st.composite
def nests_of_updates(draw: st.DrawFn) -> Nest:
    """Two statements in one innermost loop that update the same or near elements of one array, by
    one operator or by two."""
    nested = draw(loops(draw(st.sampled_from((1, 2))), variable("N")))
    first, last = nested[0].name, nested[-1].name
    place = draw(st.sampled_from((affine(0), variable(first), variable(last))))
    made = [
        Statement(
            name,
            nested,
            (
                Access("A", (place + draw(st.sampled_from((0, 0, 1))),), Mode.UPDATE, operator),
                Access("B", (variable(last),)),
            ),
            (*(0,) * len(nested), at),
        )
        for at, (name, operator) in enumerate((("S", "+"), ("T", draw(operators))))
    ]
    return Nest(tuple(made), ("N",))


@dataclass(frozen=True, slots=True)
class Change:
    """Rows for a band of loops."""

    loops: tuple[str, ...]
    rows: tuple[Row, ...]


@st.composite
def changes(draw: st.DrawFn, nest: Nest) -> Change:
    """A band that all statements in its outermost loop share: tiled, permuted, skewed, reversed."""
    start, stop = draw(st.sampled_from(bands(nest)))
    forwards = st.sampled_from((1, 1, 1, -1))
    names = nest.statements[0].variables[start:stop]
    planes = {name: variable(name) * draw(forwards) for name in names}
    for earlier, name in pairwise(names):
        planes[name] = planes[name] + variable(earlier) * draw(st.sampled_from((0, 0, 0, 1, -1, 2)))
    points = [Row(name, planes[name]) for name in draw(st.permutations(names))]
    tiled = [name for name in draw(st.permutations(names)) if draw(st.booleans())]
    tiles = [Row(f"{name}_tile", planes[name], draw(st.integers(1, 3))) for name in tiled]
    return Change(tuple(names), (*tiles, *points))


def bands(nest: Nest) -> list[tuple[int, int]]:
    """From where to where the loops of the first statement can be rearranged together."""
    first, *others = nest.statements
    shared = [first.shared_loops(other) for other in others]
    depth = len(first.loops)
    return [
        (start, stop)
        for start in range(depth)
        for stop in range(start + 1, depth + 1)
        if not any(start < count < stop for count in shared)
    ]
