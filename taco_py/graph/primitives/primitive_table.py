"""The table of primitives: a line for each family's file."""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.graph.primitives import (
    functions_of_elements,
    gathers,
    linear_forms,
    modes_elsewhere,
    reductions_over_modes,
    sampled_values,
)
from taco_py.graph.primitives.family import Primitive

FAMILIES = (
    functions_of_elements, reductions_over_modes, modes_elsewhere, linear_forms, gathers,
    sampled_values,
)  # fmt: skip
PRIMITIVES: Mapping[str, Primitive] = {
    primitive.operator: primitive for family in FAMILIES for primitive in family.PRIMITIVES
}
"""Primitives by their operators. What has no entry is computed by NumPy."""


def family_of(operator: str) -> str:
    """Name the family of a primitive; "numpy" of what NumPy computes."""
    return PRIMITIVES[operator].family if operator in PRIMITIVES else "numpy"
