"""Compute reductions by other operators than sums first, where more than they is computed.

    y[i] = x[i] * max(j, A[i,j])
    → T[i] = max(j, A[i,j]);  y[i] = x[i] * T[i]

What is left are sums and products, which other rules move, multiply out and pair. A temporary that
is read in the loops it would be made in need not be stored (`fuse_temporary`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.concrete.inner_sums import exchange_equal
from taco_py.compiler.concrete.terms import accumulating, top_reduction
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Expr
from taco_py.language.notation.tree import children, is_reduction_by, peel_reductions
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Numbers, Phase, Rewrite, Rule, Site, Trials, result
from taco_py.planner.temporaries import with_temporary

REASON = "it reduces by another operator than a sum"


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Put each reduction by another operator in a temporary, the innermost first."""
    while (reduction := next(_inside(program), None)) is not None:
        extended, access = with_temporary(
            program, context, reduction, free_indices(reduction), REASON
        )
        value = exchange_equal(program.last.value, reduction, access)
        assignment = replace(program.last, value=value)
        program = yield Rewrite(extended.with_assignment(assignment), REASON)


def _inside(program: Program) -> Iterator[Expr]:
    """Yield the inner reductions by other operators than +, the innermost first."""
    expr = program.last.value
    into = accumulating(expr) if program.is_full(program.result) else None
    top = top_reduction(expr)
    if top is not None:
        yield from _reductions_in(peel_reductions(top, top.operator)[1])
    elif into is not None:
        for part in children(expr):
            if is_reduction_by(part, into):
                _, part = peel_reductions(part, part.operator)
            yield from _reductions_in(part)
    else:
        yield from _reductions_in(expr)


def _reductions_in(expr: Expr) -> Iterator[Expr]:
    reduce = top_reduction(expr)
    if reduce is not None:  # with what says that it is absent where nothing is reduced
        yield from _reductions_in(peel_reductions(reduce, reduce.operator)[1])
        yield expr
        return
    for child in children(expr):
        yield from _reductions_in(child)


RULE = Rule("reduce_first", Phase.NECESSARY, apply, result, Numbers.EXACT)
