"""`schedule="measure"`: the best few schedules are timed once, on the first call's operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from time import perf_counter

from taco_py.api.arguments import Settings
from taco_py.autoschedule.orders import ranked_orders
from taco_py.concrete.terms import reductions, split_terms
from taco_py.diagnostics.errors import ScheduleError
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Assignment
from taco_py.plan.nodes import Operand
from taco_py.plan.request import Request, draft_of, statistics
from taco_py.problem import TensorType
from taco_py.schedule.commands import Reorder
from taco_py.schedule.schedule import Schedule

ORDERS = 4
"""Loop orders of one kernel that are timed."""
REPEATS = 3


def alternatives(
    assignment: Assignment, operands: Mapping[str, Operand], type: TensorType, settings: Settings
) -> tuple[Settings, ...]:
    """Other ways to compute the assignment: in one kernel, and in its best loop orders; none where
    the user said which operands are contracted in turn."""
    if settings.path is not None:
        return ()
    whole = replace(settings, contract=False)
    orders = _orders(assignment, operands, type)
    return (whole, *(replace(whole, schedule=Schedule((Reorder(order),))) for order in orders))


def _orders(
    assignment: Assignment, operands: Mapping[str, Operand], type: TensorType
) -> tuple[tuple[str, ...], ...]:
    """The best loop orders of an assignment of one term, whose sums stand around it."""
    terms = split_terms(assignment.value)
    repeated = any(len(set(a.indices)) < len(a.indices) for a in accesses(assignment))
    if len(terms) > 1 or repeated or any(True for _ in reductions(terms[0].body)):
        return ()
    problem = draft_of(assignment, operands, Request(type))
    ranked = ranked_orders(problem, terms[0], statistics(assignment, operands), ORDERS)
    return tuple(found.order for found in ranked if len(found.order) > 1)


def fastest(choices: Iterable[Settings], attempt: Callable[[Settings], None]) -> Settings:
    """The choice whose attempts take the least time; those that are refused are passed over.

    The first is taken unless another is faster; each is run once before it is timed, and they take
    turns.
    """
    times: dict[Settings, float] = {}
    for choice in choices:
        try:
            attempt(choice)
        except ScheduleError:
            continue
        times.setdefault(choice, inf)
    for _ in range(REPEATS):
        for choice in times:
            begin = perf_counter()
            attempt(choice)
            times[choice] = min(times[choice], perf_counter() - begin)
    return min(times, key=lambda choice: times[choice])
