"""Sum over the outer dimensions of the array that a dense product reads through first.

    y[a] = sum(b, c, A[c,b,a] * v[a,b])
    → T[b,a] = sum(c, A[c,b,a]);  y[a] = sum(b, T[b,a] * v[a,b])

    s = sum(a, b, c, A[a,c,b] * v[a,b])
    → T[a,b] = sum(c, A[a,c,b]);  s = sum(a, b, T[a,b] * v[a,b])

The array is read once either way, and the products are as many fewer as its sums are long. Where
its rows are long and added up whole, each is multiplied once anyway, and T would be in the way.
Sums over dimensions in the middle, if none is outermost, come first where the rows inside are
short: a product's sum over each of them would be added up across lanes every few elements.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import takewhile

import numpy as np

from taco_py.compiler.concrete.terms import split_terms, summed
from taco_py.compiler.order.streams import stream_order
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.tree import exchange
from taco_py.planner.algebra.products import as_product
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    terms,
)
from taco_py.planner.temporaries import with_temporary


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Compute first the sums that only the largest factor has and stores outermost.

    Only where what is left of that factor stays in the near caches.
    """
    expr = site.term(program)
    (term, *more) = split_terms(expr)
    product = as_product(term.body, program.dtypes)
    if more or term.negative or product is None:
        return None
    order = stream_order(program.problem(program.last, expr), term.body, term.reduced)
    if order is None:
        return None
    largest = [f for f in product.factors if isinstance(f, Access) and {*f.indices} == {*order}]
    users = [access.indices for access in accesses(term.body)]
    alone = {i for i in order if i in term.reduced and sum(i in indices for indices in users) == 1}
    dtype = expression_dtype(expr, program.dtypes)
    stats, itemsize = context.statistics(program, expr), np.dtype(dtype).itemsize
    row = stats.volume(_row(order, alone, users)) * itemsize
    machine = stats.machine
    first = _first(order, alone, row <= machine.loops.short_row_bytes)
    rest = tuple(index for index in order if index not in first)
    if len(largest) != 1 or not first or not rest:
        return None
    dtype = expression_dtype(largest[0], program.dtypes)
    summed_row = frozenset(takewhile(alone.__contains__, reversed(order)))
    if stats.volume(summed_row) * itemsize >= machine.loops.summed_row_bytes:
        return Refusal("rows that are summed are long: each is multiplied once anyway")
    near = stats.volume(frozenset(rest)) * itemsize <= machine.loops.near_cache_bytes
    long = stats.volume(frozenset(first)) >= machine.dense.streamed_sum_terms
    if not near or not long or dtype != expression_dtype(term.body, program.dtypes):
        return Refusal("what is left of the factor is not near, or its sums are short")
    place = "outermost" if order[: len(first)] == first else "outside of short rows"
    reason = f"the sum over {','.join(first)} of one factor alone, which stores it {place}"
    program, access = with_temporary(program, context, largest[0], rest, reason)
    body = exchange(term.body, largest[0], access)
    left = summed(body, (index for index in term.reduced if index not in first))
    return Rewrite(site.put(program, left), reason)


def _first(order: Sequence[str], alone: Set[str], short: bool) -> tuple[str, ...]:
    """Return the summed indices that are stored outermost, or others where rows are short."""
    outermost = tuple(takewhile(alone.__contains__, order))
    if short and not outermost and order[-1] not in alone:
        return tuple(index for index in order if index in alone)
    return outermost


def _row(order: Sequence[str], alone: Set[str], users: Sequence[Sequence[str]]) -> frozenset[str]:
    """Return the innermost indices that the same factors have: those of one loop at most."""

    def having(index: str) -> list[bool]:
        return [index in indices for indices in users]

    same_users = takewhile(lambda i: having(i) == having(order[-1]), reversed(order))
    return frozenset(takewhile(lambda i: i not in alone, same_users))


RULE = Rule("sum_streamed_first", Phase.SPLIT, apply, terms, Numbers.ROUNDS, traits=Trait.FACTORS)
