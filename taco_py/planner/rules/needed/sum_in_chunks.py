"""Add up sums of many sparse terms a few terms at a time.

A loop that merges n operands has a case for each set of them that may be present, 2^n - 1 in all:

    C[i] = A[i] + B[i] + D[i] + E[i] + F[i] + G[i]
    → T[i] = A[i] + B[i] + D[i] + E[i];  C[i] = T[i] + F[i] + G[i]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from taco_py.compiler.concrete.case_counts import cases_of_sum, count_cases
from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.cases import LOOP_CASES, MERGED_TERMS, SCHEDULED_CASES, SCHEDULED_TERMS
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr
from taco_py.language.notation.tree import is_additive
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, result, terms
from taco_py.planner.temporaries import through_children, with_temporary


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Put parts of sums with too many sparse terms for one kernel into temporaries.

    Terms stay in order, so that numbers are rounded as in the sum as it is written; where partial
    sums are of another type than the whole, it stays whole. The terms of a dense result are left:
    its kernel adds them up one after another.
    """
    sites = terms(program) if is_full(program.result_type.format) else iter((site,))
    before = program
    for site_ in sites:
        expr = site_.term(program)
        new, chunked = in_chunks(program, context, expr)
        program = site_.put(new, chunked) if chunked is not expr else new
    return None if program is before else Rewrite(program)


def in_chunks(program: Program, context: Context, expr: Expr) -> tuple[Program, Expr]:
    """Return each sum in an expression as sums of a few sparse terms."""
    if not is_additive(expr):
        return through_children(program, expr, lambda p, child: in_chunks(p, context, child))
    return _sum_in_chunks(program, context, expr, expression_dtype(expr, program.dtypes))


def _sum_in_chunks(
    program: Program, context: Context, expr: Expr, dtype: DType
) -> tuple[Program, Expr]:
    if not is_additive(expr):
        return in_chunks(program, context, expr)
    args: tuple[Expr, ...] = ()
    for arg in expr.args:
        program, new = _sum_in_chunks(program, context, arg, dtype)
        args = (*args, new)
    counts = [_count_sparse(arg, program.is_sparse) for arg in args]
    cases = [count_cases(arg, program.is_sparse) for arg in args]
    place = cases.index(max(cases))
    largest = args[place]
    same = expression_dtype(largest, program.dtypes) == dtype
    reason = ""
    if not MERGED_TERMS.allows(sum(counts)):
        reason = (
            f"{counts[place]} of the sparse terms, for a kernel adds up {MERGED_TERMS.most} of them"
        )
    elif not LOOP_CASES.allows(cases_of_sum(args, program.is_sparse)):
        reason = "in one kernel with the other terms it has too many cases"
    if reason and cases[place] > 1 and same:
        program, part = with_temporary(program, context, largest, free_indices(largest), reason)
        args = (*args[:place], part, *args[place + 1 :])
    same_args = all(new is old for new, old in zip(args, expr.args, strict=True))
    return program, expr if same_args else replace(expr, args=args)


def _count_sparse(expr: Expr, leaves_out: Callable[[Access], bool]) -> int:
    """Count the added terms with an operand that omits coordinates."""
    return sum(any(map(leaves_out, accesses(term.body))) for term in split_terms(expr))


def check_together(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> None:
    """Raise ScheduleError where the loops of one kernel would merge too many sparse terms."""

    def leaves_out(access: Access) -> bool:
        return is_sparse(operands[access.tensor].type.format)

    terms = split_terms(assignment.value)
    cases = max(count_cases(term.body, leaves_out) for term in terms)
    if not SCHEDULED_CASES.allows(cases):
        raise ScheduleError(
            f"Expected products of up to {SCHEDULED_CASES.most} cases where a schedule says which "
            f"loops there are, found {cases}: one for each set of sparse operands that may be "
            "present",
            hint="leave the schedule open, or compute some of the sums first",
        )
    count = _count_sparse(assignment.value, leaves_out)
    if is_sparse(request.type.format) and not SCHEDULED_TERMS.allows(count):
        raise ScheduleError(
            f"Expected up to {SCHEDULED_TERMS.most} sparse terms where a schedule says which "
            f"loops there are, found {count}: a kernel has a case for each set of them",
            hint="leave the schedule open, or add some of them up first",
        )


RULE = Rule("sum_in_chunks", Phase.NECESSARY, apply, result)
