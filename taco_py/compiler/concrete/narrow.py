"""Sums in a narrower type, protected from being added up in the type of the full expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.language.legal.types import sum_wraps_alone
from taco_py.language.notation.dtypes import expression_dtype, is_weak
from taco_py.language.notation.nodes import Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.tree import is_additive, map_children


def narrow_apart(assignment: Assignment, dtypes: Mapping[str, np.dtype[Any]]) -> Assignment:
    """Return the assignment in which each sum that wraps or saturates in a narrower type is one
    term.

        y = b + (c - d)        c, d of type uint8, b of type int64
        → y = b + 1 * (c - d)

    Terms are added up in the type of the full expression, and c - d has to wrap as uint8 before.
    """
    full_dtype = expression_dtype(assignment.value, dtypes)

    def separate(expr: Expr) -> Expr:
        if not is_additive(expr):
            return expr
        dtype = expression_dtype(expr, dtypes)
        if not sum_wraps_alone(dtype, full_dtype) or is_weak(expr):
            return map_children(expr, separate)
        return Call(MUL, (Literal(1, dtype=dtype.name), expr), expr.span)

    value = separate(assignment.value)
    return assignment if value is assignment.value else replace(assignment, value=value)
