"""Sums over the entries of a sparse operand, and the elements between them counted.

    v[a] = sum(i, (X[i,a] - m[a]) * (X[i,a] - m[a]))
    → v[a] = sum(i, nonzero(X[i,a]) * (X[i,a] - m[a]) * (X[i,a] - m[a]))
           + (size_i - sum(i, nonzero(X[i,a]))) * (-m[a] * -m[a])

Where X is 0, what is summed is the same for every i, for what else has that index is multiplied
by X: it is added up as often as there are such i. Unlike multiplying out, that loses no digits of a
difference: each part is one of the sum as it is written, and the count is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from taco_py.compiler.concrete.terms import reductions, summed
from taco_py.language.legal.stored import is_sparse
from taco_py.language.legal.types import rounds
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype, is_weak
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL, NEG, NONZERO, SUB
from taco_py.language.notation.tree import (
    is_call_of,
    map_children,
    peel_reductions,
)
from taco_py.planner.ir.index_sizes import Sizes
from taco_py.planner.ir.nodes import Operand


def without_gaps(assignment: Assignment, sizes: Sizes) -> Assignment:
    """Return the assignment with sums over entries and counted gaps; the same where none is."""
    value = _rewritten(assignment.value, sizes)
    return assignment if value is assignment.value else replace(assignment, value=value)


def is_over_entries(expr: Expr) -> bool:
    """Tell whether an expression is a sum that goes over entries alone."""
    _, body = peel_reductions(expr, ADD)
    first = body
    while is_call_of(first, MUL):
        first = first.args[0]
    return body is not expr and is_call_of(first, NONZERO)


def _rewritten(expr: Expr, sizes: Sizes) -> Expr:
    entries = _over_entries(expr, sizes) if isinstance(expr, Reduce) else None
    return entries or map_children(expr, lambda child: _rewritten(child, sizes))


def _over_entries(sum_: Reduce, sizes: Sizes) -> Expr | None:
    """Return a sum, with those directly inside it, over the entries of one of its operands."""
    indices, body = peel_reductions(sum_, ADD)
    dtype = expression_dtype(body, sizes.dtypes)
    if not rounds(dtype):
        return None  # whole numbers lose no digits where they are multiplied out
    real = np.empty(0, dtype).real.dtype
    for access in _sparse(body, sizes.operands):
        between = _at_zero(body, access, sizes.dtypes)
        if between is None or not _is_polynomial(body, access):
            continue
        same = set(access.indices).difference(free_indices(between))
        restricted = [index for index in indices if index in same]
        if not restricted:
            continue
        left = {*access.indices, *free_indices(between)}
        lost = [index for index in indices if index not in left]
        if not sizes.are_exact((*restricted, *lost), real):
            continue
        mask: Expr = Call(NONZERO, (access,))
        if sizes.dtypes[access.tensor] != dtype:
            mask = Call(MUL, (mask, Literal(1, dtype=real.name)))
        gaps: Expr = Call(SUB, (sizes.product(restricted, real), summed(mask, restricted)))
        if lost:
            gaps = Call(MUL, (gaps, sizes.product(lost, real)))
        remaining = (index for index in indices if index not in restricted and index not in lost)
        entries = summed(Call(MUL, (mask, body)), indices)
        return Call(ADD, (entries, summed(Call(MUL, (gaps, between)), remaining)))
    return None


def _sparse(body: Expr, operands: Mapping[str, Operand]) -> Iterator[Access]:
    """Yield the sparse operands of a body as they are accessed, but for those in sums inside it."""
    inside = {access for sum_ in reductions(body) for access in accesses(sum_)}
    for access in dict.fromkeys(accesses(body)):
        if access not in inside and is_sparse(operands[access.tensor].type.format):
            yield access


def _is_polynomial(expr: Expr, access: Access) -> bool:
    """Tell whether an expression has a finite value where the access is 0 and all else is
    finite."""
    if not isinstance(expr, Call):
        return True
    ways = expr.operator.linear[: len(expr.args)]
    return all(
        (expr.operator.additive or linear) and _is_polynomial(arg, access)
        for arg, linear in zip(expr.args, ways, strict=True)
        if access in accesses(arg)
    )


def _at_zero(expr: Expr, access: Access, dtypes: Mapping[str, DType]) -> Expr | None:
    """Return an expression where the access is 0, in the type that it has; None where it is 0
    itself."""
    if expr == access:
        return None
    if not isinstance(expr, Call):
        return expr
    args = [_at_zero(arg, access, dtypes) for arg in expr.args]
    if all(new is old for new, old in zip(args, expr.args, strict=True)):
        return expr
    left = [
        (arg, sign) for arg, sign in zip(args, expr.operator.signs, strict=False) if arg is not None
    ]
    if None in args and not left:
        return None  # a product with it, or a sum of nothing else
    dtype = expression_dtype(expr, dtypes)
    if len(left) == 1:
        ((arg, sign),) = left
        if not is_weak(arg) and expression_dtype(arg, dtypes) == dtype:
            return arg if sign > 0 else Call(NEG, (arg,))
    zero = Literal(0, dtype=dtype.name)
    return replace(expr, args=tuple(zero if arg is None else arg for arg in args))
