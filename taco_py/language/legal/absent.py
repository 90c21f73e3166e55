"""Fill values of expressions: their values where operands store nothing.

    fill(A[i,j])         0         of a sparse operand; a full one has none
    fill(2)              2
    fill(filled(A, -1))  -1        the compiler's own operator, of operands with another fill value
    fill(f(a, b))        z         where the fill of an argument is an annihilator z of f there
    fill(f(a, b))        f of the fills of all arguments otherwise: a number is stored everywhere,
                         so that it annihilates nothing, and 0 * x is NaN where a full x is inf
    fill(where(c, a, b)) a's or b's, as the fill of c chooses; of c without one, that of both
    fill(max(j, a))      a's       where f(v, v) = v of the fill v of what is reduced

An expression differs from its fill value where one of its arguments does; where arguments have an
annihilator for their fill, all of them have to. A choice differs where its condition or the
argument that the condition chooses differs; where both arguments have the same fill value, one of
them has to differ.

(Henry, Hsu et al. 2021, Compilation of Sparse Array Programming Models, section 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import copysign, isfinite
from typing import assert_never

from taco_py.language.notation.dtypes import DType, operand_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import COMPILER, FILLED, SELECTED, Number, Operator
from taco_py.language.notation.tree import is_reduction_by

Fills = Callable[[Access], Number | None]
"""Function from an access to its fill value; None for a full tensor."""


def same(one: Number | None, other: Number | None) -> bool:
    """Tell whether two numbers are equal, with equal signs of zeros, or both NaN.

    None equals nothing.
    """
    if one is None or other is None:
        return False
    if one == 0 == other:
        return _is_negative(one) == _is_negative(other)
    return bool(one == other or (one != one and other != other))


def _is_negative(zero: Number) -> bool:
    """Tell whether a zero is -0.0; signs of complex zeros are not distinguished."""
    return isinstance(zero, float) and copysign(1, zero) < 0


def fill_of(expr: Expr, fills: Fills, dtypes: Mapping[str, DType] | None = None) -> Number | None:
    """Find the value of an expression where operands store nothing, None where it has none.

    dtypes  of the operands, to compute in their types: fill(A[i,j] - 1) is 255 in uint8; None where
            the expression says itself what wraps (`with_wraps`)
    """
    match expr:
        case Access():
            return fills(expr)
        case Literal(value):
            return value
        case Call(operator, args):
            arg_fills = [arg_fill(operator, a, fill_of(a, fills, dtypes)) for a in args]
            if dtypes is None:
                return call_fill(operator_of(expr), arg_fills)
            return typed_fill(expr, arg_fills, dtypes)
        case Reduce(operator, _, body):
            return reduced_fill(operator, fill_of(body, fills, dtypes))
        case _:
            assert_never(expr)


def masked_fill(expr: Expr) -> Number | None:
    """Find the value of an expression where its mask is false, None where it has no mask.

    max(j, filled(selected(m[i], x[i,j], -inf), -inf))   →  -inf
    """
    match expr:
        case Reduce(operator, _, body):
            return reduced_fill(operator, masked_fill(body))
        case Call(operator, (Call(inner, _), Literal(value))):
            return value if operator == FILLED and inner == SELECTED else None
    return None


def is_number(expr: Expr) -> bool:
    """Tell whether an expression is made of literals alone, so that it is a number."""
    match expr:
        case Literal():
            return True
        case Call(_, args):
            return all(map(is_number, args))
        case Reduce(_, _, body):
            return is_number(body)
    return False


def operator_of(call: Call) -> Operator:
    """Return the operator of a call, without annihilators for arguments that are literals.

    0 * x[i] is NaN where x[i] is infinite; 0 * A[i,j] is absent where A[i,j] is
    """
    operator, args = call.operator, call.args
    if operator.name in COMPILER:
        return operator
    places = tuple(
        place
        for place, arg in enumerate(args)
        if is_number(arg) and operator.annihilated(place, fill_of(arg, _no_fill)) is not None
    )
    return replace(operator, numbers=places) if places else operator


def _no_fill(access: Access) -> Number | None:
    return None


def arg_fill(operator: Operator, arg: Expr, fill: Number | None) -> Number | None:
    """Find the value that an operator reads for an argument where the argument is not stored.

    A reduction to another number than 0 is an ordinary value, also over no elements: a maximum of
    -inf does not annihilate a sum. The compiler's internal operators look at the operand of a
    reduction, and an operator continues a reduction by itself: min(d, min(i, b)) is absent where
    both are.
    """
    value = isinstance(arg, Reduce) and fill is not None and fill != 0
    goes_on = is_reduction_by(arg, operator)
    return None if value and not goes_on and operator.at_absent is None else fill


def differing(operator: Operator, fills: Sequence[Number | None]) -> tuple[tuple[int, ...], ...]:
    """Group arguments so that a value differs from its fill only where every group has a differing
    argument.

    a * b, of fills 0, 0             →  (0), (1)         a and b
    a + b                            →  (0, 1)           a or b
    where(c, a, b), of False, 1, 0   →  (0, 2)           c or b
    where(c, a, b), of None, 0, 0    →  (1, 2)           a or b
    """
    if operator.chooses:
        return _choosing(*fills) or (tuple(range(len(fills))),)
    alone = [
        place for place, fill in enumerate(fills) if operator.annihilated(place, fill) is not None
    ]
    return tuple((place,) for place in alone) or (tuple(range(len(fills))),)


def _choosing(
    condition: Number | None, then: Number | None, orelse: Number | None
) -> tuple[tuple[int, ...], ...]:
    """Group the arguments of a choice that has a fill value, as `differing` does."""
    by_condition = () if condition is None else ((0, 1 if condition else 2),)
    either = ((1, 2),) if same(then, orelse) else ()
    return by_condition + either


def call_fill(
    operator: Operator, fills: Sequence[Number | None], dtype: DType | None = None
) -> Number | None:
    """Find the value of an operator for arguments with these fill values, None where it has none.

    dtype  of the computation; None for that of the fill values
    """
    if operator.everywhere:
        return None
    if operator.chooses:
        condition, then, orelse = fills
        if condition is None:
            return then if same(then, orelse) else None
        return then if condition else orelse
    for place, fill in enumerate(fills):
        value = operator.annihilated(place, fill)
        if value is not None:
            return value
    if any(fill is None for fill in fills):
        return None
    value = operator.at(tuple(fills), dtype)
    invented = value != value and all(fill == fill for fill in fills)
    return None if invented else value  # complex numbers may have a value where real ones have none


def typed_fill(
    call: Call, fills: Sequence[Number | None], dtypes: Mapping[str, DType]
) -> Number | None:
    """Find the value of an operation for these fill values, in the type of the computation.

    A value of 0 or 1 of small integers is the same in any type, which is not looked up then.
    """
    operator = operator_of(call)
    value = call_fill(operator, fills)
    small = all(isinstance(fill, int) and 0 <= fill < 128 for fill in fills)
    if value is None or (small and value in (0, 1)):
        return value
    return call_fill(operator, fills, operand_dtype(call, dtypes))


def reduced_fill(operator: Operator, fill: Number | None) -> Number | None:
    """Find a reduction of any number of equal fill values, None where the number matters.

    The product of zeros is 0, but 1 over no elements; over no elements there is no maximum.
    """
    if fill is None or same(fill, operator.identity) or same(fill, operator.of_none):
        return fill
    counts = not operator.needs_elements or operator.of_none is not None
    return None if counts or not absorbs(operator, fill) else fill


def absorbs(operator: Operator, fill: Number) -> bool:
    """Tell whether an operator is idempotent on a fill value v: f(v, v) = v."""
    return same(operator.at((fill, fill)), fill)


# ---------------------------------------------------------------- one part of an expression


def without(expr: Expr, part: Expr) -> Number | None:
    """Find the value of an expression where a part of it is absent; None where other parts decide.

    A[i,j] * x[j] is 0 without A[i,j], A[i,j] > 1 is False; A[i,j] + b[i] is what b[i] is.
    """
    if expr == part:
        return 0
    match expr:
        case Access():
            return None
        case Literal(value):
            return value
        case Call(operator, args):
            arg_fills = [arg_fill(operator, a, without(a, part)) for a in args]
            return call_fill(operator_of(expr), arg_fills)
        case Reduce(operator, _, body):
            return reduced_fill(operator, without(body, part))
        case _:
            assert_never(expr)


def restricts(expr: Expr, part: Expr) -> bool:
    """Tell whether an expression is zero wherever a part of it, as an access, is not stored.

    A[i,j] * x[j] / d[i] is zero without A[i,j]; A[i,j] + b[i] is not.
    """
    if expr == part:
        return True
    value = without(expr, part)
    return value is not None and value == 0 and holds(expr, part)


def holds(expr: Expr, part: Expr) -> bool:
    """Tell whether an expression is a part or contains it."""
    if expr == part:
        return True
    match expr:
        case Call(_, args):
            return any(holds(arg, part) for arg in args)
        case Reduce(_, _, body):
            return holds(body, part)
    return False


def depends_on_presence(expr: Expr, part: Expr) -> bool:
    """Tell whether an operation on a part depends on whether its argument is stored."""
    if isinstance(expr, Reduce):
        return depends_on_presence(expr.body, part)
    if not isinstance(expr, Call):
        return False
    operation_depends = expr.operator.at_absent is not None and holds(expr, part)
    return operation_depends or any(depends_on_presence(arg, part) for arg in expr.args)


def differs_where_absent(expr: Expr, part: Expr, makes_special: Callable[[Call], bool]) -> bool:
    """Tell whether an expression has another value where a part is absent than where it is 0.

    A[i] / d[i] is 0 where A stores nothing, and 0 / 0 where A stores a zero and d is 0; so with
    infinity for a factor. -A[i] and 2 * A[i] are zero either way, and so is A[i] * A[i].

    makes_special  whether an operation may make another number than 0 of 0 and its other arguments
    """
    if isinstance(expr, Reduce):
        return differs_where_absent(expr.body, part, makes_special)
    if not isinstance(expr, Call):
        return False
    if depends_on_presence(expr, part):
        return True
    if restricts(expr, part) and makes_special(expr):
        factors = [arg for arg in expr.args if not restricts(arg, part)]
        if not all(map(is_factor, factors)):
            return True
    return any(differs_where_absent(arg, part, makes_special) for arg in expr.args)


def divides(expr: Call) -> bool:
    """Tell whether an operation divides, so that 0 over 0 is NaN."""
    return expr.operator.divides


def is_factor(expr: Expr) -> bool:
    """Tell whether an expression is a finite literal other than 0, which times 0 is 0."""
    return isinstance(expr, Literal) and expr.value != 0 and isfinite(abs(expr.value))


def is_everywhere(expr: Expr, tensor_is_full: Callable[[str], bool], nothing: Number = 0) -> bool:
    """Tell whether an expression has a value at every coordinate, whatever sparse operands store.

    A product has one where all of its factors have, a sum where one of its terms has.

    tensor_is_full  whether a tensor stores every coordinate, by its name
    nothing         the number that counts as no value
    """
    fill = fill_of(expr, lambda access: None if tensor_is_full(access.tensor) else 0)
    return not same(fill, nothing)


def tells_zero(expr: Expr) -> bool:
    """Tell whether an operation distinguishes a stored zero from an absent element.

    It is to a semiring's product: min(0, -1) is -1 where both are stored, 0 == 0 is true.
    """
    if not isinstance(expr, Call) or len(expr.args) != 2 or expr.operator.at_absent is not None:
        return False
    zeros = [place for place in (0, 1) if expr.operator.annihilators[place] == 0]
    operands = (2, -3) if expr.operator.divides else (0, 2, -3)
    pairs = [
        (0, operand) if place == 0 else (operand, 0) for place in zeros for operand in operands
    ]
    return any(expr.operator.at(pair) != 0 for pair in pairs)
