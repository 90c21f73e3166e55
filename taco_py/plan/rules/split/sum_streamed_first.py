"""Sums over the outer dimensions of the array that a dense product reads through, done first.

    y[a] = sum(b, c, A[c,b,a] * v[a,b])    →    T[b,a] = sum(c, A[c,b,a])
                                                y[a] = sum(b, T[b,a] * v[a,b])
    s = sum(a, b, c, A[a,c,b] * v[a,b])    →    T[a,b] = sum(c, A[a,c,b])
                                                s = sum(a, b, T[a,b] * v[a,b])

The array is read once either way, and the products are as many fewer as its sums are long. Where
its rows are long and added up whole, each is multiplied once anyway, and T would be in the way.
Sums over dimensions in the middle, if none is outermost, come first where the rows inside are
short: a product's sum over each of them would be added up across lanes every few elements.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import takewhile

import numpy as np

from taco_py.concrete.terms import split_terms, summed
from taco_py.cost.machine import NEAR
from taco_py.notation.checks import accesses
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Access, Assignment, Expr
from taco_py.notation.tree import exchange
from taco_py.order.streams import stream_order
from taco_py.plan.algebra.products import as_product
from taco_py.plan.splitter import Splitter

ROUNDS = 8
"""Terms of such a sum from which on the product is worth a kernel of its own."""
ROW_BYTES = 1024
"""Rows of the array that are added up in registers as fast as it is read."""
SHORT_BYTES = 256
"""Rows whose sums take longer to add up across lanes than to read. [A sum of products over rows of
16 floats in a tenth of the time where they are added up by themselves before]"""


def sum_first(splitter: Splitter, assignment: Assignment, expr: Expr) -> Expr:
    """The term with the sums that only its largest factor has, and stores outermost, done first:
    where what is left of that factor stays in the near caches."""
    (term, *more) = split_terms(expr)
    product = as_product(term.body, splitter.dtypes)
    if more or term.negative or product is None:
        return expr
    order = stream_order(splitter.draft(assignment, expr), term.body, term.reduced)
    if order is None:
        return expr
    whole = [f for f in product.factors if isinstance(f, Access) and {*f.indices} == {*order}]
    users = [access.indices for access in accesses(term.body)]
    alone = {i for i in order if i in term.reduced and sum(i in indices for indices in users) == 1}
    dtype = expression_dtype(expr, splitter.dtypes)
    stats, itemsize = splitter.statistics(expr), np.dtype(dtype).itemsize
    row = stats.volume(_row(order, alone, users)) * itemsize
    first = _first(order, alone, row <= SHORT_BYTES)
    rest = tuple(index for index in order if index not in first)
    if len(whole) != 1 or not first or not rest:
        return expr
    dtype = expression_dtype(whole[0], splitter.dtypes)
    summed_row = frozenset(takewhile(alone.__contains__, reversed(order)))
    if stats.volume(summed_row) * itemsize >= ROW_BYTES:
        return expr
    near = stats.volume(frozenset(rest)) * itemsize <= NEAR
    long = stats.volume(frozenset(first)) >= ROUNDS
    if not near or not long or dtype != expression_dtype(term.body, splitter.dtypes):
        return expr
    place = "outermost" if order[: len(first)] == first else "outside of short rows"
    why = f"the sum over {','.join(first)} of one factor alone, which stores it {place}"
    body = exchange(term.body, whole[0], splitter.temporary(whole[0], rest, why))
    return summed(body, (index for index in term.reduced if index not in first))


def _first(order: Sequence[str], alone: Set[str], short: bool) -> tuple[str, ...]:
    """The indices of `alone` that are stored outermost, for all that is inside is one row then; if
    there are none, others where rows are `short` and not added up themselves."""
    outermost = tuple(takewhile(alone.__contains__, order))
    if short and not outermost and order[-1] not in alone:
        return tuple(index for index in order if index in alone)
    return outermost


def _row(order: Sequence[str], alone: Set[str], users: Sequence[Sequence[str]]) -> frozenset[str]:
    """The innermost indices that the same factors have: those of a loop of the product, at most."""

    def having(index: str) -> list[bool]:
        return [index in indices for indices in users]

    together = takewhile(lambda i: having(i) == having(order[-1]), reversed(order))
    return frozenset(takewhile(lambda i: i not in alone, together))
