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

from taco_py.compiler.concrete.concretize import repeated, row_of, without_inner
from taco_py.compiler.concrete.inner_sums import bound_in, distinct
from taco_py.compiler.concrete.terms import Term, reductions, split_terms, summed
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.order.loop_costs import LoopCosts, copying
from taco_py.compiler.order.orders import (
    best_order,
    known_steps,
    needs_copy,
    order_cost,
)
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
    """Return the price of a program: its kernels, and the temporaries between them.

    kernel  the price of one kernel
    limit   the price is infinite where temporaries and the kernels that make them cost more
    """
    total = 0.0
    one, *rest = _of_each_result(program)
    for step in program.temporaries:
        total += keeping(program.facts[step.target], context.goal.machine)
        if total <= limit:
            total += kernel(one, _of_most(step.assignment), context)
        if total > limit:
            return inf
    return total + sum(kernel(part, _of_most(part.last), context) for part in (one, *rest))


def _of_each_result(program: Program) -> list[Program]:
    """Return one program for each result."""
    if len(program.results) == 1:
        return [program]
    return [replace(program, results=(result,)) for result in program.results]


def _of_most(assignment: Assignment) -> Assignment:
    """Return the part of an assignment computed for most elements: `e + least` of a correction."""
    match assignment.value:
        case Call(operator, (found, least, _)) if operator == CORRECTED:
            return replace(assignment, value=Call(ADD, (found, least)))
    return assignment


def locating(source: Operand, machine: Machine) -> float:
    """Return the price of a copy that has the position of each element."""
    vector = len(source.shape) == 1
    entry_steps = (
        machine.copies.temporary_entry_steps if vector else machine.copies.transposed_entry_steps
    )
    call = machine.calls.conversion_seconds / machine.step_seconds
    places = machine.copies.dense_root_row_steps * prod(source.shape)
    return call + places + entry_steps * source.nnz


def keeping(facts: Operand, machine: Machine) -> float:
    """Return the price of storing a temporary: its elements and the coordinates of its levels."""
    form = facts.type.format
    if is_full(form):
        return machine.copies.dense_temporary_element_steps * facts.stored
    block = prod(form.stored(facts.shape)[form.depth :])
    elements = machine.copies.dense_temporary_element_steps * facts.stored if block > 1 else 0.0
    return elements + machine.copies.temporary_entry_steps * facts.stored / max(block, 1)


def returning(program: Program, machine: Machine) -> float:
    """Return the price of the memory of dense results, which is cleared, or met first."""
    facts = (program.facts[result] for result in program.results)
    elements = sum(prod(fact.shape) for fact in facts if is_full(fact.type.format))
    return machine.copies.cleared_element_steps * elements


def merging(program: Program, context: Context) -> float:
    """Return the price of merging the terms of a sparse result, beside the loops of each."""
    assignment = program.last
    terms = split_terms(assignment.value)
    if len(terms) < 2 or is_full(program.result_type.format):
        return 0.0
    output, stats = assignment.target.indices, context.statistics(program, assignment.value)
    merge_steps = context.goal.machine.loops.merge_steps
    return merge_steps * sum(result_size(stats, summed(t.body, t.reduced), output) for t in terms)


def loops_price(program: Program, problem: Problem, context: Context) -> float:
    """Return the price of the best loops of one kernel of a program, with their copies."""
    value = problem.assignment.value
    stats = context.statistics(program, value)
    terms = (as_sum(problem, term) for term in split_terms(value))
    return sum(term_cost(problem, term, stats, context.effort) for term in terms)


def as_sum(problem: Problem, term: Term) -> Term:
    """Return the sum whose loops cost the same as the loops of another reduction."""
    if term.operator.additive:
        return term
    full = {name for name, type in problem.operands if is_full(type.format)}
    fill = fill_of(term.body, lambda access: None if access.tensor in full else 0)
    nothing = term.operator.identity_of(np.dtype(problem.result.dtype))
    restricted = nothing is not None and same(fill, nothing)
    body = Call(FILLED, (term.body, Literal(0))) if restricted else term.body
    return replace(term, body=body, operator=ADD)


def meets_again(problem: Problem) -> bool:
    """Tell whether the loops of a term visit an element of the result more than once."""
    return any(repeated(problem, term) for term in split_terms(problem.assignment.value))


def way_price(program: Program, assignment: Assignment, context: Context) -> float | None:
    """Return the price of a kernel by its method; None where that is the price of loops."""
    request = context.request(program, assignment.target.tensor)
    problem = draft_of(assignment, program.facts, request)
    question = Question(
        problem, lambda: context.statistics(program, assignment.value), context.goal.libraries
    )
    time = seconds(question)
    return None if time is None else time / context.goal.machine.step_seconds


