"""Sums of many sparse terms, a few terms in turn.

A loop that merges n operands has a case for each set of them that may be present, 2^n - 1 in all:

    C = A + B + D + E + F + G    →    T = A + B + D + E;  C = T + F + G
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taco_py.concrete.cases import CASES, MERGED, cases_of_sum, count_cases
from taco_py.concrete.terms import map_terms, split_terms
from taco_py.diagnostics.errors import ScheduleError
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.dtypes import DType, expression_dtype
from taco_py.notation.nodes import Access, Assignment, Call, Expr
from taco_py.notation.tree import map_children
from taco_py.plan.ir.goal import Request
from taco_py.plan.ir.nodes import Operand
from taco_py.plan.splitter import Splitter

MOST = 6
"""Sparse terms that one kernel adds up at most, where a schedule says which loops there are."""


def sum_in_turn(splitter: Splitter, value: Expr) -> Expr:
    """`value` with sums of more sparse terms than one kernel adds up partly in temporaries.

    Terms stay in order, so that numbers are rounded as in the sum as it is written; where partial
    sums are of another type than the whole, it stays whole. The terms of a dense result are left:
    its kernel adds them up one after another.
    """
    if splitter.request.type.format.is_dense:
        return map_terms(value, lambda term: added_in_turn(splitter, term))
    return added_in_turn(splitter, value)


def added_in_turn(splitter: Splitter, expr: Expr) -> Expr:
    """`expr` with each of its sums added up a few sparse terms in turn."""
    if not isinstance(expr, Call) or not expr.operator.additive:
        return map_children(expr, lambda child: added_in_turn(splitter, child))
    return _in_turn(splitter, expr, expression_dtype(expr, splitter.dtypes))


def _in_turn(splitter: Splitter, expr: Expr, whole: DType) -> Expr:
    if not isinstance(expr, Call) or not expr.operator.additive:
        return added_in_turn(splitter, expr)
    args = tuple(_in_turn(splitter, arg, whole) for arg in expr.args)
    counts = [_count_sparse(splitter, arg) for arg in args]
    cases = [count_cases(arg, splitter.is_sparse) for arg in args]
    place = cases.index(max(cases))
    largest = args[place]
    same = expression_dtype(largest, splitter.dtypes) == whole
    why = ""
    if sum(counts) > MERGED:
        why = f"{counts[place]} of the sparse terms, for a kernel adds up {MERGED} of them"
    elif cases_of_sum(args, splitter.is_sparse) > CASES:
        why = "in one kernel with the other terms it has too many cases"
    if why and cases[place] > 1 and same:
        part = splitter.temporary(largest, free_indices(largest), why)
        args = (*args[:place], part, *args[place + 1 :])
    return replace(expr, args=args)


def _count_sparse(splitter: Splitter, expr: Expr) -> int:
    """The added terms with an operand that does not store everything."""
    return sum(any(map(splitter.is_sparse, accesses(term.body))) for term in split_terms(expr))


def check_together(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> None:
    """Raise ScheduleError where the loops of one kernel would merge too many sparse terms."""

    def is_sparse(access: Access) -> bool:
        return not operands[access.tensor].type.format.is_dense

    terms = split_terms(assignment.value)
    cases = max(count_cases(term.body, is_sparse) for term in terms)
    if cases > 2**MOST:
        raise ScheduleError(
            f"Expected products of up to {2**MOST} cases where a schedule says which loops there "
            f"are, found {cases}: one for each set of sparse operands that may be present",
            hint="leave the schedule open, or compute some of the sums first",
        )
    count = len(terms)
    if not request.type.format.is_dense and count > MOST:
        raise ScheduleError(
            f"Expected up to {MOST} sparse terms where a schedule says which loops there are, "
            f"found {count}: a kernel has a case for each set of them",
            hint="leave the schedule open, or add some of them up first",
        )
