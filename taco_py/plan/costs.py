"""What kernels are expected to cost, and several in turn with the temporaries between them.

    T[k] = sum(j, B[k,j] * x[j]);  y[i] = sum(k, A[i,k] * T[k])
    → the loops and copies of both, and what it takes to write and read T

A plan compares many ways to compute the same; what a kernel costs is found once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from taco_py.autoschedule.effort import Effort
from taco_py.autoschedule.loop_costs import copying
from taco_py.autoschedule.orders import best_order, needs_copy
from taco_py.concrete.terms import Term, split_terms
from taco_py.cost.estimate import Statistics
from taco_py.cost.machine import DENSE_TEMPORARY, TEMPORARY
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Assignment
from taco_py.plan.nodes import Operand
from taco_py.plan.request import Request, draft_of
from taco_py.plan.splitter import Splitter
from taco_py.problem import Problem


def in_turn(
    made: Sequence[Operand],
    kernels: Sequence[Callable[[Request], float]],
    request: Request,
    keep: Callable[[Operand], float],
    limit: float = inf,
) -> float:
    """What kernels cost together of which all but the last make temporaries; infinite where these
    alone cost more than a limit.

    kernels  what each costs, with what is wanted of it
    keep     what it costs to keep a temporary
    """
    total = 0.0
    *before, last = kernels
    for temporary, cost in zip(made, before, strict=True):
        total += keep(temporary)
        if total <= limit:
            total += cost(replace(request, type=temporary.type))
        if total > limit:
            return inf
    return total + last(request)


def chain_cost(
    splitter: Splitter, parts: Sequence[Assignment], last: Assignment, limit: float = inf
) -> float:
    """What kernels cost in their best orders, of which the last reads temporaries of the others."""
    made = [splitter.operands[part.target.tensor] for part in parts]
    kernels = [partial(best_cost, splitter, part) for part in (*parts, last)]
    return in_turn(made, kernels, splitter.request, keeping, limit)


def keeping(made: Operand) -> float:
    """What it costs to keep a temporary, beside the loops that write and read it."""
    return (DENSE_TEMPORARY if made.type.format.is_dense else TEMPORARY) * made.stored


def best_cost(splitter: Splitter, assignment: Assignment, request: Request) -> float:
    """What the best loop orders of one kernel cost, copies included."""

    def find() -> float:
        stats = splitter.statistics(assignment.value)
        problem = draft_of(assignment, splitter.operands, request)
        return sum(
            best_order(problem, term, stats, request.effort).cost
            for term in split_terms(assignment.value)
        )

    return request.effort.once((best_cost, request.type, *splitter.key(assignment)), find)


def copy_cost(
    stats: Statistics,
    problem: Problem,
    term: Term,
    effort: Effort,
    among: Sequence[Access] | None = None,
) -> float:
    """What the copies cost that the term's best order needs, of all operands or those `among`."""
    order = best_order(problem, term, stats, effort).order
    return sum(
        copying(stats.patterns[a.tensor])
        for a in dict.fromkeys(accesses(term.body) if among is None else among)
        if needs_copy(problem, term, a, order)
    )
