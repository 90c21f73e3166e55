"""Sums computed first where loops around them would repeat them: those inside products, and terms
without an index of the result."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from taco_py.concrete.terms import reductions, split_terms
from taco_py.cost.estimate import Statistics, result_size
from taco_py.cost.machine import DENSE_GAIN, GAIN, TEMPORARY
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.notation.tree import exchange
from taco_py.order.orders import best_order
from taco_py.plan.costs import chain_cost, copy_cost, term_cost
from taco_py.plan.rules.split.hoist_around_sum import around_sum
from taco_py.plan.splitter import Splitter


def hoist(splitter: Splitter, assignment: Assignment, expr: Expr) -> Expr:
    """Compute first each inner sum that loops around it would repeat.

    y[i] = sum(j, A[i,j] * sum(k, B[j,k]))
    → T[j] = sum(k, B[j,k]);  y[i] = sum(j, A[i,j] * T[j])

    With what is around it, where that is sparse and better (`around_sum`).
    """
    (term, *more) = split_terms(expr)
    inner = tuple(reductions(term.body))
    if more or not inner:
        return expr
    stats = splitter.statistics(expr)
    problem = splitter.draft(assignment, expr)
    effort = splitter.request.effort
    order = best_order(problem, term, stats, effort).order
    shared = len(tuple(takewhile(assignment.target.indices.__contains__, order)))
    for sum_ in inner:
        if not any(sum_ is other for other in _inner(expr)):
            continue  # it is in a temporary by now
        part = around_sum(splitter, assignment, expr, sum_)
        if part is not None:
            expr = part
            continue
        own = frozenset(i for a in accesses(sum_) for i in a.indices)
        needs = free_indices(sum_)
        depth = max((order.index(i) + 1 for i in needs), default=0)
        depth = max(depth, shared)  # loops over the result's indices are around all sums
        inside = stats.iterations(term.body, frozenset(order[:depth]) | own)
        alone = stats.iterations(sum_.body, own) + TEMPORARY * result_size(stats, sum_, needs)
        copied = copy_cost(stats, problem, term, effort, accesses(sum_))
        if copied:
            inside += copied
            alone += _own_copies(splitter, stats, sum_)
        if alone * GAIN < inside:
            why = _reason(tuple(i for i in order[:depth] if i not in needs))
            expr = exchange(expr, sum_, splitter.temporary(sum_, needs, why))
            continue
        (whole,) = split_terms(expr)
        told = _as_large(splitter, expr)
        one = term_cost(told.draft(assignment, expr), whole, told.statistics(expr), effort)
        two, gain = _apart(told, assignment, expr, sum_)
        if two * gain < one:
            why = f"about {two:.2g} operations instead of {one:.2g} in loops around this sum"
            expr = exchange(expr, sum_, splitter.temporary(sum_, needs, why))
    return expr


def _inner(expr: Expr) -> tuple[Reduce, ...]:
    """The sums inside a term."""
    (term,) = split_terms(expr)
    return tuple(reductions(term.body))


def hoist_term(splitter: Splitter, assignment: Assignment, expr: Expr) -> Expr:
    """Compute first a sum that is added for every coordinate of an index that it does not have.

    y[i] = A[i] - sum(j, x[j])    →   T = sum(j, x[j]);  y[i] = A[i] - T

    It is added up in the type of the whole, as it is beside the other terms. What wraps in a type
    of its own is computed first anyway (`narrow`).
    """
    if not isinstance(expr, Reduce) or not expr.operator.additive:
        return expr
    target = assignment.target.indices
    needs = tuple(index for index in target if index in free_indices(expr))
    others = tuple(index for index in target if index not in needs)
    dtypes = splitter.dtypes
    whole, type = (expression_dtype(each, dtypes) for each in (assignment.value, expr))
    if not others or (type != whole and type.kind not in "fc"):
        return expr
    (term, *more) = split_terms(expr)
    if more:
        return expr
    stats = splitter.statistics(expr)
    own = frozenset((*needs, *(i for a in accesses(expr) for i in a.indices)))
    alone = stats.iterations(term.body, own) + TEMPORARY * result_size(stats, expr, needs)
    if alone * GAIN >= stats.iterations(term.body, own | frozenset(others)):
        return expr
    return splitter.temporary(expr, needs, _reason(others), whole)


def _apart(
    splitter: Splitter, assignment: Assignment, expr: Expr, sum_: Reduce
) -> tuple[float, float]:
    """What two kernels cost, with the temporary between them, and how many times cheaper that must
    be."""
    draft = splitter.drafting()
    value = exchange(expr, sum_, draft.temporary(sum_, free_indices(sum_), ""))
    (part,) = draft.made
    gain = DENSE_GAIN if draft.operands[part.target.tensor].type.format.is_dense else GAIN
    return chain_cost(draft, draft.made, replace(assignment, value=value)), gain


def _as_large(splitter: Splitter, expr: Expr) -> Splitter:
    """One that takes what is left of `expr` as large as it is where `expr` itself is not taken for
    larger: a kernel over tiny temporaries is compared with one over the operands that they are
    made from."""
    real = splitter.real(expr)
    same = splitter.statistics(expr).sizes == real.statistics(expr).sizes
    return real if same else splitter


def _reason(others: tuple[str, ...]) -> str:
    if others:
        return f"this sum does not depend on {','.join(others)}, whose loop would repeat it"
    return "by itself, this sum needs no copies of operands in another order, or fewer"


def _own_copies(splitter: Splitter, stats: Statistics, sum_: Reduce) -> float:
    """What the copies cost that `sum_` needs when it is computed by itself."""
    (term, *more) = split_terms(sum_)
    if more:
        return 0.0
    part = Assignment(Access("", free_indices(sum_)), sum_)
    result = replace(splitter.request.type, format=splitter.usual_format(part))
    problem = replace(splitter.draft(part, sum_), result=result)
    return copy_cost(stats, problem, term, splitter.request.effort)
