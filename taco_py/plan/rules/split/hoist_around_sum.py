"""What is around a sum inside a product, computed first where a sparse operand samples it.

    O[i,f] = sum(j, (S[i,j] - M[i,j] * sum(r, U[i,r] * V[j,r])) * X[j,f])
    → T[i,j] = S[i,j] - M[i,j] * sum(r, U[i,r] * V[j,r]);  O[i,f] = sum(j, T[i,j] * X[j,f])

The inner sum by itself would be dense, and in one kernel the loop over f repeats it. T stores no
more than S and M do. It is computed as it is written, so that no number changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.concrete.terms import split_terms
from taco_py.cost.machine import GAIN
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Assignment, Expr, Reduce
from taco_py.notation.tree import children, exchange, walk
from taco_py.plan.costs import best_cost, chain_cost
from taco_py.plan.splitter import Splitter


def around_sum(splitter: Splitter, assignment: Assignment, expr: Expr, sum_: Reduce) -> Expr | None:
    """`expr`, a term, with the cheapest part around an inner sum computed first; None where one
    kernel, or the sum by itself, is no dearer."""
    options = tuple(_options(splitter, assignment, expr, sum_))
    if not options:
        return None
    prices = [_price(splitter, assignment, expr, part) for part in options]
    least = min(prices)
    whole = replace(assignment, value=expr)
    one = best_cost(splitter, whole, splitter.request)
    if least * GAIN >= min(one, _price(splitter, assignment, expr, sum_)):
        return None
    part = options[prices.index(least)]
    why = f"about {least:.2g} operations instead of {one:.2g} in loops around the sum in it"
    return exchange(expr, part, splitter.temporary(part, free_indices(part), why))


def _options(
    splitter: Splitter, assignment: Assignment, expr: Expr, sum_: Reduce
) -> Iterator[Expr]:
    """The parts of a term around a sum that are sparse, of the term's type with all their
    sums, and need fewer loops than it."""
    (term,) = split_terms(expr)
    every = {*assignment.target.indices, *_indices(expr)}
    dtypes = splitter.dtypes
    whole = expression_dtype(term.body, dtypes)
    for part in _around(term.body, sum_):
        sums = (node for node, _ in walk(part) if isinstance(node, Reduce))
        alike = all(expression_dtype(each, dtypes) == whole for each in (part, *sums))
        if alike and _indices(part) < every:
            draft = splitter.drafting()
            made = draft.operands[draft.temporary(part, free_indices(part), "").tensor]
            if not made.type.format.is_dense and made.stored <= splitter.request.memory:
                yield part


def _indices(expr: Expr) -> set[str]:
    return {index for access in accesses(expr) for index in access.indices}


def _around(body: Expr, sum_: Reduce) -> tuple[Expr, ...]:
    """What is inside of `body` and around `sum_`, the smallest first."""
    for child in children(body):
        if child is sum_:
            return ()
        if any(node is sum_ for node, _ in walk(child)):
            return (*_around(child, sum_), child)
    return ()


def _price(splitter: Splitter, assignment: Assignment, expr: Expr, part: Expr) -> float:
    """What two kernels cost of which the first computes `part`."""
    draft = splitter.drafting()
    value = exchange(expr, part, draft.temporary(part, free_indices(part), ""))
    return chain_cost(draft, draft.made, replace(assignment, value=value))