# ---------------------------------------------------------------- loops of one term


def term_cost(
    problem: Problem,
    term: Term,
    stats: Statistics,
    effort: Effort,
    order: tuple[str, ...] | None = None,
    rows: bool = False,
) -> float:
    """Return the cost of the best loops of a term, with its inner sums in separate loops.

    order  of the loops as they are, each of which may run in vectors; None for the best one, in
           which no other loop is around those of an inner sum that does not depend on it
    rows   whether loops in an order look up rows of operands
    """
    if order is not None:
        return _ordered_cost(problem, term, stats, effort, order, rows)
    best = best_order(problem, term, stats, effort)
    inner_sums = distinct(reductions(term.body))
    if not inner_sums:
        return best.cost
    inner_indices = {i for sum_ in inner_sums for i in free_indices(sum_)}
    places = [place for place, index in enumerate(best.order) if index in inner_indices]
    outer = best.order[: max(places, default=-1) + 1]
    leading = takewhile(problem.assignment.target.indices.__contains__, outer)
    shared = sum(1 for _ in leading)  # loops over the result's indices are around all sums
    inner = best.order[len(outer) :]
    index_sets = [{i for a in accesses(sum_) for i in a.indices} for sum_ in inner_sums]
    steps = known_steps(problem, term, stats, effort)
    rest = [i for i in inner if not any(i in indices for indices in index_sets)]
    nested = steps.nest(outer, rest)
    for sum_, indices in zip(inner_sums, index_sets, strict=True):
        group = [i for i in inner if i in indices]
        depth = max((outer.index(i) + 1 for i in free_indices(sum_)), default=0)
        prefix = outer[: max(depth, shared)]
        alone = _alone(problem, sum_, stats, effort, prefix, group)
        nested += min(steps.nest(outer, group), alone)
    return best.cost - steps.nest(outer, inner) + nested


def _ordered_cost(
    problem: Problem,
    term: Term,
    stats: Statistics,
    effort: Effort,
    order: tuple[str, ...],
    rows: bool,
) -> float:
    """Return the cost of a term's loops in an order, its inner sums in separate loops."""
    sums = distinct(reductions(term.body))
    if not sums:
        return order_cost(problem, term, stats, order, rows)
    steps = known_steps(problem, term, stats, effort)
    outer = without_inner(term, order)
    costs = LoopCosts(problem, term, stats, steps, rows)
    total = steps.nest((), outer, in_vectors=True) + costs.beside_rounds(order, outer)
    target = problem.assignment.target.indices
    shared = sum(1 for _ in takewhile(target.__contains__, order))  # these are around all sums
    for sum_ in sums:
        bound, row = bound_in(sum_), row_of(sum_, order)
        needs = [index for index in free_indices(sum_) if index not in row]
        depth = max((outer.index(index) + 1 for index in needs), default=0)
        prefix = outer[: max(depth, 0 if row else shared)]
        group = [index for index in order if index in bound or index in row]
        alone = _alone(problem, sum_, stats, effort, prefix, group, in_vectors=True)
        if row:
            filled = steps.count(steps.bits_of((*prefix, *group)))
            total += alone + stats.machine.loops.row_workspace_steps * filled
        else:
            total += min(steps.nest(outer, group, in_vectors=True), alone)
    return total


def _alone(
    problem: Problem,
    sum_: Reduce,
    stats: Statistics,
    effort: Effort,
    outer: Sequence[str],
    group: Sequence[str],
    in_vectors: bool = False,
) -> float:
    """Return the cost of an inner sum's own loops inside the loops that it depends on.

    They run where its body is stored, whatever is added to it: in sum(i, sum(j, A[i,j] * x[j]) + s)
    over A's entries.
    """
    (term, *more) = split_terms(sum_)
    body = Term(False, (), sum_.body if more else as_sum(problem, term).body)
    bound, _ = loops_of(problem, body)
    repeats = stats.volume(index for index in outer if index not in bound)
    return repeats * known_steps(problem, body, stats, effort).nest(outer, group, in_vectors)


def copy_cost(
    stats: Statistics,
    problem: Problem,
    term: Term,
    effort: Effort,
    among: Sequence[Access] | None = None,
) -> float:
    """Return the cost of the copies that a term's best order needs."""
    order = best_order(problem, term, stats, effort).order
    return sum(
        copying(stats, a)
        for a in dict.fromkeys(accesses(term.body) if among is None else among)
        if needs_copy(problem, term, a, order)
    )
