"""Dense sums of products that read one array through: their loops run as that array is stored.

    s = sum(i, j, k, A[i,j,k] * v[j])     loops i, j, k: A is read from its first byte to its last
    y[j,k] = sum(i, A[i,j,k])             loops j, i, k where a row over k is long: it stays near

Each element of that array is read once, so that any other order only reads it worse; the result and
the other factors may be visited out of order, for they are smaller and stay in near caches. Of
several arrays of that size in different orders, the one is followed that leaves the others nearest.
Sums outside of all rows of the result would come back to each of them when it is no longer in the
nearest cache; long rows are read as fast in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from math import prod

import numpy as np

from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.order.blocks_as_stored import blocks_as_stored
from taco_py.compiler.order.blocks_innermost import blocks_innermost
from taco_py.compiler.order.loops_of_sums import loops_of_sums
from taco_py.compiler.order.orders import Ranked, best_order, order_cost
from taco_py.language.legal.stored import all_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.tree import all_reductions
from taco_py.language.problem import Problem

Order = tuple[str, ...]


def chosen_order(problem: Problem, term: Term, statistics: Statistics, effort: Effort) -> Ranked:
    """Return the stored order of the array that a dense product streams, else the best order."""
    orders = stream_orders(problem, term.body, term.reduced)
    if not orders:
        best = best_order(problem, term, statistics, effort)
        best = blocks_as_stored(problem, term, statistics, best)
        best = blocks_innermost(problem, term, statistics, best)
        return loops_of_sums(problem, term, statistics, best)
    stored = min(orders, key=lambda order: _reach(order, orders, statistics))
    order = _by_rows(problem, stored, statistics)
    return Ranked(order, order_cost(problem, term, statistics, order))


def _by_rows(problem: Problem, order: Order, statistics: Statistics) -> Order:
    """Return the order with sums just outside the rows of the result, where these are long."""
    target = problem.result.format.stored(problem.assignment.target.indices)
    size, machine = np.dtype(problem.result.dtype).itemsize, statistics.machine
    row: Order = ()
    for index in reversed(target):
        longer = (index, *row)
        bytes = size * prod(statistics.sizes[i] for i in longer)
        if order[-len(longer) :] != longer or (row and bytes > machine.loops.nearest_cache_bytes):
            break
        row = longer
    if not row or size * prod(statistics.sizes[i] for i in row) < machine.loops.row_by_row_bytes:
        return order
    outside = order[: -len(row)]
    sums = tuple(index for index in outside if index not in target)
    return (*(index for index in outside if index in target), *sums, *row)


def _reach(order: Order, orders: Iterable[Order], statistics: Statistics) -> float:
    """Count the lines of all arrays that loops in `order` visit before they visit one again."""
    inside = (order[order.index(stored[-1]) + 1 :] for stored in orders)
    return sum(prod((statistics.sizes[i] for i in loops), start=1.0) for loops in inside)


def stream_order(problem: Problem, body: Expr, reduced: Iterable[str]) -> Order | None:
    """Return the stored order of the one factor that has all indices of a dense sum of products.

    None where there is no such factor, or several that disagree, and where nothing is summed.
    """
    orders = stream_orders(problem, body, reduced)
    return orders[0] if len(orders) == 1 else None


def stream_orders(problem: Problem, body: Expr, reduced: Iterable[str]) -> tuple[Order, ...]:
    """Return the stored orders of all factors that have all indices of a dense sum of products."""
    target = problem.assignment.target
    reads = dict.fromkeys(accesses(body))
    types = (problem.result, *(problem.type_of(access.tensor) for access in reads))
    every = {*target.indices, *(index for access in reads for index in access.indices)}
    sums = any(index not in target.indices for index in every)
    if not sums or not all_full(types) or not _is_product(body):
        return ()
    if not every >= {*reduced}:
        return ()  # a sum over what nothing is indexed by
    full = (problem.stored(access) for access in reads if {*access.indices} == every)
    orders = tuple(dict.fromkeys(order for order in full if len(order) == len(every)))
    return orders if all(_keeps_sums(body, order) for order in orders) else ()


def _is_product(expr: Expr) -> bool:
    """Tell whether an expression is a product of tensors and numbers, or a sum of such products."""
    match expr:
        case Access() | Literal():
            return True
        case Reduce(operator, _, body):
            return operator.additive and _is_product(body)
        case Call(operator, args):
            return operator.distributes and all(map(_is_product, args))
    return False


def innermost_sums(problem: Problem, term: Term) -> frozenset[str] | None:
    """Return the indices that one factor alone has and stores innermost.

    They may be summed before this factor is multiplied. None where no array is streamed.
    """
    order = stream_order(problem, term.body, term.reduced)
    if order is None:
        return None
    users = [access.indices for access in accesses(term.body)]
    alone = {i for i in order if i in term.reduced and sum(i in indices for indices in users) == 1}
    return frozenset(takewhile(alone.__contains__, reversed(order)))


def _keeps_sums(expr: Expr, order: tuple[str, ...]) -> bool:
    """Tell whether the loops of the sums inside an expression are inside all others."""
    inner = {node.index for node in all_reductions(expr)}
    return {*order[len(order) - len(inner) :]} == inner
