"""Compute some sums of a product of sums first, where one kernel would have too many cases.

    y[i] = (A[i] + B[i]) * (C[i] + D[i]) * (E[i] + F[i]) * (G[i] + H[i])
    → T[i] = A[i] + B[i];  y[i] = T[i] * (C[i] + D[i]) * (E[i] + F[i]) * (G[i] + H[i])

Where A, B and all others are sparse, each sum has a case for A and B, for A and for B alone, and
the product 3 · 3 · 3 · 3. In loops inside each other each case has those of the loops inside it.
"""

from __future__ import annotations

from taco_py.compiler.concrete.case_counts import count_cases, sums_in
from taco_py.compiler.concrete.terms import reductions
from taco_py.language.legal.cases import LOOP_CASES, PRODUCT_CASES
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Call, Expr
from taco_py.language.notation.tree import exchange
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, result
from taco_py.planner.rules.needed.sum_in_chunks import in_chunks
from taco_py.planner.temporaries import through_children, where_asked, with_temporary


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Compute sums among the factors of products first, as long as these have too many cases."""
    value = site.term(program)
    new, expr = _with_few_cases(program, context, value)
    return None if expr is value else Rewrite(site.put(new, expr))


def _with_few_cases(program: Program, context: Context, expr: Expr) -> tuple[Program, Expr]:
    """Return an expression whose sums of most cases are in temporaries, with the program."""
    program, expr = through_children(
        program, expr, lambda before, child: _with_few_cases(before, context, child)
    )
    if not isinstance(expr, Call) or expr.operator.additive:
        return program, expr
    while (count := _too_many(program, expr)) is not None:
        # a sum over an index may wrap in a type of its own (`narrow_sums`)
        sums = [sum_ for sum_ in sums_in(expr, program.lists) if not any(reductions(sum_))]
        if not sums:
            break
        most = max(sums, key=lambda sum_: count_cases(sum_, program.lists))
        reason = f"in one kernel with the other sums of its product it has {count} cases"
        program, part = in_chunks(program, context, most)
        part = where_asked(program, expr, most, part)
        program, access = with_temporary(program, context, part, free_indices(most), reason)
        for sum_ in sums:
            expr = exchange(expr, sum_, access) if sum_ == most else expr
        if not isinstance(expr, Call):
            break
    return program, expr


def _too_many(program: Program, expr: Expr) -> int | None:
    """Return the number of cases of a product where its loops have too many; else None."""
    one, every = (count_cases(expr, is_merged) for is_merged in (program.is_sparse, program.lists))
    few = LOOP_CASES.allows(one) and PRODUCT_CASES.allows(every)
    return None if few else max(one, every)


RULE = Rule("few_cases", Phase.NECESSARY, apply, result)
