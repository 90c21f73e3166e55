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
from taco_py.language.notation.operators import ADD, FILLED, KEPT, MUL, SELECTED, STORED, Operator
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
    """Make the mask that allows what another does not.

    >>> A = sp.csr_array([[1.0, 0.0], [0.0, 3.0]])
    >>> tp.einsum("i,j->ij", np.ones(2), np.ones(2), mask=tp.complement(A))
    array([[0., 1.],
           [1., 0.]])

    mask  a sparse or dense tensor, for `compile` a format or its name, or `by_value` of one
    """
    found = _mask_or_name(mask)
    return Mask(found.array, found.by_value, not found.complement)


def by_value(mask: Any) -> Mask:
    """Make the mask that allows what is not 0 in a tensor, whether or not it is stored.

    >>> A = sp.csr_array((np.array([1.0, 0.0]), ([0, 1], [0, 1])), shape=(2, 2))
    >>> tp.einsum("i,j->ij", np.ones(2), np.ones(2), mask=tp.by_value(A)).toarray()
    array([[1., 0.],
           [0., 0.]])

    mask  a sparse tensor, whose stored zeros it leaves out; a dense one is meant by value anyway;
          for `compile` a format or its name
    """
    found = _mask_or_name(mask)
    return Mask(found.array, True, found.complement)


def mask_of(given: Any) -> Mask:
    """Return a mask itself, or the one that a tensor is meant as. Raises OperandTypeError."""
    found = _mask_or_name(given)
    if isinstance(found.array, str):
        raise _no_tensor(found.array)
    return found


def _mask_or_name(given: Any) -> Mask:
    """Return a mask, maybe of a format's name. Raises OperandTypeError for None."""
    if given is None:
        raise _no_tensor(given)
    return given if isinstance(given, Mask) else Mask(given)


def _no_tensor(found: Any) -> OperandTypeError:
    return OperandTypeError(
        f"Expected a tensor for a mask, found {found!r}",
        hint="pass an array, a scipy.sparse array or a Tensor of the result's shape",
    )


# ---------------------------------------------------------------- assignments


def with_mask(value: Expr, allowed: Expr, zero: Literal | None) -> Expr:
    """Compute a value where a condition is true and nowhere else.

    sum(k, a * b), stored(M)     →  stored(M) * sum(k, a * b)
    min(k, filled(a, inf)), c    →  min(k, filled(selected(c, a, inf), inf))

    allowed  a truth, which is False where the mask stores nothing, or for a complement True
    zero     what the value is elsewhere; None for 0
    """
    if isinstance(value, Reduce) and _reduces_to(value.operator, zero):
        return replace(value, body=with_mask(value.body, allowed, zero))
    if zero is None:
        if is_call_of(allowed, STORED) and _is_product(value):
            return Call(MUL, (allowed, value), value.span)
        return Call(KEPT, (value, allowed), value.span)
    if isinstance(value, Literal):
        return Call(WHERE, (allowed, value, zero), value.span)
    inner = value.args[0] if _is_filled(value) else without_fill(value, np.dtype(zero.dtype))
    if is_call_of(allowed, STORED):
        found = Call(KEPT, (inner, allowed))
    else:
        found = Call(SELECTED, (allowed, inner, zero))
    return Call(FILLED, (found, zero), value.span)


def masked(assignment: Assignment, allowed: Expr, zero: Literal | None, dtype: DType) -> Assignment:
    """Compute an assignment where a condition is true; what is added to stays as it is elsewhere.

    y[i] *= a[i]  →  y[i] *= where(c, a[i], 1)

    zero   what the value is elsewhere, None for 0, where nothing is added to
    dtype  of the value
    """
    operator, value = assignment.operator, assignment.value
    neutral = None if operator is None else operator.identity_of(dtype)
    if neutral is None or neutral == (0 if zero is None else zero.value):
        return replace(assignment, value=with_mask(value, allowed, zero))
    kept = Call(WHERE, (allowed, value, Literal(neutral, dtype=dtype.name)), value.span)
    return replace(assignment, value=kept)


def _reduces_to(operator: Operator, zero: Literal | None) -> bool:
    """Tell whether a reduction other than a sum makes the zero of any number of zeros, none among
    them, so that a mask may be asked for each of them."""
    number = 0 if zero is None else zero.value
    if operator.additive or operator.at((number, number)) != number:
        return False
    return zero is not None or operator.identity == 0


def _is_filled(value: Expr) -> TypeGuard[Call]:
    return is_call_of(value, FILLED)


def _is_product(value: Expr) -> bool:
    """Tell whether a value is a product, with sums around it and nowhere else."""
    _, value = peel_reductions(value, ADD)
    return not any(isinstance(node, Reduce) or is_additive(node) for node, _ in walk(value))
