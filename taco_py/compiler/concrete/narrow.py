"""Sums of a type of their own, kept from being added up in the type of the whole."""

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
    """Return the assignment where what wraps or saturates in a type of its own is one term.

        y = b + (c - d)        c, d of type uint8, b of type int64
        → y = b + 1 * (c - d)

    Terms are added up in the type of the whole, and c - d has to wrap as uint8 before.
    """
    whole = expression_dtype(assignment.value, dtypes)

    def apart(expr: Expr) -> Expr:
        if not is_additive(expr):
            return expr
        own = expression_dtype(expr, dtypes)
        if not sum_wraps_alone(own, whole) or is_weak(expr):
            return map_children(expr, apart)
        return Call(MUL, (Literal(1, dtype=own.name), expr), expr.span)

    value = apart(assignment.value)
    return assignment if value is assignment.value else replace(assignment, value=value)
