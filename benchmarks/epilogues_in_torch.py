"""The epilogues of `epilogues.py` in torch, of dense tensors."""

# ruff: noqa: N803 - the names of the field, one signature
from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

KEPT = 0.9


def bias(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return P + b


def bias_relu(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return torch.relu(P + b)


def gelu_stored(P: Any, b: Any, R: Any, kept: Any) -> Any:
    z = P + b
    return z, z * (1 + torch.erf(z * 0.7071067811865476)) * 0.5


def residual(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return P + b + R


def column_of_sums(P: Any, b: Any, R: Any, kept: Any) -> Any:
    h = torch.relu(P + b)
    return h, h.sum(1)


def row_of_sums(P: Any, b: Any, R: Any, kept: Any) -> Any:
    h = torch.relu(P + b)
    return h, h.sum(0)


def one_sum(P: Any, b: Any, R: Any, kept: Any) -> Any:
    h = torch.relu(P + b)
    return h, h.sum()


def dropout(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return torch.where(kept, (P + b) / KEPT, 0)


def relu_backward(P: Any, b: Any, R: Any, kept: Any) -> Any:
    return torch.where(R > 0, P, 0)


def no_tree(P: Any, b: Any, R: Any, kept: Any) -> Any:
    z = P + b
    t = torch.tanh(z)
    return t * z + R * (1 - t * t)


TORCH_EPILOGUES: Mapping[str, Callable[..., Any]] = MappingProxyType({
    each.__name__: each
    for each in (
        bias, bias_relu, gelu_stored, residual, column_of_sums, row_of_sums, one_sum, dropout,
        relu_backward, no_tree,
    )
})  # fmt: skip
