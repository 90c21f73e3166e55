"""What programs are expected to cost, in steps (`cost.machine`): nothing is rewritten here.

    T[k] = sum(j, B[k,j] * x[j]);  y[i] = sum(k, A[i,k] * T[k])
    → the loops and copies of both kernels, and what it takes to write and read T

A search compares many programs; each price is found once and kept in the memo of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf, prod

import numpy as np

from taco_py.compiler.concrete.concretize import repeated
from taco_py.compiler.concrete.inner_sums import distinct
from taco_py.compiler.concrete.terms import Term, reductions, split_terms, summed
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.order.loop_costs import copying
from taco_py.compiler.order.orders import best_order, known_steps, needs_copy
from taco_py.compiler.order.steps import loops_of
from taco_py.compiler.ways.way import Question
from taco_py.compiler.ways.ways import seconds
from taco_py.language.legal.absent import fill_of, same
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Assignment, Call, Literal, Reduce
from taco_py.language.notation.operators import ADD, CORRECTED, FILLED
from taco_py.language.problem import Problem
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import draft_of
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program

KernelCost = Callable[[Program, Assignment, Context], float]


def price(program: Program, context: Context, kernel: KernelCost, limit: float = inf) -> float:
    """Return the price of a program: its kernels, and keeping what they hand to each other.

    kernel  the price of one kernel
    limit   the price is infinite where temporaries and the kernels that make them cost more
    """
    total = 0.0
    one, *others = _of_each_result(program)
    for step in program.temporaries:
        total += keeping(program.facts[step.target], context.goal.machine)
        if total <= limit:
            total += kernel(one, _of_most(step.assignment), context)
        if total > limit:
            return inf
    return total + sum(kernel(each, _of_most(each.last), context) for each in (one, *others))


def _of_each_result(program: Program) -> list[Program]:
    """Return the program as one of each result."""
    if len(program.results) == 1:
        return [program]
    return [replace(program, results=(result,)) for result in program.results]


def _of_most(assignment: Assignment) -> Assignment:
    """What is computed of most elements: `e + least` of corrected(e, least, again)."""
    match assignment.value:
        case Call(operator, (found, least, _)) if operator == CORRECTED:
            return replace(assignment, value=Call(ADD, (found, least)))
    return assignment


def keeping(facts: Operand, machine: Machine) -> float:
    """Return the price of keeping a temporary beside the loops that write and read it: its elements
    and, where it stores coordinates, those of each block."""
    form = facts.type.format
    if is_full(form):
        return machine.copies.dense_temporary_element_steps * facts.stored
    block = prod(form.stored(facts.shape)[form.depth :])
    elements = machine.copies.dense_temporary_element_steps * facts.stored if block > 1 else 0.0
    return elements + machine.copies.temporary_entry_steps * facts.stored / max(block, 1)


def merging(program: Program, context: Context) -> float:
    """Return the price of merging the terms of a sparse result, beside the loops of each."""
    assignment = program.last
    terms = split_terms(assignment.value)
    if len(terms) < 2 or is_full(program.result_type.format):
        return 0.0
    kept, stats = assignment.target.indices, context.statistics(program, assignment.value)
    each = context.goal.machine.loops.merge_steps
    return each * sum(result_size(stats, summed(t.body, t.reduced), kept) for t in terms)


def loops_price(program: Program, problem: Problem, context: Context) -> float:
    """Return the price of the best loops of one kernel of a program, with the copies that they
    need."""
    value = problem.assignment.value
    stats = context.statistics(program, value)
    terms = (as_sum(problem, term) for term in split_terms(value))
    return sum(term_cost(problem, term, stats, context.effort) for term in terms)


def as_sum(problem: Problem, term: Term) -> Term:
    """Return the sum whose loops cost what those of a reduction by another operator do: over what
    makes a difference to that."""
    if term.operator.additive:
        return term
    full = {name for name, type in problem.operands if is_full(type.format)}
    fill = fill_of(term.body, lambda access: None if access.tensor in full else 0)
    nothing = term.operator.identity_of(np.dtype(problem.result.dtype))
    restricted = nothing is not None and same(fill, nothing)
    body = Call(FILLED, (term.body, Literal(0))) if restricted else term.body
    return replace(term, body=body, operator=ADD)


def meets_again(problem: Problem) -> bool:
    """Tell whether the loops of a term come to an element of the result more than once."""
    return any(repeated(problem, term) for term in split_terms(problem.assignment.value))


def way_price(program: Program, assignment: Assignment, context: Context) -> float | None:
    """Return the price of a kernel in the way that it is made; None where that is the price of
    loops."""
    request = context.request(program, assignment.target.tensor)
    problem = draft_of(assignment, program.facts, request)
    question = Question(
        problem, lambda: context.statistics(program, assignment.value), context.goal.libraries
    )
    found = seconds(question)
    return None if found is None else found / context.goal.machine.step_seconds


# ---------------------------------------------------------------- loops of one term


def term_cost(problem: Problem, term: Term, stats: Statistics, effort: Effort) -> float:
    """What the best loops of a term cost: around all its inner sums those that they need, and
    inside these each sum's own beside the others'."""
    best = best_order(problem, term, stats, effort)
    inner_sums = distinct(reductions(term.body))
    if not inner_sums:
        return best.cost
    needed = {i for sum_ in inner_sums for i in free_indices(sum_)}
    places = [place for place, index in enumerate(best.order) if index in needed]
    around = best.order[: max(places, default=-1) + 1]
    inner = best.order[len(around) :]
    own = [{i for a in accesses(sum_) for i in a.indices} for sum_ in inner_sums]
    steps = known_steps(problem, term, stats, effort)
    rest = [i for i in inner if not any(i in indices for indices in own)]
    beside = steps.nest(around, rest)
    kept = takewhile(problem.assignment.target.indices.__contains__, around)
    shared = sum(1 for _ in kept)  # loops over the result's indices are around all sums
    for sum_, indices in zip(inner_sums, own, strict=True):
        group = [i for i in inner if i in indices]
        depth = max((around.index(i) + 1 for i in free_indices(sum_)), default=0)
        alone = _alone(problem, sum_, stats, effort, around[: max(depth, shared)], group)
        beside += min(steps.nest(around, group), alone)
    return best.cost - steps.nest(around, inner) + beside


def _alone(
    problem: Problem,
    sum_: Reduce,
    stats: Statistics,
    effort: Effort,
    around: Sequence[str],
    group: Sequence[str],
) -> float:
    """What an inner sum's own loops cost inside those that it depends on. They run where its body
    is stored, whatever is added to it: in sum(i, sum(j, A[i,j] * x[j]) + s) over A's entries."""
    body = Term(False, (), sum_.body)
    known, _ = loops_of(problem, body)
    others = stats.volume(index for index in around if index not in known)
    return others * known_steps(problem, body, stats, effort).nest(around, group)


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
        copying(stats, a)
        for a in dict.fromkeys(accesses(term.body) if among is None else among)
        if needs_copy(problem, term, a, order)
    )
