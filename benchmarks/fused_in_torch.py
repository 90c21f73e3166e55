"""The blocks of `fused.py` in torch, of dense tensors."""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch


def attention(Q: Any, K: Any, V: Any, M: Any) -> Any:
    S = torch.einsum("hqd,hkd->hqk", Q, K) / Q.shape[-1] ** 0.5
    S = torch.where(M, S, -torch.inf)
    return torch.einsum("hqk,hkd->hqd", torch.softmax(S, -1), V)


def instance_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean((2, 3), keepdim=True)
    spread = torch.sqrt((centred**2).mean((2, 3), keepdim=True) + 1e-5)
    return torch.relu(centred / spread * scale[:, None, None] + shift[:, None, None])


def linear_attention(Q: Any, K: Any, V: Any) -> Any:
    q, k = torch.relu(Q), torch.relu(K)
    state = torch.einsum("bnd,bne->bde", k, V)
    norm = torch.einsum("bnd,bd->bn", q, k.sum(1)) + 1e-6
    return torch.einsum("bnd,bde->bne", q, state) / norm[..., None]


def graph_convolution(A: Any, X: Any, W: Any, b: Any) -> Any:
    return torch.relu((A @ (X @ W)) / (A.sum(1) + 1)[:, None] + b)


def feed_forward(x: Any, W: Any, scale: Any, shift: Any) -> Any:
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    normal = (x - mean) / torch.sqrt(var + 1e-5) * scale + shift
    y = normal @ W
    return x + 0.5 * y * (1 + torch.erf(y / 2**0.5))


TORCH_BLOCKS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "attention": attention, "instance_norm": instance_norm, "linear_attention": linear_attention,
    "graph_convolution": graph_convolution, "feed_forward": feed_forward,
})  # fmt: skip
