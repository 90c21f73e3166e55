"""Epilogues of a product in NumPy style, with operands: what tests and benchmarks share."""

# ruff: noqa: N803 - the names of the field
from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import erf

KEPT = 0.9
"""The share of elements that dropout keeps."""


def bias(X: Any, W: Any, b: Any) -> Any:
    return X @ W + b


def bias_relu(X: Any, W: Any, b: Any) -> Any:
    return np.maximum(X @ W + b, 0)


def gelu_stored(X: Any, W: Any, b: Any) -> Any:
    """GELU, and what it was taken of, as the backward pass wants it."""
    z = X @ W + b
    return z, z * (1 + erf(z * 0.7071067811865476)) * 0.5


def residual(X: Any, W: Any, b: Any, R: Any) -> Any:
    return X @ W + b + R


def column_of_sums(X: Any, W: Any, b: Any) -> Any:
    h = np.maximum(X @ W + b, 0)
    return h, h.sum(1)


def row_of_sums(X: Any, W: Any, b: Any) -> Any:
    h = np.maximum(X @ W + b, 0)
    return h, h.sum(0)


def one_sum(X: Any, W: Any, b: Any) -> Any:
    h = np.maximum(X @ W + b, 0)
    return h, h.sum()


def dropout(X: Any, W: Any, b: Any, kept: Any) -> Any:
    return np.where(kept, (X @ W + b) / KEPT, 0)


def relu_backward(X: Any, W: Any, R: Any) -> Any:
    return np.where(R > 0, X @ W, 0)


def no_tree(X: Any, W: Any, b: Any, R: Any) -> Any:
    """Values that others read several times, in two layers."""
    z = X @ W + b
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


def operands_of(
    name: str, left: Any, columns: int, dtype: str = "float32", seed: int = 0
) -> tuple[Any, ...]:
    """The operands of an epilogue of `left @ W`, which has so many columns."""
    rng = np.random.default_rng(seed)
    rows, depth = left.shape
    made = {
        "b": rng.standard_normal(columns).astype(dtype),
        "R": rng.standard_normal((rows, columns)).astype(dtype),
        "kept": rng.random((rows, columns)) < KEPT,
    }
    words = EPILOGUES[name].__code__.co_varnames[2 : EPILOGUES[name].__code__.co_argcount]
    weights = rng.standard_normal((depth, columns)).astype(dtype)
    return left, weights, *(made[word] for word in words)
