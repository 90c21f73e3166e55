"""Choose the tiles of a band and say why.

The plan of a matrix product, for a cache of 1 MiB, prints as

    tile i, j, k by 80, 512, 144; j innermost
      permutable: no dependence goes backwards along i, j, k
      innermost: j, for the scores i -44, j 18, k -6
      reuse: i 1, j 1, k 2
      footprint: C: T_i * T_j; A: T_i * T_k; B: T_k * T_j
      tau = 76: 1026688 of 1048576 bytes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from polyhedral.dependence import Dependence, dependences
from polyhedral.errors import BudgetExceededError, ScheduleError
from polyhedral.footprint import Footprint, footprints, total_bytes
from polyhedral.isl.limits import BUDGET
from polyhedral.legality import check_band, check_reduction
from polyhedral.model import Access, Nest, Statement
from polyhedral.schedule import Schedule, original, permute
from polyhedral.tile import tile
from polyhedral.tile_size import Cache, Solution, reuse_counts, solve, vector_scores
from polyhedral.traffic import bytes_into, told


@dataclass(frozen=True, slots=True)
class TilePlan:
    """What to do with the band `loops`.

    sizes    of the tiles, by loop; empty when the band is not to be tiled
    points   the order of the loops inside a tile, or of the band itself when it is not tiled
    traffic  predicted bytes that move into the cache, where all extents are known
    reasons  how the plan came about, a line each
    levels   the same for each of the question's caches
    """

    loops: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...]
    points: tuple[str, ...]
    traffic: float | None
    reasons: tuple[str, ...]
    levels: tuple[float, ...] = ()

    @property
    def tiles(self) -> bool:
        return bool(self.sizes)

    def schedule(self, nest: Nest) -> Schedule:
        """The plan as an order of `nest`, the nest it was made for."""
        if self.points == self.loops and not self.sizes:
            return original(nest)
        levels = [dict(self.sizes)] if self.sizes else []
        return tile(nest, self.loops, *levels, points=self.points)

    def __str__(self) -> str:
        names, sizes = zip(*self.sizes, strict=True) if self.sizes else ((), ())
        tiled = f"tile {', '.join(names)} by {', '.join(map(str, sizes))}"
        head = f"{tiled if self.sizes else 'do not tile'}; {self.points[-1]} innermost"
        moved = [] if self.traffic is None else [f"traffic: {round(self.traffic)} bytes"]
        moved = [told(self.levels)] if self.levels else moved
        return "\n  ".join([head, *self.reasons, *moved])


@dataclass(frozen=True, slots=True)
class Question:
    """A band of a nest and the cache to tile it for.

    extents        iterations of the loops, where known
    element_bytes  of the arrays, 8 where not given
    caches         bytes of all caches, the nearest first: the plan tells what moves into each
    """

    nest: Nest
    loops: tuple[str, ...]
    cache: Cache
    extents: tuple[tuple[str, int], ...] = ()
    element_bytes: tuple[tuple[str, int], ...] = ()
    caches: tuple[int, ...] = ()

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Those inside all loops of the band."""
        band = set(self.loops)
        return tuple(each for each in self.nest.statements if band <= set(each.variables))

    @property
    def accesses(self) -> tuple[Access, ...]:
        return tuple(access for each in self.statements for access in each.accesses)

    def footprints(self) -> tuple[Footprint, ...]:
        return footprints(self.accesses, self.loops, dict(self.element_bytes))


def plan_tiles(question: Question, budget: int = BUDGET) -> TilePlan:
    """Tile sizes and loop order for the band of `question`.

    The band is left as written where it is not permutable, or where ISL ran out of `budget` before
    it could tell; the plan says so.
    """
    nest, loops = question.nest, question.loops
    try:
        band, found = permute(nest, loops), dependences(nest, budget)
    except ScheduleError as error:
        return _untouched(question, f"no band: {error.message}")
    except BudgetExceededError as error:
        return _untouched(question, f"unknown: {error.message}")
    verdict = check_band(nest, band, loops, found, budget)
    if not verdict:
        return _untouched(question, f"not permutable: {verdict}")
    independent = _independent(question, band, found, budget)
    return plan_permutable(question, independent, (f"permutable: {verdict.reason}",))


