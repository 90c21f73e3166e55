"""What index notation can compute, with the types that NumPy has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.data.storage.borrow import DTYPES
from taco_py.graph.nodes import Constant, Fact
from taco_py.graph.primitives.functions_of_elements import call, spelled
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.notation.dtypes import result_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr, Literal

TYPES = frozenset(dtype.name for dtype in DTYPES) - {"float16", "bfloat16"}
"""Types of elements that kernels of several statements compute in."""


def literal_of(constant: Constant) -> Literal | None:
    """Return a number as a literal, None of arrays."""
    value: Any = constant.value
    if isinstance(value, np.generic):
        return Literal(value.item(), dtype=str(value.dtype)) if str(value.dtype) in TYPES else None
    plain = type(value) in (bool, float, complex) or (
        type(value) is int and -(2**63) <= value < 2**63
    )
    return Literal(value) if plain else None


def are_computed(facts: Sequence[Fact]) -> bool:
    """Tell whether kernels compute in the types of values."""
    return all(fact.weak or fact.dtype in TYPES for fact in facts)


def is_computed_alike(
    function: str, facts: Sequence[Fact], literals: Sequence[Literal | None], dtype: str
) -> bool:
    """Tell whether index notation has a function of elements, of the type that NumPy gives it."""
    if not spelled_of(function, len(facts)) or not are_computed(facts) or dtype not in TYPES:
        return False
    names = [f"a{place}" for place in range(len(facts))]
    args: list[Expr] = [
        Access(name, ()) if literal is None else literal
        for name, literal in zip(names, literals, strict=True)
    ]
    types = {
        name: np.dtype(fact.dtype)
        for name, fact, literal in zip(names, facts, literals, strict=True)
        if literal is None
    }
    try:
        computed = result_dtype(Assignment(Access("R", ()), call(function, args)), types)
    except (TacoError, OverflowError, TypeError):
        return False
    return computed.name == dtype


def spelled_of(function: str, count: int) -> bool:
    """Tell whether index notation has a function, or it is written by others."""
    return (function, count) == ("square", 1) or spelled(function, count)
