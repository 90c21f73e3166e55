"""`schedule="measure"`: the best few ways to compute an assignment are timed once, on the first
call's operands.

    as chosen without timing · sums multiplied out or not · contracted in other orders
    · in one kernel · in its best loop orders · without looking up · without a library
    · with one decision of the planner's log the other way

Those that lead to the same steps are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import inf
from time import perf_counter

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.planner_request import open_goal
from taco_py.compiler.concrete.terms import Term, map_terms, reductions, split_terms, sums_outside
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.order.orders import Ranked, ranked_orders
from taco_py.compiler.schedule.commands import Reorder
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.algebra.contraction_trees import simple_trees
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.algebra.products import as_product, flatten
from taco_py.planner.ir.goal import Request, draft_of, statistics
from taco_py.planner.ir.log import Entry, Log
from taco_py.planner.ir.nodes import Operand, Step
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, program_of
from taco_py.planner.rules.forms.multiply_out import cost_of

ORDERS = 4
"""Loop orders of one kernel that are timed."""
REVERSED = 4
"""Decisions of the planner that are tried the other way."""
REPEATS = 3
SLOWER, LEAST = 10.0, 1e-3
"""What is expected to take so many times longer than the plan itself, and than so many seconds, is
not tried; nor tried again what did."""
PATIENCE, TIMES = 5.0, 20.0
"""Nothing new is tried after so many seconds, compiling included, and so many times what the plan
itself takes."""
PLAIN = "as it is chosen without timing"


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to compute an assignment, what it is called, and the seconds it is expected to take."""

    settings: CallOptions
    label: str = PLAIN
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Tried:
    """A choice by its name, with the seconds that it took, or why it was not timed."""

    label: str
    seconds: float | None
    why: str = ""


# ---------------------------------------------------------------- candidates


def alternatives(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    type: TensorType,
    settings: CallOptions,
    log: Log,
) -> tuple[Choice, ...]:
    """Return other ways to compute an assignment; none where the user said which operands are
    contracted in turn.

    log  of the plan that is chosen without timing
    """
    if settings.path is not None:
        return ()
    assignment = normal_form(assignment, operands)
    request = open_goal(settings, type)
    found = [*_forms(assignment, operands, request, settings)]
    found.append(
        Choice(replace(settings, look_up=False), "in loops that walk all operands together")
    )
    if settings.libraries:
        found.append(Choice(replace(settings, libraries=False), "without a library's routine"))
    if not any(len(set(a.indices)) < len(a.indices) for a in accesses(assignment)):
        found += chain(
            contractions(assignment, operands, request, settings),
            _loops(assignment, operands, request, settings),
        )
    return (*found, *_reversed(log, settings, request.machine))


def _reversed(log: Log, settings: CallOptions, machine: Machine) -> Iterator[Choice]:
    """Yield the other outcome of each comparison of prices, the closest first."""
    ranked = sorted(log.decisions.items(), key=lambda item: _ratio(item[1]))
    for (rule, target, number), entry in ranked[:REVERSED]:
        price = (entry.before if entry.accepted else entry.after) or inf
        again = f", decision {number + 1}" if number else ""
        label = f"{'without' if entry.accepted else 'with'} {rule} for {target}{again}"
        changed = replace(settings, reversed=frozenset(((rule, target, number),)))
        yield Choice(changed, label, price * machine.step_seconds)


def _ratio(entry: Entry) -> float:
    """Count how many times dearer the outcome is that was not taken."""
    taken, other = entry.before or inf, entry.after or inf
    if entry.accepted:
        taken, other = other, taken
    return other / taken


def _forms(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, settings: CallOptions
) -> Iterator[Choice]:
    """Yield sums in products multiplied out, or as they are written, and in the types that are."""
    if not settings.contract:
        return
    programs = {
        forms: program_of(assignment, operands, replace(request, forms=forms), Options())
        for forms in (False, True)
    }
    written, multiplied = (program.steps for program, _ in programs.values())
    if written == multiplied:
        return
    for forms, label in ((False, "sums as they are written"), (True, "sums multiplied out")):
        yield Choice(
            replace(settings, forms=forms),
            label,
            cost_of(*programs[forms]) * request.machine.step_seconds,
        )


def contractions(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, settings: CallOptions
) -> Iterator[Choice]:
    """Yield contractions of a product in turn, in other orders than the plan's."""
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    value = map_terms(assignment.value, lambda each: flatten(each, dtypes))
    (term, *more) = split_terms(value)
    product = as_product(term.body, dtypes)
    if more or product is None or not settings.contract or any(reductions(term.body)):
        return
    tensors = replace(product, factors=tuple(f for f in product.factors if free_indices(f)))
    if len(tensors.factors) > 2:
        stats = statistics(assignment, operands, request.machine)
        for tree in simple_trees(stats, tensors, assignment.target.indices):
            steps = ", ".join(f"({','.join(map(str, step))})" for step in tree.path)
            label = f"in {'pairs' if tree.most == 2 else 'steps'} {steps}"
            yield Choice(
                replace(settings, path=tree.path), label, tree.cost * request.machine.step_seconds
            )


