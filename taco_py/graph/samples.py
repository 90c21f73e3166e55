"""The types that NumPy's functions give, found by calling them on arrays of one element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.graph.nodes import Fact
from taco_py.language.diagnostics.errors import InternalError

WEAK = {"bool": True, "int": 1, "float": 1.0, "complex": 1j}
"""Python's numbers by the names of their types."""


def sample(fact: Fact) -> Any:
    """Make an array of one element, or a number, that fits a fact."""
    if fact.weak:
        return WEAK[fact.dtype]
    return np.ones((1,) * fact.order, fact.dtype)


def dtype_of(function: Callable[..., Any], *facts: Fact) -> str:
    """Find the type that a function of NumPy gives for arguments. Raises what NumPy raises."""
    with np.errstate(all="ignore"):
        result = function(*map(sample, facts))
    return str(np.asarray(result).dtype)


_OVER = ("axis", "keepdims")
_QUANTILES = ("axis", "method", "keepdims")

NUMPY_CALLS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    **dict.fromkeys(
        ("linalg.solve", "linalg.inv", "linalg.cholesky", "linalg.det", "linalg.eigvalsh",
         "linalg.eigvals", "isin"), ()),
    "linalg.matrix_power": ("n",), "linalg.pinv": ("rcond", "hermitian"),
    "pad": ("pad_width", "mode", "constant_values"),
    **dict.fromkeys(("median", "nanmedian", "nanmin", "nanmax", "nanvar", "nanstd"), _OVER),
    **dict.fromkeys(("quantile", "percentile", "nanquantile", "nanpercentile"), _QUANTILES),
    "interp": ("left", "right", "period"), "searchsorted": ("side",), "digitize": ("right",),
    "convolve": ("mode",),
    **dict.fromkeys(
        ("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft"), ("n", "axis", "norm")),
    **dict.fromkeys(("fft.fft2", "fft.ifft2", "fft.fftn", "fft.ifftn"), ("axes", "norm")),
    **dict.fromkeys(
        ("maximum.accumulate", "minimum.accumulate", "add.accumulate", "multiply.accumulate"),
        ("axis",)),
    "argpartition": ("kth", "axis"), "partition": ("kth", "axis"),
})  # fmt: skip
"""Functions of NumPy that NumPy computes in a graph, with the arguments that are no arrays."""


def numpy_function(name: str) -> Callable[..., Any]:
    """Find a function of `NUMPY_CALLS`, as "linalg.solve". Raises InternalError for others."""
    if name not in NUMPY_CALLS:
        raise InternalError(f"Expected a function of NumPy that graphs call, found {name!r:.80}")
    member: Any = np
    for part in name.split("."):
        member = getattr(member, part)
    return member  # type: ignore[no-any-return]


def weak_name(value: Any) -> str:
    """Name the type of a Python number, "" of anything else."""
    return type(value).__name__ if type(value) in (bool, int, float, complex) else ""
