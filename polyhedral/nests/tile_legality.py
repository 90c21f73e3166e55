"""The legality of a new order, a band or a parallel loop for the dependences of a nest.

The answers are exact for the sizes that a schedule has, and for every value of the parameters that
the nest's context allows. Where ISL runs out of its budget the answer is UNKNOWN, which is false.
Dependences between updates that commute are left out: the caller declared them so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from codegen.records import dataclass
from polyhedral.band_schedule import Row, Schedule
from polyhedral.errors import BudgetExceededError, ScheduleError
from polyhedral.isl.limits import BUDGET, limited
from polyhedral.isl.pairs import Pair, crossing, out_of_order
from polyhedral.model import Nest, Statement
from polyhedral.nests.dependence import Dependence

if TYPE_CHECKING:
    import islpy


class Answer(Enum):
    LEGAL = "legal"
    ILLEGAL = "illegal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated dependence, and a pair of instances as a counterexample."""

    dependence: Dependence
    source: tuple[tuple[str, int], ...]
    sink: tuple[tuple[str, int], ...]
    parameters: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        where = f" where {_values(self.parameters)}" if self.parameters else ""
        return (
            f"{self.dependence}: {self.dependence.source}({_values(self.source)}) must stay before "
            f"{self.dependence.sink}({_values(self.sink)}){where}"
        )


def _values(values: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values)


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its reason. True in a condition only when it is LEGAL."""

    answer: Answer
    reason: str
    violation: Violation | None = None

    def __bool__(self) -> bool:
        return self.answer is Answer.LEGAL

    def __str__(self) -> str:
        return f"{self.answer.value}: {self.reason}"


Sides = Sequence[tuple[Statement, Sequence[Row]]]


def check_order(
    nest: Nest, schedule: Schedule, pairs: Sequence[Dependence], budget: int = BUDGET
) -> Verdict:
    """Tell whether `schedule` runs the source of every dependence before its sink.

    `pairs` is `dependences(nest)`, here and below.
    """

    def broken(context: islpy.Context, dependence: Dependence) -> Pair | None:
        sides = _sides(nest, schedule, dependence)
        return out_of_order(context, nest, dependence.relation, sides)

    return _check(nest, _binding(pairs), broken, "every dependence stays in order", budget)


def check_parallel(
    nest: Nest, schedule: Schedule, loop: str, pairs: Sequence[Dependence], budget: int = BUDGET
) -> Verdict:
    """Tell whether the iterations of the loop called `loop` of `schedule` are independent.

    Updates of one element in different iterations are not: see `check_reduction`.
    """
    return _independent(nest, schedule, loop, pairs, budget)


def check_reduction(
    nest: Nest, schedule: Schedule, loop: str, pairs: Sequence[Dependence], budget: int = BUDGET
) -> Verdict:
    """Tell whether the iterations are independent except for updates that commute.

    Lanes then keep partial results, or updates are atomic.
    """
    return _independent(nest, schedule, loop, _binding(pairs), budget)


def check_band(
    nest: Nest,
    schedule: Schedule,
    loops: Sequence[str],
    pairs: Sequence[Dependence],
    budget: int = BUDGET,
) -> Verdict:
    """Tell whether neighbouring loops of `schedule` are permutable: none carries a dependence
    backwards.

    Then they may be tiled with any sizes and put in any order. Raises ScheduleError where other
    rows are between the loops, as in `original`.
    """
    places = [schedule.position(name) for name in loops]
    if sorted(places) != list(range(min(places), min(places) + len(places))):
        raise ScheduleError(
            f"Expected neighbouring loops, found {', '.join(loops)}.",
            "`schedule.permute` puts the loops of a band side by side",
        )

    def broken(context: islpy.Context, dependence: Dependence) -> Pair | None:
        sides = _sides(nest, schedule, dependence)
        relation, outer = dependence.relation, min(places)
        crossings = (crossing(context, nest, relation, sides, outer, at, ">") for at in places)
        return next((pair for pair in crossings if pair is not None), None)

    reason = f"no dependence goes backwards along {', '.join(loops)}"
    return _check(nest, _binding(pairs), broken, reason, budget)


def _independent(
    nest: Nest, schedule: Schedule, loop: str, pairs: Sequence[Dependence], budget: int
) -> Verdict:
    place = schedule.position(loop)

    def broken(context: islpy.Context, dependence: Dependence) -> Pair | None:
        sides = _sides(nest, schedule, dependence)
        if any(rows[place].name != loop for _, rows in sides):
            return None  # a dependence with a statement outside the loop
        return crossing(context, nest, dependence.relation, sides, place, place, "<>")

    return _check(nest, pairs, broken, f"no dependence crosses iterations of {loop}", budget)


def _binding(pairs: Sequence[Dependence]) -> list[Dependence]:
    return [dependence for dependence in pairs if not dependence.commutes]


def _sides(nest: Nest, schedule: Schedule, dependence: Dependence) -> Sides:
    names = (dependence.source, dependence.sink)
    return [(nest.statement(name), schedule.of(name)) for name in names]


def _check(
    nest: Nest,
    pairs: Sequence[Dependence],
    broken: Callable[[islpy.Context, Dependence], Pair | None],
    reason: str,
    budget: int,
) -> Verdict:
    """Return the verdict on all pairs, for which `broken` searches counterexamples."""
    try:
        with limited(budget) as context:
            for dependence in pairs:
                pair = broken(context, dependence)
                if pair is not None:
                    violation = _violation(nest, dependence, pair)
                    return Verdict(Answer.ILLEGAL, str(violation), violation)
    except BudgetExceededError as error:
        return Verdict(Answer.UNKNOWN, error.message)
    return Verdict(Answer.LEGAL, reason)


def _violation(nest: Nest, dependence: Dependence, pair: Pair) -> Violation:
    source, sink = nest.statement(dependence.source), nest.statement(dependence.sink)
    return Violation(
        dependence,
        tuple(zip(source.variables, pair.source, strict=True)),
        tuple(zip(sink.variables, pair.sink, strict=True)),
        tuple(zip(nest.parameters, pair.parameters, strict=True)),
    )
