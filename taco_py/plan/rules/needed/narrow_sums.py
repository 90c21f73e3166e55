"""Sums of an integer or bool type that adding up in the result's type would not respect.

y[i] = b[i] + sum(j, A[i,j] * x[j]) with A and x of int8 and b of float64: the sum wraps by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from taco_py.concrete.terms import map_terms, split_terms
from taco_py.notation.checks import free_indices
from taco_py.notation.dtypes import DType, expression_dtype
from taco_py.notation.nodes import Assignment, Expr, Reduce
from taco_py.plan.algebra.products import as_product
from taco_py.plan.ir.nodes import Operand
from taco_py.plan.splitter import Splitter


def has_narrow_sums(assignment: Assignment, operands: Mapping[str, Operand]) -> bool:
    """Whether a sum's own type wraps or saturates where adding up in the result's would not."""
    dtypes = {name: np.dtype(o.type.dtype) for name, o in operands.items()}
    whole = expression_dtype(assignment.value, dtypes)
    summed = _summed(assignment.value, dtypes)
    return any(_is_narrow(expression_dtype(body, dtypes), whole) for body in summed)


def _summed(expr: Expr, dtypes: Mapping[str, DType]) -> Iterator[Expr]:
    """What is summed in an expression, also in factors, out of which a sum can be moved."""
    for term in split_terms(expr):
        if term.reduced:
            yield term.body
        product = as_product(term.body, dtypes)
        for factor in () if product is None else product.factors:
            yield from _summed(factor, dtypes)


def narrow_sums(splitter: Splitter, value: Expr) -> Expr:
    """Compute first each sum whose own type wraps or saturates where the result's would not."""
    dtypes = splitter.dtypes
    whole = expression_dtype(value, dtypes)

    def narrow(expr: Expr) -> Expr:
        own = expression_dtype(expr, dtypes) if isinstance(expr, Reduce) else whole
        if not _is_narrow(own, whole):
            return expr
        why = f"its sum is of type {own}, the result's of type {whole}"
        return splitter.temporary(expr, free_indices(expr), why)

    return map_terms(value, narrow)


def _is_narrow(own: DType, whole: DType) -> bool:
    return own != whole and own.kind in "bui"