def _loops(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, settings: CallOptions
) -> Iterator[Choice]:
    """Yield one kernel, and one in each of its best loop orders: of several terms those of one are
    exchanged, and the others keep their best."""
    whole = sums_outside(assignment)
    stats = statistics(whole, operands, request.machine)
    problem = draft_of(whole, operands, request)
    terms = _alike(whole)
    ranked = {key: ranked_orders(problem, term, stats, ORDERS) for key, term in terms.items()}
    if not all(ranked.values()):
        return
    best = {key: orders[0] for key, orders in ranked.items()}
    one, step = replace(settings, contract=False), request.machine.step_seconds
    least = sum(found.cost for found in best.values())
    yield Choice(replace(one, forms=False), "in one kernel", least * step)
    combined = dict.fromkeys(
        tuple({**best, key: order}.values()) for key, orders in ranked.items() for order in orders
    )
    for orders in combined:
        commands = _reordering(orders)
        if commands:
            cost = sum(found.cost for found in orders)
            told = "; ".join(",".join(found.order) for found in orders)
            schedule = Schedule(commands)
            yield Choice(replace(one, schedule=schedule), f"loops {told}", cost * step)


def _alike(whole: Assignment) -> dict[frozenset[str], Term]:
    """Return one of the terms with each set of loops, which commands cannot tell from the
    others."""
    kept = whole.target.indices
    found: dict[frozenset[str], Term] = {}
    for term in split_terms(whole.value):
        own = (i for a in accesses(term.body) for i in a.indices)
        found.setdefault(frozenset((*kept, *own)), term)
    return found


def _reordering(orders: Iterable[Ranked]) -> tuple[Reorder, ...]:
    """Return a command for each order of more than one loop, those of the fewest first."""
    named = sorted(dict.fromkeys(found.order for found in orders), key=len)
    return tuple(Reorder(order) for order in named if len(order) > 1)


# ---------------------------------------------------------------- timing


def different(
    choices: Iterable[Choice], plan: Callable[[CallOptions], Plan]
) -> Iterator[tuple[Choice, str]]:
    """Yield the choices that lead to other steps than those before them, and all that are refused,
    with the reason; "" for those that can be timed."""
    met: set[tuple[Step, ...]] = set()
    for choice in choices:
        try:
            steps = plan(choice.settings).steps
        except ScheduleError as error:
            yield choice, f"refused: {error.message}"
            continue
        if steps not in met:
            met.add(steps)
            yield choice, ""


def fastest(
    plain: CallOptions,
    others: Iterable[Choice],
    attempt: Callable[[CallOptions], None],
    plan: Callable[[CallOptions], Plan],
) -> tuple[CallOptions, tuple[Tried, ...]]:
    """Return the settings whose attempts take the least time, `plain` unless others are faster; and
    what was timed.

    Those that are refused, or expected to be much slower than `plain`, are passed over, and so is
    what is left when time is over; each is run once before it is timed, they take turns, and one
    that is much slower has had its last.
    """
    begin = perf_counter()
    told: dict[str, str] = {}
    labels = {plain: PLAIN}
    times: dict[CallOptions, float] = {}
    for choice, refused in different((Choice(plain), *others), plan):
        label = choice.label
        limit = SLOWER * max(LEAST, times.get(plain, inf))
        if refused or choice.seconds > limit:
            told[label] = refused or f"expected to take {choice.seconds:.2g} s"
            continue
        over = max(PATIENCE, TIMES * times.get(plain, 0.0))
        if perf_counter() - begin > over:
            told[label] = f"the {over:.2g} s for trying others were over, for what follows too"
            break
        try:
            attempt(choice.settings)
        except ScheduleError as error:
            told[label] = f"refused: {error.message}"
            continue
        labels[choice.settings] = label
        times[choice.settings] = inf
        if choice.settings == plain:
            times[plain] = _seconds(attempt, plain)
    for _ in range(REPEATS):
        limit = SLOWER * max(LEAST, min(times.values()))
        for settings, best in times.items():
            if best <= limit or best == inf:
                times[settings] = min(best, _seconds(attempt, settings))
    timed = (Tried(labels[settings], seconds) for settings, seconds in times.items())
    passed = (Tried(label, None, why) for label, why in told.items())
    return min(times, key=lambda choice: times[choice]), (*timed, *passed)


def _seconds(attempt: Callable[[CallOptions], None], settings: CallOptions) -> float:
    begin = perf_counter()
    attempt(settings)
    return perf_counter() - begin
