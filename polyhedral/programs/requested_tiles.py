"""Tiles of loops that someone asks for by name: taken where every dependence allows it.

    tiles of i, j by 32, 8     for i: for j: S   ->   for i_tile, j_tile: for i, j in tile: S

What is asked for comes first, an order of the nest; whether it is legal is found out from the
dependences of the nest as written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyhedral.affine import variable
from polyhedral.band_schedule import Schedule, Tag
from polyhedral.errors import BudgetExceededError, ScheduleError
from polyhedral.isl.held import hold
from polyhedral.isl.limits import BUDGET, limited
from polyhedral.model import Nest
from polyhedral.nests.dependence import Dependence, dependences
from polyhedral.nests.tile import tile
from polyhedral.nests.tile_ends import told_apart
from polyhedral.nests.tile_legality import Answer, check_order, check_parallel
from polyhedral.programs.program_plan import ProgramPlan, finished, unchanged
from polyhedral.programs.question import ProgramQuestion


def plan_asked(
    question: ProgramQuestion, sizes: Mapping[str, int], budget: int = BUDGET
) -> ProgramPlan:
    """Return the nest with the band of the loops in `sizes` tiled and run in their order; as
    written, with the reason, where ISL ran out of `budget`.

    Raises ScheduleError, with a pair of instances that shows it, where a dependence forbids it.
    """
    nest, loops = question.nest, tuple(sizes)
    order = tile(nest, loops, sizes)
    try:
        found = dependences(nest, budget)
        verdict = check_order(nest, order, found, budget)
        if verdict.answer is Answer.ILLEGAL:
            raise ScheduleError(
                f"Expected tiles of {', '.join(loops)} that keep every dependence, found "
                f"{verdict.reason}.",
                'tiles="auto" takes tiles along other directions where these are not possible',
            )
        if not verdict:
            return unchanged(nest, verdict.reason)
        ends, why = _ends(nest, sizes)
        chosen = _apart(order, f"{loops[-1]}_tile") if ends else order
        shared, told = _shared(question, loops, order, found, budget)
        chosen = chosen.tagged(shared, Tag.PARALLEL) if shared else chosen
        reasons = (
            f"tile {', '.join(loops)} by {', '.join(map(str, sizes.values()))}",
            "  sizes: asked for",
            f"  legal: {verdict.reason}",
            f"  {why}",
            *told,
        )
        with limited(budget) as context:
            return finished(hold(context, nest), question, dict(chosen.rows), reasons)
    except BudgetExceededError as error:
        return unchanged(nest, error.message)


def _shared(
    question: ProgramQuestion,
    loops: Sequence[str],
    order: Schedule,
    found: Sequence[Dependence],
    budget: int,
) -> tuple[str | None, tuple[str, ...]]:
    """Return the outermost loop over tiles whose iterations are independent, and a line that says
    so, or why there is none; nothing where there is one thread."""
    if not question.parallel:
        return None, ()
    why = []
    for name in (f"{loop}_tile" for loop in loops):
        verdict = check_parallel(question.nest, order, name, found, budget)
        if verdict:
            return name, (f"  threads share: {name}",)
        why.append(f"of {name}, {verdict.reason}")
    return None, (f"  threads share: none, for tiles wait for each other: {'; '.join(why)}",)


def _ends(nest: Nest, sizes: Mapping[str, int]) -> tuple[bool, str]:
    """Tell whether full tiles run apart, and why."""
    *_, last = sizes
    planes = tuple(map(variable, sizes))
    inside = [each for each in nest.statements if set(sizes) <= set(each.variables)]
    innermost = {each.name: last if each.variables[-1] in sizes else None for each in inside}
    return told_apart([(each, planes) for each in inside], tuple(sizes.values()), innermost)


def _apart(schedule: Schedule, loop: str) -> Schedule:
    """Return the same order, the full tiles of `loop` apart."""
    return Schedule(
        tuple(
            (name, tuple(replace(row, apart=row.name == loop) for row in rows))
            for name, rows in schedule.rows
        )
    )
