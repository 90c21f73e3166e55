"""Compute sums first that wrap in their own integer type before they are added to a wider result.

    y[i] = b[i] + sum(j, A[i,j] * x[j])    A and x of int8, b of float64
    → T[i] = sum(j, A[i,j] * x[j]);  y[i] = b[i] + T[i]

A kernel adds up in one type, which would not wrap where the sum has to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.legal.types import sum_wraps_alone
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype
from taco_py.language.notation.nodes import Assignment, Expr, Reduce
from taco_py.planner.algebra.products import as_product
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, terms
from taco_py.planner.temporaries import with_temporary


def has_narrow_sums(assignment: Assignment, operands: Mapping[str, Operand]) -> bool:
    """Tell whether a sum wraps or saturates in its own type where the result's type would not."""
    dtypes = {name: np.dtype(o.type.dtype) for name, o in operands.items()}
    dtype = expression_dtype(assignment.value, dtypes)
    summed = _summed(assignment.value, dtypes)
    return any(sum_wraps_alone(expression_dtype(body, dtypes), dtype) for body in summed)


def _summed(expr: Expr, dtypes: Mapping[str, DType]) -> Iterator[Expr]:
    """Yield the bodies of sums in an expression, also in factors."""
    for term in split_terms(expr):
        if term.reduced:
            yield term.body
        product = as_product(term.body, dtypes)
        for factor in () if product is None else product.factors:
            yield from _summed(factor, dtypes)


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Compute a sum first that wraps or saturates where the result's type would not."""
    expr = site.term(program)
    if not isinstance(expr, Reduce):
        return None
    dtypes = program.dtypes
    sum_dtype, dtype = (expression_dtype(value, dtypes) for value in (expr, program.last.value))
    if not sum_wraps_alone(sum_dtype, dtype):
        return None
    reason = f"its sum is of type {sum_dtype}, the result's of type {dtype}"
    program, access = with_temporary(program, context, expr, free_indices(expr), reason)
    return Rewrite(site.put(program, access), reason)


RULE = Rule("narrow_sums", Phase.NECESSARY, apply, terms)
