"""Compute arguments of functions first, where one kernel would merge too many sparse operands.

A function that has a value where some of its arguments are absent has a case for each set of those
that may be present, as a sum has:

    C[i] = max(A[i], min(B[i] - D[i], max(E[i], min(F[i], G[i]))))
    → T[i] = min(B[i] - D[i], max(E[i], min(F[i], G[i])));  C[i] = max(A[i], T[i])
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.compiler.concrete.case_counts import cases_of_sum, count_cases, merges
from taco_py.language.legal.cases import LOOP_CASES
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Call, Expr
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, result, terms
from taco_py.planner.temporaries import through_children, with_temporary


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Put arguments of functions into temporaries, as long as these have too many cases."""
    sites = terms(program) if is_full(program.result_type.format) else iter((site,))
    before = program
    for site_ in sites:
        expr = site_.term(program)
        new, few = _with_few_cases(program, context, expr)
        program = site_.put(new, few) if few is not expr else new
    return None if program is before else Rewrite(program)


def _with_few_cases(program: Program, context: Context, expr: Expr) -> tuple[Program, Expr]:
    """Return an expression whose arguments of many cases are in temporaries, innermost first."""
    program, expr = through_children(
        program, expr, lambda before, child: _with_few_cases(before, context, child)
    )
    while (
        isinstance(expr, Call)
        and not expr.operator.additive
        and merges(expr, program.is_sparse)
        and not LOOP_CASES.allows(cases_of_sum(expr.args, program.is_sparse))
    ):
        counts = [count_cases(arg, program.is_sparse) for arg in expr.args]
        place = counts.index(max(counts))
        if counts[place] <= 1:
            break
        part = expr.args[place]
        reason = f"with the other arguments of {expr.operator.name} one kernel has too many cases"
        program, access = with_temporary(program, context, part, free_indices(part), reason)
        expr = replace(expr, args=(*expr.args[:place], access, *expr.args[place + 1 :]))
    return program, expr


RULE = Rule("merge_in_chunks", Phase.NECESSARY, apply, result)
