"""The operators of `memory_bound.py` in torch, of dense tensors, by its own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.nn import functional

from benchmarks.memory_bound_workloads import EPSILON, GROUPS


def softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    return functional.layer_norm(x, x.shape[1:], g, b, EPSILON)


def rms_norm(x: Any, g: Any) -> Any:
    return functional.rms_norm(x, x.shape[1:], g, EPSILON)


def bias_gelu_residual(x: Any, b: Any, r: Any) -> Any:
    return r + functional.gelu(x + b)


def transpose(x: Any) -> Any:
    return x.T.contiguous()


def sums_of_rows(x: Any) -> Any:
    return x.sum(1)


def sums_of_columns(x: Any) -> Any:
    return x.sum(0)


def concatenated_slices(x: Any, y: Any) -> Any:
    quarter = x.shape[1] // 4
    return torch.cat((x[:, quarter:], y[:, :quarter]), 1)


def instance_norm(x: Any, g: Any, b: Any) -> Any:
    return torch.relu(functional.instance_norm(x, weight=g, bias=b, eps=EPSILON))


def group_norm(x: Any, g: Any, b: Any) -> Any:
    return functional.group_norm(x, GROUPS, g, b, EPSILON)


def batch_norm(x: Any, g: Any, b: Any) -> Any:
    result, mean, inverse = torch.native_batch_norm(x, g, b, None, None, True, 0.1, EPSILON)
    shape = (1, -1, 1, 1)
    return result, mean.reshape(shape), (1 / (inverse * inverse) - EPSILON).reshape(shape)


def batch_norm_backward(d: Any, x: Any, g: Any, mean: Any, inverse: Any) -> Any:
    backward = torch.ops.aten.native_batch_norm_backward
    return backward(d, x, g, None, None, mean, inverse, True, EPSILON, [True] * 3)


def layer_norm_backward(d: Any, x: Any, g: Any, mean: Any, inverse: Any) -> Any:
    backward = torch.ops.aten.native_layer_norm_backward
    return backward(d, x, [x.shape[1]], mean, inverse, g, torch.zeros_like(g), [True] * 3)


def masked_softmax(x: Any, mask: Any) -> Any:
    return torch.softmax(torch.where(mask, x, -torch.inf), -1)


def rotary_embedding(x: Any, cosine: Any, sine: Any) -> Any:
    u, v = x.chunk(2, -1)
    return torch.cat((u * cosine - v * sine, v * cosine + u * sine), -1)


def cross_entropy(x: Any, labels: Any) -> Any:
    return functional.cross_entropy(x, labels)


IN_TORCH: Mapping[str, Callable[..., Any]] = MappingProxyType({
    each.__name__: each
    for each in (
        softmax, layer_norm, rms_norm, bias_gelu_residual, transpose, sums_of_rows,
        sums_of_columns, concatenated_slices, instance_norm, group_norm, batch_norm,
        batch_norm_backward, layer_norm_backward, masked_softmax, rotary_embedding, cross_entropy,
    )
})  # fmt: skip
