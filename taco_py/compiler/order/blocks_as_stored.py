"""Loops inside of blocks come after those over blocks, where all tensors store them so.

    y[p,q] = sum(j, A[p,q,j] * x[j])    A in dds, q of size 8:  loops q, p, j  →  p, q, j

Both orders have as many iterations, and the one with few rounds outside begins fewer loops; but it
comes to each line of A's positions and of y once for every q. A short loop whose size is a constant
begins for nothing.

    y[p,q] = sum(j, s, A[p,s,q,j] * x[j])    A in drdp:  loops p, q, s, j  →  p, s, q, j

The lanes of a slice are then side by side. Where a row of the result is inside, it stays so long
as the sum runs, and the lanes outside.
"""

from __future__ import annotations

from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.order.orders import Ranked, order_cost
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem


def blocks_as_stored(problem: Problem, term: Term, statistics: Statistics, best: Ranked) -> Ranked:
    """Return the order with loops of constant size moved inside the loops that tensors store
    outside."""
    static = dict(problem.static)
    everywhere = (*accesses(term.body), problem.assignment.target)
    stored = [problem.stored(access) for access in everywhere]
    order, target = [*best.order], {*problem.assignment.target.indices}
    for index in [i for i in best.order if i in static]:
        place = order.index(index)
        while place + 1 < len(order) and _encloses(order[place + 1], index, stored):
            outer, *inside = order[place + 1 :]
            if outer not in target and not target.isdisjoint(inside):
                break
            order[place : place + 2] = outer, index
            place += 1
    reordered = tuple(order)
    if reordered == best.order or statistics.machine.is_gpu:
        return best
    return Ranked(reordered, order_cost(problem, term, statistics, reordered))


def _encloses(outer: str, inner: str, stored: list[tuple[str, ...]]) -> bool:
    """Tell whether tensors have both indices, and all of these store `outer` outside of `inner`."""
    orders = [order for order in stored if {outer, inner} <= {*order}]
    return bool(orders) and all(order.index(outer) < order.index(inner) for order in orders)
