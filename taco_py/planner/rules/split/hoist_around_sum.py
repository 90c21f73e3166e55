"""Compute what is around a sum inside a product first, where a sparse operand samples it.

    O[i,f] = sum(j, (S[i,j] - M[i,j] * sum(r, U[i,r] * V[j,r])) * X[j,f])
    → T[i,j] = S[i,j] - M[i,j] * sum(r, U[i,r] * V[j,r]);  O[i,f] = sum(j, T[i,j] * X[j,f])

The inner sum by itself would be dense, and in one kernel the loop over f repeats it. T stores no
more than S and M do. It is computed as it is written, so that no number changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Expr, Reduce
from taco_py.language.notation.tree import all_reductions, children, exchange, walk
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Candidate, Gain, Rewrite, Site
from taco_py.planner.temporaries import with_temporary


def around_sum(program: Program, site: Site, context: Context, sum_: Reduce) -> Candidate | None:
    """Compute the cheapest part that contains an inner sum first, where that pays.

    Compared with one kernel, and with the inner sum computed first by itself.
    """
    term = site.term(program)
    options = tuple(_options(program, context, term, sum_))
    if not options:
        return None
    prices = [_price(program, context, term, part) for part in options]
    least = min(prices)
    assignment = replace(program.last, value=term)
    one = context.costs.loops(program, assignment, context)
    part = options[prices.index(least)]

    def rewrite() -> Rewrite:
        reason = f"about {least:.2g} operations instead of {one:.2g} in loops around the sum in it"
        extended, access = with_temporary(program, context, part, free_indices(part), reason)
        return Rewrite(site.put(extended, exchange(term, part, access)), reason)

    before = min(one, _price(program, context, term, sum_))
    return Candidate(before, least, rewrite, Gain.DETOUR)


def _options(program: Program, context: Context, expr: Expr, sum_: Reduce) -> Iterator[Expr]:
    """Yield the sparse parts of a term that contain a sum and need fewer loops."""
    (term,) = split_terms(expr)
    every = {*program.last.target.indices, *_indices(expr)}
    dtypes = program.dtypes
    dtype = expression_dtype(term.body, dtypes)
    for part in _enclosing(term.body, sum_):
        sums = all_reductions(part)
        alike = all(expression_dtype(value, dtypes) == dtype for value in (part, *sums))
        if alike and _indices(part) < every:
            draft, access = with_temporary(program, context, part, free_indices(part), "")
            facts = draft.facts[access.tensor]
            if is_sparse(facts.type.format) and facts.stored <= context.goal.memory:
                yield part


def _indices(expr: Expr) -> set[str]:
    return {index for access in accesses(expr) for index in access.indices}


def _enclosing(body: Expr, sum_: Reduce) -> tuple[Expr, ...]:
    """Return the proper subexpressions of `body` that contain `sum_`, the smallest first."""
    for child in children(body):
        if child is sum_:
            return ()
        if any(node is sum_ for node, _ in walk(child)):
            return (*_enclosing(child, sum_), child)
    return ()


def _price(program: Program, context: Context, expr: Expr, part: Expr) -> float:
    """Return the price of two kernels, of which the first computes `part`."""
    draft = program.only_of(program.last)
    draft, access = with_temporary(draft, context, part, free_indices(part), "")
    last = replace(draft.last, value=exchange(expr, part, access))
    return context.costs.in_loops(draft.with_assignment(last), context)
