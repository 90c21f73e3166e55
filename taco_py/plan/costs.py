"""What kernels are expected to cost, and several in turn with the temporaries between them.

    T[k] = sum(j, B[k,j] * x[j]);  y[i] = sum(k, A[i,k] * T[k])
    → the loops and copies of both, and what it takes to write and read T

A plan compares many ways to compute the same; what a kernel costs is found once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from math import inf, prod

from codegen.names import Names
from codegen.types import scalar
from taco_py.concrete.concretize import fits_row, repeated
from taco_py.concrete.terms import Term, reductions, split_terms, summed
from taco_py.cost.effort import Effort
from taco_py.cost.estimate import Statistics, result_size
from taco_py.cost.machine import DENSE_GAIN, DENSE_TEMPORARY, MERGE, RATE, STEP, TEMPORARY, VECTOR
from taco_py.notation.checks import accesses, all_indices, free_indices
from taco_py.notation.nodes import Access, Assignment, Reduce
from taco_py.order.loop_costs import copying
from taco_py.order.orders import best_order, known_steps, needs_copy
from taco_py.order.steps import loops_of
from taco_py.plan.ir.goal import Request, draft_of
from taco_py.plan.ir.nodes import Operand
from taco_py.plan.rules.layout.copy_into_rows import in_rows
from taco_py.plan.rules.layout.dense_root import look_up_rows, rows_cost
from taco_py.plan.rules.split.split_dense_product import tiled_apart
from taco_py.plan.splitter import Splitter
from taco_py.problem import Problem
from taco_py.ways.choose import in_tiles


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


KernelCost = Callable[[Splitter, Assignment, Request], float]


def chain_cost(
    splitter: Splitter,
    parts: Sequence[Assignment],
    last: Assignment,
    limit: float = inf,
    each: KernelCost | None = None,
) -> float:
    """What kernels cost in their best orders, of which the last reads temporaries of the others.

    each  what one costs; None for its loops
    """
    made = [splitter.operands[part.target.tensor] for part in parts]
    kernels = [partial(each or best_cost, splitter, part) for part in (*parts, last)]
    return in_turn(made, kernels, splitter.request, keeping, limit)


def keeping(made: Operand) -> float:
    """What it costs to keep a temporary, beside the loops that write and read it: its elements and,
    where it stores coordinates, those of each block."""
    form = made.type.format
    if form.is_dense:
        return DENSE_TEMPORARY * made.stored
    block = prod(form.stored(made.shape)[form.depth :])
    elements = DENSE_TEMPORARY * made.stored if block > 1 else 0.0
    return elements + TEMPORARY * made.stored / max(block, 1)


def merging(splitter: Splitter, assignment: Assignment) -> float:
    """What it costs to merge the terms of a sparse result, beside the loops of each."""
    terms = split_terms(assignment.value)
    if len(terms) < 2 or splitter.request.type.format.is_dense:
        return 0.0
    kept, stats = assignment.target.indices, splitter.statistics(assignment.value)
    return MERGE * sum(result_size(stats, summed(t.body, t.reduced), kept) for t in terms)


def best_cost(splitter: Splitter, assignment: Assignment, request: Request) -> float:
    """What the best loop orders of one kernel cost, copies included."""

    def find() -> float:
        problem = draft_of(assignment, splitter.operands, request)
        terms = split_terms(assignment.value)
        stats = splitter.statistics(assignment.value)
        cost = sum(term_cost(problem, term, stats, request.effort) for term in terms)
        turned = in_rows(assignment, splitter.operands, request, Names(splitter.operands))
        cost = min(cost, turned.cost) if turned.why else cost
        if request.type.format.is_dense or fits_row(problem):
            return cost
        met_again = any(repeated(problem, term) for term in terms)
        return min(cost, _on_rows(splitter, assignment, request)) if met_again else cost

    return request.effort.once((best_cost, request.type, *splitter.key(assignment)), find)


def _on_rows(splitter: Splitter, assignment: Assignment, request: Request) -> float:
    """The same on copies of lists whose rows are looked up: these store nothing twice, so that a
    sparse result is appended to. Infinite where no copy pays, or where a size is not known, for
    another term has its index."""
    if not {*assignment.target.indices} <= {i for a in accesses(assignment) for i in a.indices}:
        return inf
    names = Names(splitter.operands)
    changed, operands, copies = look_up_rows(assignment, splitter.operands, request, names)
    if not copies:
        return inf
    copied = sum(rows_cost(operands[copy.source], copy.format) for copy in copies)
    return copied + best_cost(replace(splitter, operands=dict(operands)), changed, request)


QUICKEST = min(VECTOR, 1 / RATE / STEP)
"""Steps of an innermost iteration at least, in whatever way a kernel is carried out."""


def kernel_cost(splitter: Splitter, assignment: Assignment, request: Request) -> float:
    """What an assignment costs as one kernel or, where that is cheaper, with its dense products in
    register tiles apart."""
    tiled, alone = _ways(splitter, assignment, request)
    return tiled if tiled * DENSE_GAIN < alone else alone


def better_in_tiles(splitter: Splitter, assignment: Assignment, request: Request) -> bool:
    """Whether an assignment has dense products that are to be apart (`tiles`)."""
    tiled, alone = _ways(splitter, assignment, request)
    return tiled * DENSE_GAIN < alone


def _ways(splitter: Splitter, assignment: Assignment, request: Request) -> tuple[float, float]:
    """What an assignment costs with its dense products apart, infinite where it has none, and as
    one kernel."""

    def find() -> float:
        draft = replace(splitter.drafting(), request=request)
        last = tiled_apart(draft, assignment, request)
        return inf if last is assignment else chain_cost(draft, draft.made, last, each=alone_cost)

    key = (tiled_apart, request.type, request.memory, *splitter.key(assignment))
    return request.effort.once(key, find), alone_cost(splitter, assignment, request)


def alone_cost(splitter: Splitter, assignment: Assignment, request: Request) -> float:
    """What a kernel costs in loops or, as a product of dense matrices, in register tiles."""

    def find() -> float:
        problem = draft_of(assignment, splitter.operands, request)
        if all(type.format.is_dense for _, type in problem.operands):
            stats = splitter.statistics(assignment.value)
            if in_tiles(problem, stats, request.libraries):
                real = 4 if scalar(problem.result.dtype).kind == "complex" else 1
                return real * stats.volume(frozenset(all_indices(assignment))) / RATE / STEP
        return best_cost(splitter, assignment, request)

    return request.effort.once((alone_cost, request.type, *splitter.key(assignment)), find)


def term_cost(problem: Problem, term: Term, stats: Statistics, effort: Effort) -> float:
    """What the best loops of a term cost: around all its inner sums those that they need, and
    inside these each sum's own beside the others'."""
    best = best_order(problem, term, stats, effort)
    inner_sums = tuple(reductions(term.body))
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