def _independent(
    question: Question, band: Schedule, found: Sequence[Dependence], budget: int
) -> tuple[str, ...]:
    nest, loops = question.nest, question.loops
    return tuple(loop for loop in loops if check_reduction(nest, band, loop, found, budget))


def plan_permutable(
    question: Question, independent: Iterable[str], reasons: tuple[str, ...] = ()
) -> TilePlan:
    """As `plan_tiles`, for a band known to be permutable whose `independent` loops are known.

    Takes no answer from ISL.
    """
    loops, parts = question.loops, question.footprints()
    scores = vector_scores(question.statements, loops, independent)
    vector = max(reversed(loops), key=lambda loop: scores[loop])
    points = (*(loop for loop in loops if loop != vector), vector)
    reasons = (*reasons, f"innermost: {vector}, for the scores {_listed(scores)}")
    fitting = _fits_untiled(question, parts)
    if fitting is not None:
        moved = _traffic(question, parts, {}), _levels(question, parts, {}, points)
        return TilePlan(loops, (), points, moved[0], (*reasons, fitting), moved[1])
    reuse = reuse_counts(question.accesses, loops)
    solution = solve(parts, reuse, vector, question.cache, dict(question.extents))
    reasons = (
        *reasons,
        f"reuse: {_listed(reuse)}",
        f"footprint: {'; '.join(map(str, parts))}",
        _solved(solution, question.cache),
    )
    sizes = dict(solution.sizes)
    traffic, levels = _traffic(question, parts, sizes), _levels(question, parts, sizes, points)
    return TilePlan(loops, solution.sizes, points, traffic, reasons, levels)


def _untouched(question: Question, reason: str) -> TilePlan:
    return TilePlan(question.loops, (), question.loops, None, (reason,))


def _listed(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _solved(solution: Solution, cache: Cache) -> str:
    taken = f"{ceil(solution.taken)} of {cache.size} bytes"
    return f"tau = {solution.tau}: {taken}" if solution.tau else f"no reuse to share: {taken}"


def _fits_untiled(question: Question, parts: Sequence[Footprint]) -> str | None:
    """Why no tiles are needed: all that is used again fits into the cache.

    Arrays that change along every loop stream through and are not counted.
    """
    extents = dict(question.extents)
    if any(loop not in extents for loop in question.loops):
        return None
    band = frozenset(question.loops)
    again = [part for part in parts if not band <= part.loops]
    taken = total_bytes(again, extents, question.cache.line)
    if taken > question.cache.size:
        return None
    names = ", ".join(part.array for part in again) or "nothing"
    return (
        f"used again: {names}, {ceil(taken)} bytes, within the {question.cache.size} of the cache"
    )


def _traffic(
    question: Question, parts: Sequence[Footprint], sizes: Mapping[str, int]
) -> float | None:
    """Bytes moved into the cache: the tile of an array is loaded anew whenever a tile loop that it
    changes along, or one inside which such a loop runs, goes on."""
    extents = dict(question.extents)
    if any(loop not in extents for loop in question.loops):
        return None
    tile_sizes = {loop: sizes.get(loop, extents[loop]) for loop in question.loops}
    trips = {loop: ceil(extents[loop] / tile_sizes[loop]) for loop in question.loops}
    return sum(
        total_bytes([part], tile_sizes, question.cache.line) * _loads(part, question.loops, trips)
        for part in parts
    )


def _loads(part: Footprint, loops: Sequence[str], trips: Mapping[str, int]) -> int:
    running = [loop for loop in loops if trips[loop] > 1]
    while running and running[-1] not in part.loops:
        running.pop()
    return prod(trips[loop] for loop in running)


def _levels(
    question: Question, parts: Sequence[Footprint], sizes: Mapping[str, int], points: Sequence[str]
) -> tuple[float, ...]:
    """Bytes moved into each cache by the loops over tiles and those inside, nearest first."""
    extents = dict(question.extents)
    if any(loop not in extents for loop in question.loops):
        return ()
    over = [(loop, ceil(extents[loop] / sizes[loop])) for loop in question.loops if loop in sizes]
    inside = [(loop, sizes.get(loop, extents[loop])) for loop in points]
    line = question.cache.line
    return tuple(bytes_into(parts, (*over, *inside), cache, line) for cache in question.caches)
