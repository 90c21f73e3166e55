"""Expressions of which any two kernels compute the same bits, whatever their loops.

    A[i,j]    x[i] - y[j]    max(j, A[i,j] * x[j])    alike: nothing is rounded, or one operation is
    a * b + c    sum(k, A[i,k] * B[k,j])    exp(x[i])    not: fused, added up in another order, or
                                                         by another routine of a vector

Of integers all is alike: their arithmetic is exact, modulo 2^n.
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
     "value")
)  # fmt: skip
"""Operators that round nothing, by name; those that compare, choose or take an extremum do not
either."""
OF_COMPLEX = frozenset(("abs", "sign"))
"""Those that do of complex numbers."""
ROUNDED_ONCE = frozenset(("add", "sub", "mul", "sqrt"))
"""Operators whose value is the exact one, rounded once, by name."""


def is_computed_alike(
    expr: Expr, dtypes: Mapping[str, DType] | None = None, conjugates: bool = False
) -> bool:
    """Tell whether any two kernels compute the same bits of an expression.

    dtypes      of the tensors, by name; None where they are real ones of 32 or 64 bits
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
    alone = all(_is_exact(arg, dtypes, conjugates) for arg in expr.args)
    once = expr.operator.name in ROUNDED_ONCE and not _is_complex(expr.args, dtypes, conjugates)
    return once and alone


def rounds_nothing(operator: Operator) -> bool:
    """Tell whether an operator gives one of its arguments, or a number that needs no rounding."""
    return bool(operator.compares or operator.chooses or operator.limit or operator.name in EXACT)


def _is_exact(expr: Expr, dtypes: Mapping[str, DType] | None, conjugates: bool) -> bool:
    """Tell whether nothing in an expression is rounded."""
    if isinstance(expr, Access | Literal):
        return True
    if isinstance(expr, Reduce):
        whole = expr.operator.limit or _is_whole(expr, dtypes)
        return bool(whole) and _is_exact(expr.body, dtypes, conjugates)
    if not (_is_whole(expr, dtypes) or rounds_nothing(expr.operator)):
        return False
    if expr.operator.name in OF_COMPLEX and _is_complex(expr.args, dtypes, conjugates):
        return False
    return all(_is_exact(arg, dtypes, conjugates) for arg in expr.args)


def _is_whole(expr: Expr, dtypes: Mapping[str, DType] | None) -> bool:
    """Tell whether an expression is an integer or a truth."""
    return dtypes is not None and value_dtype(expr, dtypes).kind in "biu"


def _is_complex(
    args: tuple[Expr, ...], dtypes: Mapping[str, DType] | None, conjugates: bool
) -> bool:
    if dtypes is None:
        return conjugates
    return any(value_dtype(arg, dtypes).kind == "c" for arg in args)
