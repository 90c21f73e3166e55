"""Expressions that any two kernels compute bit for bit alike, whatever their loops.

    A[i,j]    x[i] - y[j]    max(j, A[i,j] * x[j])    alike: at most one operation rounds
    a * b + c    sum(k, A[i,k] * B[k,j])    exp(x[i])    not: fused, added up in another order, or
                                                         by another routine of a vector

All expressions of integers are alike: their arithmetic is exact, modulo 2^n.
"""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.language.notation.dtypes import DType, value_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Operator

EXACT = frozenset(
    ("neg", "abs", "sign", "floor", "ceil", "round", "trunc", "copysign", "fmin", "fmax", "conj",
     "real", "imag", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_xor",
     "logical_not", "nonzero", "stored", "present", "kept", "selected", "filled", "wrapped",
     "value", "position")
)  # fmt: skip
"""Operators that do not round, by name; nor do those that compare, choose or take an extremum."""
OF_COMPLEX = frozenset(("abs", "sign"))
"""Operators among them that round complex numbers."""
ROUNDED_ONCE = frozenset(("add", "sub", "mul", "sqrt"))
"""Operators whose value is the exact result, rounded once, by name."""


def is_computed_alike(
    expr: Expr, dtypes: Mapping[str, DType] | None = None, conjugates: bool = False
) -> bool:
    """Tell whether any two kernels compute the same bits of an expression.

    dtypes      of the tensors, by name; None for real numbers of 32 or 64 bits
    conjugates  whether values may be complex, where types are not known
    """
    if _is_exact(expr, dtypes, conjugates):
        return True
    if isinstance(expr, Reduce):
        return bool(expr.operator.limit) and is_computed_alike(expr.body, dtypes, conjugates)
    if not isinstance(expr, Call):
        return True
    if _is_whole(expr, dtypes):
        return all(is_computed_alike(arg, dtypes, conjugates) for arg in expr.args)
    if rounds_nothing(expr.operator):
        complex_ = expr.operator.name in OF_COMPLEX and _is_complex(expr.args, dtypes, conjugates)
        return not complex_ and all(is_computed_alike(arg, dtypes, conjugates) for arg in expr.args)
    exact_args = all(_is_exact(arg, dtypes, conjugates) for arg in expr.args)
    rounded_once = expr.operator.name in ROUNDED_ONCE and not _is_complex(
        expr.args, dtypes, conjugates
    )
    return rounded_once and exact_args


def rounds_nothing(operator: Operator) -> bool:
    """Tell whether the value of an operator is one of its arguments or needs no rounding."""
    return bool(operator.compares or operator.chooses or operator.limit or operator.name in EXACT)


def _is_exact(expr: Expr, dtypes: Mapping[str, DType] | None, conjugates: bool) -> bool:
    """Tell whether no part of an expression is rounded."""
    if isinstance(expr, Access | Literal):
        return True
    if isinstance(expr, Reduce):
        exact = expr.operator.limit or _is_whole(expr, dtypes)
        return bool(exact) and _is_exact(expr.body, dtypes, conjugates)
    if not (_is_whole(expr, dtypes) or rounds_nothing(expr.operator)):
        return False
    if expr.operator.name in OF_COMPLEX and _is_complex(expr.args, dtypes, conjugates):
        return False
    return all(_is_exact(arg, dtypes, conjugates) for arg in expr.args)


def _is_whole(expr: Expr, dtypes: Mapping[str, DType] | None) -> bool:
    """Tell whether an expression has an integer or boolean type."""
    return dtypes is not None and value_dtype(expr, dtypes).kind in "biu"


def _is_complex(
    args: tuple[Expr, ...], dtypes: Mapping[str, DType] | None, conjugates: bool
) -> bool:
    if dtypes is None:
        return conjugates
    return any(value_dtype(arg, dtypes).kind == "c" for arg in args)
