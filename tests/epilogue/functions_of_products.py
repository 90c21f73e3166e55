"""Epilogues of a product in NumPy style, with operands: what tests and benchmarks share.

Each is a function of the product P, a row b, an array R of its size, and what is kept of P.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import erf

KEPT = 0.9
"""The share of elements that dropout keeps."""


def bias(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return P + b


def bias_relu(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return np.maximum(P + b, 0)


def gelu_stored(P: Any, b: Any, R: Any, kept: Any) -> Any:
    """GELU, and what it was taken of, as the backward pass wants it."""
    z = P + b
    return z, z * (1 + erf(z * 0.7071067811865476)) * 0.5


def residual(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return P + b + R


def column_of_sums(P: Any, b: Any, R: Any, kept: Any) -> Any:
    h = np.maximum(P + b, 0)
    return h, h.sum(1)


def row_of_sums(P: Any, b: Any, R: Any, kept: Any) -> Any:
    h = np.maximum(P + b, 0)
    return h, h.sum(0)


def one_sum(P: Any, b: Any, R: Any, kept: Any) -> Any:
    h = np.maximum(P + b, 0)
    return h, h.sum()


def dropout(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return np.where(kept, (P + b) / KEPT, 0)


def relu_backward(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return np.where(R > 0, P, 0)


def no_tree(P: Any, b: Any, R: Any, kept: Any) -> Any:
    """Values that others read several times, in two layers."""
    z = P + b
    t = np.tanh(z)
    return t * z + R * (1 - t * t)


EPILOGUES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            bias, bias_relu, gelu_stored, residual, column_of_sums, row_of_sums, one_sum, dropout,
            relu_backward, no_tree,
        )
    }
)  # fmt: skip


def of_product(epilogue: Callable[..., Any]) -> Callable[..., Any]:
    """The epilogue of X W."""

    def whole(X: Any, W: Any, b: Any, R: Any, kept: Any) -> Any:
        return epilogue(X @ W, b, R, kept)

    return whole


def all_at_once(P: Any, b: Any, R: Any, kept: Any) -> Any:
    """The values of all epilogues, each once."""
    found: list[Any] = []
    for epilogue in EPILOGUES.values():
        made = epilogue(P, b, R, kept)
        found += made if isinstance(made, tuple) else (made,)
    return tuple(found)


def operands_of(left: Any, columns: int, dtype: str = "float32") -> tuple[Any, ...]:
    """Operands of epilogues of `left @ W`, which has so many columns."""
    rng = np.random.default_rng(0)
    rows, depth = left.shape
    return (
        left.astype(dtype),
        rng.standard_normal((depth, columns)).astype(dtype),
        rng.standard_normal(columns).astype(dtype),
        rng.standard_normal((rows, columns)).astype(dtype),
        rng.random((rows, columns)) < KEPT,
    )
