"""Sums inside a term: their loops are outside of the loops that they do not depend on.

    y[j] = A[j] * sum(i, B[i])                     loops j, i  →  i, j
    y[i,k] = sum(j, A[i,j]) * C[i,k]               loops i, k, j  →  i, j, k

Such a sum is computed once, not in each round of those loops. The cost of an order does not tell
both apart, for it is that of loops nested in each other.
"""

from __future__ import annotations

from math import inf

from taco_py.compiler.concrete.inner_sums import bound_in, distinct
from taco_py.compiler.concrete.terms import Term, reductions
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.order.orders import Ranked, order_cost
from taco_py.language.notation.checks import free_indices
from taco_py.language.problem import Problem


def loops_of_sums(problem: Problem, term: Term, statistics: Statistics, best: Ranked) -> Ranked:
    """Return the order in which each inner sum's loops follow the loops that the sum depends on.

    `best` where the loops of a sum need others outside, or are those of another sum, too.
    """
    sums = distinct(reductions(term.body))
    bound = [bound_in(sum_) for sum_ in sums]
    order = best.order
    for place, (sum_, loops) in enumerate(zip(sums, bound, strict=True)):
        rest = frozenset[str]().union(*bound[:place], *bound[place + 1 :])
        if not loops & rest:
            order = _follow(order, loops, free_indices(sum_))
    if order == best.order:
        return best
    cost = order_cost(problem, term, statistics, order)
    return best if cost == inf else Ranked(order, cost)


def _follow(
    order: tuple[str, ...], loops: frozenset[str], needs: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the order in which some loops follow the last loop that a sum needs."""
    depth = max((order.index(index) + 1 for index in needs), default=0)
    inner = order[depth:]
    first = tuple(index for index in inner if index in loops)
    return (*order[:depth], *first, *(index for index in inner if index not in loops))
