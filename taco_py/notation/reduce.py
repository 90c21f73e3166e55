"""Sums that the notation leaves unsaid, made explicit.

The rule of TACO (Kjolstad et al. 2017, section 3), extended to sums inside products: an index that
is not on the left-hand side and that no explicit sum binds is summed within each additive term that
uses it, over the smallest sub-expression that holds all of its uses there.

    A[i,j]*x[j] + B[i,j]*z[j] + b[i]  ->  sum(j, A[i,j]*x[j]) + sum(j, B[i,j]*z[j]) + b[i]
    (A[i,j] + B[i,j]) * x[j]          ->  sum(j, (A[i,j] + B[i,j]) * x[j])
    B[i,k] * (C[k,j] * x[j])          ->  sum(k, B[i,k] * sum(j, C[k,j] * x[j]))
    b[i] / (A[i,j] * x[j])            ->  b[i] / sum(j, A[i,j] * x[j])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from taco_py.notation.checks import check_bindings, free_of_parts
from taco_py.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.notation.operators import ADD
from taco_py.notation.tree import map_children


def insert_reductions(assignment: Assignment) -> Assignment:
    """The assignment with a `Reduce` for each index that is summed by the rule above.

    Of several indices summed at one place the first used is the outermost. The result names every
    sum, so that applying the function again returns it unchanged.

    Raises:
        NotationError: a sum rebinds an index of the left-hand side or of a sum around it
        (`check_bindings`).
    """
    result = with_sums(assignment)
    check_bindings(result)
    return result


def with_sums(assignment: Assignment) -> Assignment:
    """Insert the same sums into an assignment that has none, so that none can be wrong."""
    free = free_of_parts(assignment.value)
    value = _reduced(assignment.value, assignment.target.indices, free)
    return assignment if value is assignment.value else replace(assignment, value=value)


Free = Mapping[int, tuple[str, ...]]
"""The free indices of each part of an expression, by its identity."""


def _reduced(expr: Expr, kept: Collection[str], free: Free) -> Expr:
    """`expr` with sums over all of its free indices but those that are `kept`."""
    if isinstance(expr, Call) and expr.operator.additive:
        return map_children(expr, lambda term: _reduced(term, kept, free))
    here = _summed_here(expr, kept, free)
    inside = {*kept, *here, expr.index} if isinstance(expr, Reduce) else {*kept, *here}
    result = map_children(expr, lambda child: _reduced(child, inside, free))
    for index in reversed(here):
        result = Reduce(ADD, index, result, expr.span)
    return result


def _bare(expr: Call) -> list[tuple[str, ...]]:
    """The indices of operands that stand by themselves where the operator is not linear in them.

    In b[i] / A[i,j] the quotient is the smallest product that holds j, in b[i] / (A[i,j] * x[j])
    the denominator is.
    """
    return [
        arg.indices
        for arg, linear in zip(expr.args, expr.operator.linear, strict=False)
        if isinstance(arg, Access) and not linear and not expr.operator.additive
    ]


def _summed_here(expr: Expr, kept: Collection[str], free: Free) -> tuple[str, ...]:
    """The indices to sum for which no single part of `expr` holds all uses."""
    left = tuple(index for index in free[id(expr)] if index not in kept)
    match expr:
        case Reduce():
            return ()
        case Call():
            uses = Counter(index for arg in expr.args for index in free[id(arg)])
            return tuple(
                index
                for index in left
                if uses[index] > 1 or any(index in each for each in _bare(expr))
            )
        case _:
            return left
