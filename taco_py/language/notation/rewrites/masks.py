"""Masks: where a result is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.functions.function_table import WHERE
from taco_py.language.notation.nodes import Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, FILLED, KEEP, MUL, SELECTED, STORED, Operator
from taco_py.language.notation.rewrites.semirings import without_fill
from taco_py.language.notation.tree import (
    is_additive,
    is_call_of,
    peel_reductions,
    walk,
)


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A tensor that says where a result is computed.

    by_value    where its elements are not 0; else where it stores something
    complement  everywhere else
    """

    array: Any
    by_value: bool = False
    complement: bool = False


def complement(mask: Any) -> Mask:
    """Return the complement of a mask, which computes elements where the mask does not.

    >>> A = sp.csr_array([[1.0, 0.0], [0.0, 3.0]])
    >>> tp.einsum("i,j->ij", np.ones(2), np.ones(2), mask=tp.complement(A))
    array([[0., 1.],
           [1., 0.]])

    mask  a sparse or dense tensor, for `compile` a format or its name, or `by_value` of one
    """
    base = _mask_or_name(mask)
    return Mask(base.array, base.by_value, not base.complement)


def by_value(mask: Any) -> Mask:
    """Return the mask that selects nonzero values of a tensor, whether or not they are stored.

    >>> A = sp.csr_array((np.array([1.0, 0.0]), ([0, 1], [0, 1])), shape=(2, 2))
    >>> tp.einsum("i,j->ij", np.ones(2), np.ones(2), mask=tp.by_value(A)).toarray()
    array([[1., 0.],
           [0., 0.]])

    mask  a sparse tensor, whose stored zeros it leaves out; a dense one is meant by value anyway;
          for `compile` a format or its name
    """
    base = _mask_or_name(mask)
    return Mask(base.array, True, base.complement)


def mask_of(mask: Any) -> Mask:
    """Return a mask itself, or the mask that a tensor stands for. Raises OperandTypeError."""
    result = _mask_or_name(mask)
    if isinstance(result.array, str):
        raise _no_tensor(result.array)
    return result


def _mask_or_name(mask: Any) -> Mask:
    """Return a mask, possibly of a format's name. Raises OperandTypeError for None."""
    if mask is None:
        raise _no_tensor(mask)
    return mask if isinstance(mask, Mask) else Mask(mask)


def _no_tensor(mask: Any) -> OperandTypeError:
    return OperandTypeError(
        f"Expected a tensor for a mask, found {mask!r}",
        hint="pass an array, a scipy.sparse array or a Tensor of the result's shape",
    )


# ---------------------------------------------------------------- assignments


def with_mask(value: Expr, allowed: Expr, zero: Literal | None) -> Expr:
    """Compute a value only where a condition is true.

    sum(k, a * b), stored(M)     →  stored(M) * sum(k, a * b)
    min(k, filled(a, inf)), c    →  min(k, filled(selected(c, a, inf), inf))

    allowed  the condition, False where the mask stores nothing (True for a complement)
    zero     the value elsewhere; None for 0
    """
    if isinstance(value, Reduce) and _reduces_to(value.operator, zero):
        return replace(value, body=with_mask(value.body, allowed, zero))
    if zero is None:
        if is_call_of(allowed, STORED) and _is_product(value):
            return Call(MUL, (allowed, value), value.span)
        return Call(KEEP, (value, allowed), value.span)
    if isinstance(value, Literal):
        return Call(WHERE, (allowed, value, zero), value.span)
    inner = value.args[0] if _is_filled(value) else without_fill(value, np.dtype(zero.dtype))
    if is_call_of(allowed, STORED):
        selected = Call(KEEP, (inner, allowed))
    else:
        selected = Call(SELECTED, (allowed, inner, zero))
    return Call(FILLED, (selected, zero), value.span)


def masked(assignment: Assignment, allowed: Expr, zero: Literal | None, dtype: DType) -> Assignment:
    """Compute an assignment where a condition is true; accumulation leaves other elements
    unchanged.

    y[i] *= a[i]  →  y[i] *= where(c, a[i], 1)

    zero   the value elsewhere, None for 0; unused by accumulation
    dtype  of the value
    """
    operator, value = assignment.operator, assignment.value
    neutral = None if operator is None else operator.identity_of(dtype)
    if neutral is None or neutral == (0 if zero is None else zero.value):
        return replace(assignment, value=with_mask(value, allowed, zero))
    masked_value = Call(WHERE, (allowed, value, Literal(neutral, dtype=dtype.name)), value.span)
    return replace(assignment, value=masked_value)


def _reduces_to(operator: Operator, zero: Literal | None) -> bool:
    """Tell whether a reduction other than a sum reduces zeros, or no elements, to zero.

    The mask may then select elements inside the reduction.
    """
    number = 0 if zero is None else zero.value
    if operator.additive or operator.at((number, number)) != number:
        return False
    return zero is not None or operator.identity == 0


def _is_filled(value: Expr) -> TypeGuard[Call]:
    return is_call_of(value, FILLED)


def _is_product(value: Expr) -> bool:
    """Tell whether a value is a product, possibly inside sums but not of sums."""
    _, value = peel_reductions(value, ADD)
    return not any(isinstance(node, Reduce) or is_additive(node) for node, _ in walk(value))
