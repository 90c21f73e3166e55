"""Directional derivatives by differences, to compare gradients with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

STEP = 1e-6


def dense(value: Any) -> Any:
    """Return the elements of a result."""
    if isinstance(value, tp.Tensor):
        return value.to_numpy()
    return value.toarray() if sp.issparse(value) else np.asarray(value)


def direction(operand: Any, rng: np.random.Generator) -> Any:
    """Return random numbers where an operand stores something."""
    if sp.issparse(operand):
        found = operand.copy()
        found.data = rng.standard_normal(found.data.shape)
        return found
    found = rng.standard_normal(np.shape(operand))
    return found if np.shape(operand) else float(found)


def moved(operand: Any, along: Any, step: float) -> Any:
    """Return an operand a step further, with the pattern that it has."""
    if sp.issparse(operand):
        found = operand.copy()
        found.data = operand.data + step * along.data
        return found
    return operand + step * along


def difference(
    function: Callable[[Mapping[str, Any]], Any], operands: Mapping[str, Any], name: str, along: Any
) -> float:
    """Return the derivative of a function of operands along a direction of one of them."""
    ahead, behind = (
        function({**operands, name: moved(operands[name], along, step)}) for step in (STEP, -STEP)
    )
    return float((ahead - behind) / (2 * STEP))


def product(one: Any, other: Any) -> float:
    """Return the sum of the products of elements."""
    return float((dense(one) * dense(other)).sum())
