"""Tiles of loops that the user requests by name: applied where all dependences allow it.

    tiles of i, j by 32, 8     for i: for j: S   ->   for i_tile, j_tile: for i, j in tile: S

The request is translated to an order of the nest, whose legality is checked by the dependences of
the original nest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyhedral.affine import variable
from polyhedral.band_schedule import Schedule, Tag
from polyhedral.errors import BudgetExceededError, ScheduleError
from polyhedral.isl.limits import BUDGET, limited
from polyhedral.isl.nest_relations import hold
from polyhedral.model import Nest
from polyhedral.nests.dependence import Dependence, dependences
from polyhedral.nests.tile import tile
from polyhedral.nests.tile_ends import separates_full_tiles
from polyhedral.nests.tile_legality import Answer, check_order, check_parallel
from polyhedral.programs.program_plan import ProgramPlan, finished, unchanged
from polyhedral.programs.question import ProgramQuestion


def plan_asked(
    question: ProgramQuestion, sizes: Mapping[str, int], budget: int = BUDGET
) -> ProgramPlan:
    """Return the plan of the nest with the loops in `sizes` tiled, in their order.

    The original order, with the reason, where ISL runs out of `budget`.

    Raises ScheduleError, with a pair of instances as the proof, where a dependence forbids it.
    """
    nest, loops = question.nest, tuple(sizes)
    order = tile(nest, loops, sizes)
    try:
        pairs = dependences(nest, budget)
        verdict = check_order(nest, order, pairs, budget)
        if verdict.answer is Answer.ILLEGAL:
            raise ScheduleError(
                f"Expected tiles of {', '.join(loops)} that keep every dependence, found "
                f"{verdict.reason}.",
                'tiles="auto" takes tiles along other directions where these are not possible',
            )
        if not verdict:
            return unchanged(nest, verdict.reason)
        ends, reason = _ends(nest, sizes)
        tiled = _separate(order, f"{loops[-1]}_tile") if ends else order
        shared, thread_lines = _shared(question, loops, order, pairs, budget)
        tiled = tiled.tagged(shared, Tag.PARALLEL) if shared else tiled
        reasons = (
            f"tile {', '.join(loops)} by {', '.join(map(str, sizes.values()))}",
            "  sizes: asked for",
            f"  legal: {verdict.reason}",
            f"  {reason}",
            *thread_lines,
        )
        with limited(budget) as context:
            return finished(hold(context, nest), question, dict(tiled.rows), reasons)
    except BudgetExceededError as error:
        return unchanged(nest, error.message)


def _shared(
    question: ProgramQuestion,
    loops: Sequence[str],
    order: Schedule,
    pairs: Sequence[Dependence],
    budget: int,
) -> tuple[str | None, tuple[str, ...]]:
    """Return the outermost loop over tiles whose iterations are independent.

    With a line about it, or about why there is none; nothing where there is one thread.
    """
    if not question.parallel:
        return None, ()
    reasons = []
    for name in (f"{loop}_tile" for loop in loops):
        verdict = check_parallel(question.nest, order, name, pairs, budget)
        if verdict:
            return name, (f"  threads share: {name}",)
        reasons.append(f"of {name}, {verdict.reason}")
    return None, (f"  threads share: none, for tiles wait for each other: {'; '.join(reasons)}",)


def _ends(nest: Nest, sizes: Mapping[str, int]) -> tuple[bool, str]:
    """Tell whether full tiles run in separate loops, and why."""
    *_, last = sizes
    planes = tuple(map(variable, sizes))
    inside = [statement for statement in nest.statements if set(sizes) <= set(statement.variables)]
    innermost = {
        statement.name: last if statement.variables[-1] in sizes else None for statement in inside
    }
    return separates_full_tiles(
        [(statement, planes) for statement in inside], tuple(sizes.values()), innermost
    )


def _separate(schedule: Schedule, loop: str) -> Schedule:
    """Return the same order, with separated full tiles of `loop`."""
    return Schedule(
        tuple(
            (name, tuple(replace(row, separates=row.name == loop) for row in rows))
            for name, rows in schedule.rows
        )
    )
