"""The types that NumPy's functions give, found by calling them on arrays of one element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taco_py.graph.nodes import Fact

WEAK = {"bool": True, "int": 1, "float": 1.0, "complex": 1j}
"""Python's numbers by the names of their types."""


def sample(fact: Fact) -> Any:
    """Make an array of one element, or a number, of what a fact says."""
    if fact.weak:
        return WEAK[fact.dtype]
    return np.ones((1,) * fact.order, fact.dtype)


def dtype_of(function: Callable[..., Any], *facts: Fact) -> str:
    """Find the type that a function of NumPy gives for arguments. Raises what NumPy raises."""
    with np.errstate(all="ignore"):
        found = function(*map(sample, facts))
    return str(np.asarray(found).dtype)


def numpy_function(name: str) -> Callable[..., Any]:
    """Find a function of NumPy by its name, as "linalg.solve"."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def weak_name(value: Any) -> str:
    """Name the type of a Python number, "" of anything else."""
    return type(value).__name__ if type(value) in (bool, int, float, complex) else ""
