"""Hoist a sum beside other terms out of loops over indices that it does not have.

    y[i] = A[i] - sum(j, x[j])  →  T = sum(j, x[j]);  y[i] = A[i] - T

The sum is added up in the type of the whole, as it is beside the other terms. A sum that wraps in a
type of its own is computed first anyway (`narrow_sums`).
"""

from __future__ import annotations

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.estimate import result_size
from taco_py.language.legal.types import sum_wraps_alone
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.tree import is_sum
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Rewrite,
    Rule,
    Site,
    terms,
)
from taco_py.planner.temporaries import with_temporary


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Compute a sum first that lacks an index of the result, whose loop would repeat it."""
    expr = site.term(program)
    if not is_sum(expr):
        return None
    target = program.last.target.indices
    needs = tuple(index for index in target if index in free_indices(expr))
    repeating = tuple(index for index in target if index not in needs)
    dtypes = program.dtypes
    dtype, type = (expression_dtype(value, dtypes) for value in (program.last.value, expr))
    if not repeating or sum_wraps_alone(type, dtype):
        return None
    (term, *more) = split_terms(expr)
    if more:
        return None
    stats = context.statistics(program, expr)
    sum_indices = frozenset((*needs, *(i for a in accesses(expr) for i in a.indices)))
    store_cost = stats.machine.copies.temporary_entry_steps * result_size(stats, expr, needs)
    alone = stats.iterations(term.body, sum_indices) + store_cost
    repeated = stats.iterations(term.body, sum_indices | frozenset(repeating))

    def rewrite() -> Rewrite:
        reason = f"this sum does not depend on {','.join(repeating)}, whose loop would repeat it"
        extended, access = with_temporary(program, context, expr, needs, reason, dtype)
        return Rewrite(site.put(extended, access), reason)

    return Candidate(repeated, alone, rewrite)


RULE = Rule("hoist_term", Phase.SPLIT, apply, terms, Numbers.EXACT, Gain.DETOUR)
