"""The order of instances inside a tile, and the innermost loop.

Inside a tile any order is possible that is legal for the full nest. Candidates begin with some
planes of the band, then the statements in turn, then the remaining loops of each statement, the
innermost being the one that suits vectors best:

    planes k, i, j of LU        k; S1: i; S0: i, j; S2: i, j

The candidate of the best scores (Algorithm 2 of Narasimhan et al. 2021) that ISL finds legal is
chosen; the original order always is legal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import log2

from codegen.records import dataclass
from polyhedral.affine import Affine, affine, variable
from polyhedral.band_schedule import Row, Schedule, original
from polyhedral.isl.bands import Component
from polyhedral.isl.nest_relations import Relations, keeps_order
from polyhedral.model import Mode, Nest, Statement
from polyhedral.nests.directions import introduced, ranges
from polyhedral.nests.tile_size import advances_by_one, changes

CANDIDATES = 12
"""The number of orders whose legality ISL checks."""

LONG, SHORTEST = 64, 4
"""The iterations of a row above, and below, which its score does not change."""
OCTAVE = 0.75
"""The loss of score of an access for each halving of LONG: a contiguous row of any length is better
than one of SHORTEST (2 to 4 an access), and that is still better than a longer strided one
(-16)."""


@dataclass(frozen=True, slots=True)
class PointOrder:
    """Rows of each statement of a component, for inside a tile.

    private_loops  the number of last loops of each statement that no other statement shares
    planes         the planes that come first; None for the original order
    """

    rows: tuple[tuple[str, tuple[Row, ...]], ...]
    private_loops: tuple[tuple[str, int], ...]
    planes: tuple[int, ...] | None

    def innermost(self, statement: str) -> str | None:
        """Return the innermost loop of `statement`."""
        names = [row.name for row in dict(self.rows)[statement] if row.name]
        return names[-1] if names else None


@dataclass(frozen=True, slots=True)
class Sized:
    """A nest, and the most iterations of its loops, by statement and loop."""

    nest: Nest
    iterations: Mapping[str, Mapping[str, int]]


def sized(nest: Nest, values: Mapping[str, int]) -> Sized:
    """Return `nest` with parameters that have these `values`."""
    return Sized(
        nest,
        {
            statement.name: {
                name: high - low + 1 for name, (low, high) in ranges(statement, values).items()
            }
            for statement in nest.statements
        },
    )


def choose_order(
    relations: Relations, sized_nest: Sized, parts: Sequence[Component], component: Component
) -> PointOrder:
    """Return the best order of the instances of `component` inside a tile.

    It is one of `parts`, which run one after the other; the order is legal everywhere.
    """
    nest = sized_nest.nest
    original_order = as_written(nest, component)
    best = _score(sized_nest, original_order)
    candidates = {candidate.rows: candidate for candidate in _candidates(sized_nest, component)}
    ranked = sorted(candidates.values(), key=lambda order: _score(sized_nest, order), reverse=True)
    for candidate in ranked[:CANDIDATES]:
        if _score(sized_nest, candidate) <= best:
            break
        if keeps_order(relations, _schedule(nest, parts, candidate)):
            return candidate
    return original_order


def as_written(nest: Nest, component: Component) -> PointOrder:
    """Return the order of the text, restricted to the statements of `component`."""
    rows = original(nest)
    return PointOrder(
        tuple((name, rows.of(name)) for name in component.statements),
        tuple((name, _private_loops(nest.statement(name), nest)) for name in component.statements),
        None,
    )


def _private_loops(statement: Statement, nest: Nest) -> int:
    rest = (sibling for sibling in nest.statements if sibling is not statement)
    return len(statement.loops) - max(
        (statement.shared_loops(sibling) for sibling in rest), default=0
    )


def _schedule(nest: Nest, parts: Sequence[Component], order: PointOrder) -> Schedule:
    """Return `order` for its statements, and the original order for the others."""
    original_order, rows = original(nest), dict(order.rows)
    return padded(
        {
            name: (Row("", affine(place)), *rows.get(name, original_order.of(name)))
            for place, part in enumerate(parts)
            for name in part.statements
        }
    )


def padded(rows: Mapping[str, tuple[Row, ...]]) -> Schedule:
    """Return a schedule of rows of different lengths, padded by 0."""
    longest = max(map(len, rows.values()))
    fill = Row("", affine(0))
    return Schedule(
        tuple(
            (name, (*present, *(fill,) * (longest - len(present))))
            for name, present in rows.items()
        )
    )


# ---------------------------------------------------------------- candidates


def _candidates(sized_nest: Sized, component: Component) -> Iterator[PointOrder]:
    yield _rearranged(sized_nest, component)
    nest = sized_nest.nest
    deepest = max(len(nest.statement(name).loops) for name in component.statements)
    for depth in range(deepest):
        yield _distributed(sized_nest, component, depth)
    yield from _along_planes(sized_nest, component, component.statements)
    text = tuple(
        statement.name for statement in nest.statements if statement.name in component.statements
    )
    if text != component.statements:
        yield from _along_planes(sized_nest, component, text)


def _rearranged(sized_nest: Sized, component: Component) -> PointOrder:
    """Return the original order, with the private loops of each statement in their best order."""
    nest = sized_nest.nest
    original_order = as_written(nest, component)
    private_loops = dict(original_order.private_loops)
    rows = {}
    for name, original_rows in original_order.rows:
        statement, shared = (
            nest.statement(name),
            len(nest.statement(name).loops) - private_loops[name],
        )
        inner = _best_order(sized_nest, statement, statement.variables[shared:])
        rows[name] = (
            *original_rows[: 2 * shared + 1],
            *(Row(loop, variable(loop)) for loop in inner),
        )
    return PointOrder(tuple(rows.items()), original_order.private_loops, ())


def _distributed(sized_nest: Sized, component: Component, depth: int) -> PointOrder:
    """Return the original order down to `depth` loops; below, the statements in turn."""
    nest = sized_nest.nest
    original_order = original(nest)
    rows: dict[str, tuple[Row, ...]] = {}
    private_loops: dict[str, int] = {}
    text = [part.name for part in sorted(nest.statements, key=lambda part: part.order)]
    for name in component.statements:
        statement = nest.statement(name)
        rest = _best_order(sized_nest, statement, statement.variables[depth:])
        shared_rows = 2 * (len(statement.loops) - len(rest))
        place = Row("", affine(text.index(name)))
        rows[name] = (
            *original_order.of(name)[:shared_rows],
            place,
            *(Row(n, variable(n)) for n in rest),
        )
        private_loops[name] = len(rest)
    return PointOrder(tuple(rows.items()), tuple(private_loops.items()), ())


def _along_planes(
    sized_nest: Sized, component: Component, statements: Sequence[str]
) -> Iterator[PointOrder]:
    """Yield orders with some planes first, then `statements` in this order."""
    planes = dict(component.planes)
    width = len(component.parallel)
    for count in range(width + 1):
        for plane_order in permutations(range(width), count):
            rows = {
                name: _candidate_rows(
                    sized_nest,
                    sized_nest.nest.statement(name),
                    [planes[name][at] for at in plane_order],
                    place,
                )
                for place, name in enumerate(statements)
            }
            complete = {
                name: candidate for name, candidate in rows.items() if candidate is not None
            }
            if len(complete) == len(rows):
                yield PointOrder(
                    tuple((name, candidate[0]) for name, candidate in complete.items()),
                    tuple((name, candidate[1]) for name, candidate in complete.items()),
                    plane_order,
                )


def _candidate_rows(
    sized_nest: Sized, statement: Statement, planes: Sequence[Affine], place: int
) -> tuple[tuple[Row, ...], int] | None:
    """Return `planes`, then the number of the statement, then its other loops; and their number."""
    names = introduced(planes, statement.variables)
    if names is None:
        return None
    rest = _best_order(
        sized_nest, statement, [name for name in statement.variables if name not in names]
    )
    outer = [
        Row(name or f"c{at}", plane)
        for at, (name, plane) in enumerate(zip(names, planes, strict=True))
    ]
    inner = [Row(name, variable(name)) for name in rest]
    return (*outer, Row("", affine(place)), *inner), len(rest)


def _best_order(sized_nest: Sized, statement: Statement, loops: Sequence[str]) -> tuple[str, ...]:
    """Return `loops`, innermost the one that suits vectors best."""
    if not loops:
        return ()
    sizes = sized_nest.iterations[statement.name]
    vector = max(reversed(loops), key=lambda name: loop_score(statement, name, sizes[name]))
    return (*(name for name in loops if name != vector), vector)


# ---------------------------------------------------------------- scores


def loop_score(statement: Statement, loop: str, iterations: int) -> float:
    """Return the suitability of `loop` as the innermost loop.

    2 for an access that advances by one element, 4 for one that is invariant, -16 for any other;
    OCTAVE less for each time that `iterations` must be doubled to be LONG, for short rows fill no
    vectors.
    """
    short = OCTAVE * log2(LONG / min(LONG, max(iterations, SHORTEST)))
    total = 0.0
    for access in statement.accesses:
        weight = 2 if access.mode is Mode.UPDATE else 1
        if not changes(access, loop):
            total += (4 - short) * weight
        else:
            total += weight * ((2 if advances_by_one(access, loop) else -16) - short)
    return total


def _score(sized_nest: Sized, order: PointOrder) -> tuple[float, ...]:
    """Return the scores of an order, for lexicographic comparison.

    They are those of the innermost loops of the deepest statements, the number of private loops,
    and those of the other statements.
    """
    nest = sized_nest.nest
    depths = {len(nest.statement(name).loops): 0.0 for name, _ in order.rows}
    for name, _ in order.rows:
        statement, loop = nest.statement(name), order.innermost(name)
        if loop in statement.variables:
            iterations = sized_nest.iterations[name][loop]
            depths[len(statement.loops)] += loop_score(statement, loop, iterations)
    deepest, *rest = (depths[depth] for depth in sorted(depths, reverse=True))
    return (deepest, sum(count for _, count in order.private_loops), *rest)
