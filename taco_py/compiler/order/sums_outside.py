"""Sums inside a term: their loops are outside of the loops that they do not depend on.

    y[j] = A[j] * sum(i, B[i])                     loops j, i  →  i, j
    y[i,k] = sum(j, A[i,j]) * C[i,k]               loops i, k, j  →  i, j, k

Such a sum is computed once, not in each round of those loops.
"""

from __future__ import annotations

from math import inf

from taco_py.compiler.concrete.inner_sums import bound_in, distinct
from taco_py.compiler.concrete.terms import Term, reductions
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.order.orders import Ranked, order_cost
from taco_py.language.notation.checks import free_indices
from taco_py.language.problem import Problem


def sums_outside(problem: Problem, term: Term, statistics: Statistics, best: Ranked) -> Ranked:
    """Return the order with each inner sum's loops right behind those that it depends on.

    `best` where the loops of a sum need others outside, or are those of another sum, too.
    """
    sums = distinct(reductions(term.body))
    own = [bound_in(sum_) for sum_ in sums]
    order = best.order
    for place, (sum_, loops) in enumerate(zip(sums, own, strict=True)):
        others = frozenset[str]().union(*own[:place], *own[place + 1 :])
        if not loops & others:
            order = _moved(order, loops, free_indices(sum_))
    if order == best.order:
        return best
    cost = order_cost(problem, term, statistics, order)
    return best if cost == inf else Ranked(order, cost)


def _moved(
    order: tuple[str, ...], loops: frozenset[str], needs: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the order with some loops right behind those that they need."""
    depth = max((order.index(index) + 1 for index in needs), default=0)
    behind = order[depth:]
    moved = tuple(index for index in behind if index in loops)
    return (*order[:depth], *moved, *(index for index in behind if index not in loops))
