"""`schedule="measure"`: the best few schedules are timed once, on the first call's operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import numpy as np

from taco_py.api.arguments import Settings
from taco_py.autoschedule.orders import ranked_orders
from taco_py.concrete.terms import Term, map_terms, reductions, split_terms
from taco_py.cost.estimate import Statistics
from taco_py.cost.machine import STEP
from taco_py.diagnostics.errors import ScheduleError
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.nodes import Assignment
from taco_py.plan.nodes import Operand
from taco_py.plan.paths import simple_trees
from taco_py.plan.products import as_product, flatten
from taco_py.plan.request import Request, draft_of, statistics
from taco_py.problem import TensorType
from taco_py.schedule.commands import Reorder
from taco_py.schedule.schedule import Schedule

ORDERS = 4
"""Loop orders of one kernel that are timed."""
REPEATS = 3
SLOWER, LEAST = 10.0, 1e-3
"""What is expected to take so many times longer than the plan itself, and than so many seconds, is
not tried; nor tried again what did."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to compute an assignment, and the seconds it is expected to take."""

    settings: Settings
    seconds: float = 0.0


def alternatives(
    assignment: Assignment, operands: Mapping[str, Operand], type: TensorType, settings: Settings
) -> tuple[Choice, ...]:
    """Other ways to compute an assignment of one term: in pairs of other orders, in one kernel, and
    in its best loop orders; none where the user said which operands are contracted in turn."""
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    value = map_terms(assignment.value, lambda each: flatten(each, dtypes))
    assignment = replace(assignment, value=value)
    (term, *more) = split_terms(value)
    repeated = any(len(set(a.indices)) < len(a.indices) for a in accesses(assignment))
    if settings.path is not None or more or repeated or any(True for _ in reductions(term.body)):
        return ()
    stats = statistics(assignment, operands)
    problem = draft_of(assignment, operands, Request(type))
    ranked = ranked_orders(problem, term, stats, ORDERS)
    whole = replace(settings, contract=False)
    kernels = (
        Choice(replace(whole, schedule=Schedule((Reorder(found.order),))), found.cost * STEP)
        for found in ranked
        if len(found.order) > 1
    )
    least = min((found.cost for found in ranked), default=0.0)
    return (*_pairs(assignment, term, stats, settings), Choice(whole, least * STEP), *kernels)


def _pairs(
    assignment: Assignment, term: Term, stats: Statistics, settings: Settings
) -> Iterator[Choice]:
    """Contractions of a product in pairs, in other orders than the plan's."""
    product = as_product(term.body)
    if product is None:
        return
    tensors = replace(product, factors=tuple(f for f in product.factors if free_indices(f)))
    if len(tensors.factors) > 2:
        for tree in simple_trees(stats, tensors, assignment.target.indices):
            yield Choice(replace(settings, path=tree.path), tree.cost * STEP)


def fastest(
    plain: Settings, others: Iterable[Choice], attempt: Callable[[Settings], None]
) -> Settings:
    """The settings whose attempts take the least time: `plain` unless others are faster.

    Those that are refused, or expected to be much slower than `plain`, are passed over; each is run
    once before it is timed, they take turns, and one that is much slower has had its last.
    """

    def seconds(choice: Settings) -> float:
        begin = perf_counter()
        attempt(choice)
        return perf_counter() - begin

    attempt(plain)
    times = {plain: seconds(plain)}
    for other in others:
        if other.seconds <= SLOWER * max(LEAST, times[plain]):
            with suppress(ScheduleError):
                attempt(other.settings)
                times.setdefault(other.settings, inf)
    for _ in range(REPEATS):
        limit = SLOWER * max(LEAST, min(times.values()))
        for choice, best in times.items():
            if best <= limit or best == inf:
                times[choice] = min(best, seconds(choice))
    return min(times, key=lambda choice: times[choice])
