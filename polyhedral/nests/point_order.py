"""In which order the instances inside a tile run, and which loop is the innermost.

Inside a tile any order may be taken that the nest as a whole could be run in. Candidates begin
with some planes of the band, then stand the statements one after the other, then the loops that
each statement has left, the one innermost that suits vectors best:

    planes k, i, j of LU        k; S1: i; S0: i, j; S2: i, j

The one with the best scores (Algorithm 2 of Narasimhan et al. 2021) that ISL finds legal is taken;
the order as written always is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import log2

from codegen.records import dataclass
from polyhedral.affine import Affine, affine, variable
from polyhedral.band_schedule import Row, Schedule, original
from polyhedral.isl.bands import Component
from polyhedral.isl.held import Held, keeps_order
from polyhedral.model import Mode, Nest, Statement
from polyhedral.nests.directions import introduced, ranges
from polyhedral.nests.tile_size import advances_by_one, changes

CANDIDATES = 12
"""How many orders ISL is asked about."""

LONG, SHORTEST = 64, 4
"""Iterations from which a row is as good as an endless one, and to which no row is worse."""
OCTAVE = 0.75
"""What an access loses for each halving of LONG: a straight row of any length is better than one of
SHORTEST (2 to 4 an access), and one of those still better than a longer one with leaps (-16)."""


@dataclass(frozen=True, slots=True)
class PointOrder:
    """Rows of each statement of a component, for inside a tile.

    own     how many of the last loops of each statement are its own, contained in no other's
    planes  how many planes come first; None for the order as written
    """

    rows: tuple[tuple[str, tuple[Row, ...]], ...]
    own: tuple[tuple[str, int], ...]
    planes: tuple[int, ...] | None

    def innermost(self, statement: str) -> str | None:
        """Return the loop of `statement` that runs innermost."""
        names = [row.name for row in dict(self.rows)[statement] if row.name]
        return names[-1] if names else None


@dataclass(frozen=True, slots=True)
class Sized:
    """A nest, and how many iterations its loops have at most, by statement and loop."""

    nest: Nest
    iterations: Mapping[str, Mapping[str, int]]


def sized(nest: Nest, values: Mapping[str, int]) -> Sized:
    """Return `nest` where its parameters have these `values`."""
    return Sized(
        nest,
        {
            each.name: {name: high - low + 1 for name, (low, high) in ranges(each, values).items()}
            for each in nest.statements
        },
    )


def choose_order(
    held: Held, known: Sized, parts: Sequence[Component], component: Component
) -> PointOrder:
    """Return the best order of the instances of `component`, one of `parts` that run one after the
    other, inside a tile; it is legal everywhere."""
    nest = known.nest
    written = as_written(nest, component)
    best = _score(known, written)
    found = {candidate.rows: candidate for candidate in _candidates(known, component)}
    ranked = sorted(found.values(), key=lambda each: _score(known, each), reverse=True)
    for candidate in ranked[:CANDIDATES]:
        if _score(known, candidate) <= best:
            break
        if keeps_order(held, _schedule(nest, parts, candidate)):
            return candidate
    return written


def as_written(nest: Nest, component: Component) -> PointOrder:
    """Return the order of the text, restricted to the statements of `component`."""
    rows = original(nest)
    return PointOrder(
        tuple((name, rows.of(name)) for name in component.statements),
        tuple((name, _own_loops(nest.statement(name), nest)) for name in component.statements),
        None,
    )


def _own_loops(statement: Statement, nest: Nest) -> int:
    others = (each for each in nest.statements if each is not statement)
    return len(statement.loops) - max((statement.shared_loops(each) for each in others), default=0)


def _schedule(nest: Nest, parts: Sequence[Component], order: PointOrder) -> Schedule:
    """Return `order` for the statements that it has, the others as written."""
    written, chosen = original(nest), dict(order.rows)
    return padded(
        {
            name: (Row("", affine(place)), *chosen.get(name, written.of(name)))
            for place, part in enumerate(parts)
            for name in part.statements
        }
    )


def padded(rows: Mapping[str, tuple[Row, ...]]) -> Schedule:
    """Return a schedule of rows of different lengths: 0 stands where there are none."""
    longest = max(map(len, rows.values()))
    fill = Row("", affine(0))
    return Schedule(
        tuple((name, (*own, *(fill,) * (longest - len(own)))) for name, own in rows.items())
    )


# ---------------------------------------------------------------- candidates


def _candidates(known: Sized, component: Component) -> Iterator[PointOrder]:
    yield _rearranged(known, component)
    nest = known.nest
    deepest = max(len(nest.statement(name).loops) for name in component.statements)
    for depth in range(deepest):
        yield _distributed(known, component, depth)
    yield from _along_planes(known, component, component.statements)
    text = tuple(each.name for each in nest.statements if each.name in component.statements)
    if text != component.statements:
        yield from _along_planes(known, component, text)


def _rearranged(known: Sized, component: Component) -> PointOrder:
    """As written, with the own loops of each statement in the order that suits it best."""
    nest = known.nest
    written = as_written(nest, component)
    own = dict(written.own)
    rows = {}
    for name, found in written.rows:
        statement, kept = nest.statement(name), len(nest.statement(name).loops) - own[name]
        inner = _best_order(known, statement, statement.variables[kept:])
        rows[name] = (*found[: 2 * kept + 1], *(Row(each, variable(each)) for each in inner))
    return PointOrder(tuple(rows.items()), written.own, ())


def _distributed(known: Sized, component: Component, depth: int) -> PointOrder:
    """As written down to `depth` loops; below, the statements one after the other."""
    nest = known.nest
    written = original(nest)
    rows: dict[str, tuple[Row, ...]] = {}
    own: dict[str, int] = {}
    text = [each.name for each in sorted(nest.statements, key=lambda each: each.order)]
    for name in component.statements:
        statement = nest.statement(name)
        rest = _best_order(known, statement, statement.variables[depth:])
        kept = 2 * (len(statement.loops) - len(rest))
        place = Row("", affine(text.index(name)))
        rows[name] = (*written.of(name)[:kept], place, *(Row(n, variable(n)) for n in rest))
        own[name] = len(rest)
    return PointOrder(tuple(rows.items()), tuple(own.items()), ())


def _along_planes(
    known: Sized, component: Component, statements: Sequence[str]
) -> Iterator[PointOrder]:
    """Yield some planes first, then `statements` in this order."""
    planes = dict(component.planes)
    width = len(component.parallel)
    for count in range(width + 1):
        for chosen in permutations(range(width), count):
            rows = {
                name: _candidate_rows(
                    known, known.nest.statement(name), [planes[name][at] for at in chosen], place
                )
                for place, name in enumerate(statements)
            }
            complete = {name: found for name, found in rows.items() if found is not None}
            if len(complete) == len(rows):
                yield PointOrder(
                    tuple((name, found[0]) for name, found in complete.items()),
                    tuple((name, found[1]) for name, found in complete.items()),
                    chosen,
                )


def _candidate_rows(
    known: Sized, statement: Statement, planes: Sequence[Affine], place: int
) -> tuple[tuple[Row, ...], int] | None:
    """Return `planes`, then the place of the statement, then its other loops; and how many of
    those."""
    names = introduced(planes, statement.variables)
    if names is None:
        return None
    rest = _best_order(
        known, statement, [name for name in statement.variables if name not in names]
    )
    outer = [
        Row(name or f"c{at}", plane)
        for at, (name, plane) in enumerate(zip(names, planes, strict=True))
    ]
    inner = [Row(name, variable(name)) for name in rest]
    return (*outer, Row("", affine(place)), *inner), len(rest)


def _best_order(known: Sized, statement: Statement, loops: Sequence[str]) -> tuple[str, ...]:
    """Return `loops`, the one innermost that suits that place best."""
    if not loops:
        return ()
    sizes = known.iterations[statement.name]
    vector = max(reversed(loops), key=lambda name: loop_score(statement, name, sizes[name]))
    return (*(name for name in loops if name != vector), vector)


# ---------------------------------------------------------------- scores


def loop_score(statement: Statement, loop: str, iterations: int) -> float:
    """Return how well `loop` suits the innermost place: 2 for an access that advances by one
    element, 4 for one that stays, -16 for any other; OCTAVE less for each time that `iterations`
    must be doubled to be LONG, for short rows fill no vectors."""
    short = OCTAVE * log2(LONG / min(LONG, max(iterations, SHORTEST)))
    total = 0.0
    for access in statement.accesses:
        weight = 2 if access.mode is Mode.UPDATE else 1
        if not changes(access, loop):
            total += (4 - short) * weight
        else:
            total += weight * ((2 if advances_by_one(access, loop) else -16) - short)
    return total


def _score(known: Sized, order: PointOrder) -> tuple[float, ...]:
    """Return the scores of the innermost loops of the deepest statements, how many loops statements
    have for themselves, then the scores of the others."""
    nest = known.nest
    depths = {len(nest.statement(name).loops): 0.0 for name, _ in order.rows}
    for name, _ in order.rows:
        statement, loop = nest.statement(name), order.innermost(name)
        if loop in statement.variables:
            iterations = known.iterations[name][loop]
            depths[len(statement.loops)] += loop_score(statement, loop, iterations)
    deepest, *others = (depths[depth] for depth in sorted(depths, reverse=True))
    return (deepest, sum(count for _, count in order.own), *others)
