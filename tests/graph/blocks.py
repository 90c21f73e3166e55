"""Blocks of models and solvers in NumPy style, with operands: what tests and benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import erf

import taco_py as tp


def attention(Q: Any, K: Any, V: Any, M: Any) -> Any:
    """Softmax attention under a mask."""
    S = tp.einsum("hqd,hkd->hqk", Q, K) / np.sqrt(Q.shape[-1])
    S = np.where(M, S, -np.inf)
    P = np.exp(S - S.max(-1, keepdims=True))
    P = P / P.sum(-1, keepdims=True)
    return tp.einsum("hqk,hkd->hqd", P, V)


def instance_norm(x: Any, scale: Any, shift: Any) -> Any:
    """Instance normalisation of images, and an activation."""
    centred = x - x.mean((2, 3), keepdims=True)
    spread = np.sqrt((centred**2).mean((2, 3), keepdims=True) + 1e-5)
    return np.maximum(centred / spread * scale[:, None, None] + shift[:, None, None], 0)


def linear_attention(Q: Any, K: Any, V: Any) -> Any:
    """Attention without a softmax: the keys meet the values first."""
    q, k = np.maximum(Q, 0), np.maximum(K, 0)
    state = np.einsum("bnd,bne->bde", k, V)
    norm = np.einsum("bnd,bd->bn", q, k.sum(1)) + 1e-6
    return np.einsum("bnd,bde->bne", q, state) / norm[..., None]


def graph_convolution(A: Any, X: Any, W: Any, b: Any) -> Any:
    """A layer of a graph convolutional network, with degrees."""
    degrees = A.sum(1) + 1
    return np.maximum((A @ (X @ W)) / degrees[:, None] + b, 0)


def feed_forward(x: Any, W: Any, scale: Any, shift: Any) -> Any:
    """Layer normalisation, a product, GELU, and the residual."""
    mean = x.mean(-1, keepdims=True)
    normal = (x - mean) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift
    y = normal @ W
    return x + 0.5 * y * (1 + erf(y / np.sqrt(2)))


def walk_weights(A: Any, w: Any, x: Any) -> Any:
    """A product with a sparse value that a cumulative sum of its rows goes into, too."""
    S = np.sqrt(A * w[:, None])
    return S @ (np.cumsum(S.sum(1)) * x)


def operands_of(name: str, size: int, seed: int = 0) -> tuple[Any, ...]:
    """Operands of a block; some tens of thousands of elements for a size of 64."""
    rng = np.random.default_rng(seed)
    n = rng.standard_normal
    if name == "attention":
        mask = (sp.random_array((size, size), density=0.1, rng=rng) != 0) + sp.eye_array(size)
        return n((2, size, 16)), n((2, size, 16)), n((2, size, 16)), (mask != 0).tocsr()
    if name == "instance_norm":
        return n((2, 3, size, size)), n(3), n(3)
    if name == "linear_attention":
        return n((2, size, 16)), n((2, size, 16)), n((2, size, 8))
    if name == "graph_convolution":
        A = sp.random_array((size, size), density=0.1, rng=rng, format="csr")
        return A, n((size, 16)), n((16, 8)), n(8)
    if name == "walk_weights":
        A = sp.random_array((size, size), density=min(0.1, 20 / size), rng=rng, format="csr")
        return A, rng.random(size), rng.random(size)
    return n((size, 32)), n((32, 32)), n(32), n(32)


BLOCKS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "attention": attention, "instance_norm": instance_norm, "linear_attention": linear_attention,
    "graph_convolution": graph_convolution, "feed_forward": feed_forward,
})  # fmt: skip


def reference(name: str, operands: tuple[Any, ...]) -> Any:
    """What NumPy gives for a block, of dense operands."""
    dense = [each.toarray() if sp.issparse(each) else each for each in operands]
    if name == "attention":
        Q, K, V, M = dense
        S = np.einsum("hqd,hkd->hqk", Q, K) / np.sqrt(Q.shape[-1])
        S = np.where(M, S, -np.inf)
        P = np.exp(S - S.max(-1, keepdims=True))
        return np.einsum("hqk,hkd->hqd", P / P.sum(-1, keepdims=True), V)
    return BLOCKS[name](*dense)
