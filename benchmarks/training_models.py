"""Models in NumPy style and in torch, with operands, of which steps of training are timed."""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import shared_loader
from docs.examples.graph_convolution import glorot, normalized
from taco_py.tool.inputs import rmat

Array = np.ndarray[Any, Any]
FLOAT = np.float32


@dataclass(frozen=True, slots=True)
class Model:
    """A loss, in NumPy style and in torch, with its operands.

    parameters  the arrays that are trained
    data        the other arguments of the loss
    """

    name: str
    loss: Callable[..., Any]
    in_torch: Callable[..., Any]
    parameters: Mapping[str, Array]
    data: Mapping[str, Any]


def models() -> Iterator[Model]:
    """All models, each made when it is asked for."""
    for make in (perceptron, graph_convolution, labels_of_documents, transformer_block):
        yield make(np.random.default_rng(0))


def weights(rng: np.random.Generator, *shape: int) -> Array:
    return glorot(rng, *shape).astype(FLOAT)


# ---------------------------------------------------------------- perceptron


def perceptron_loss(W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, X: Any, y: Any) -> Any:
    H = tp.nn.relu(tp.nn.relu(X @ W1 + b1) @ W2 + b2)
    return tp.nn.cross_entropy(H @ W3 + b3, y)


def perceptron_in_torch(
    W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, X: Any, y: Any
) -> Any:
    from torch.nn.functional import cross_entropy, relu

    return cross_entropy(relu(relu(X @ W1 + b1) @ W2 + b2) @ W3 + b3, y)


def perceptron(rng: np.random.Generator) -> Model:
    batch, sizes = 512, (784, 512, 256, 10)
    parameters = {}
    for layer in (1, 2, 3):
        parameters[f"W{layer}"] = weights(rng, *sizes[layer - 1 : layer + 1])
        parameters[f"b{layer}"] = np.zeros(sizes[layer], FLOAT)
    data = {"X": rng.random((batch, 784), FLOAT), "y": rng.integers(0, 10, batch)}
    name = "perceptron, 512 of 784-512-256-10"
    return Model(name, perceptron_loss, perceptron_in_torch, parameters, data)


# ---------------------------------------------------------------- graph convolution


def graph_convolution_loss(W0: Any, W1: Any, A: Any, X: Any, train: Any, y: Any) -> Any:
    H = tp.nn.relu(A @ (X @ W0))
    return tp.nn.cross_entropy((A @ (H @ W1))[train], y)


def graph_convolution_in_torch(W0: Any, W1: Any, A: Any, X: Any, train: Any, y: Any) -> Any:
    from torch.nn.functional import cross_entropy, relu

    return cross_entropy((A @ (relu(A @ (X @ W0)) @ W1))[train], y)


def graph_convolution(rng: np.random.Generator) -> Model:
    """The graph of pubmed where it is at hand, else one like it; features are always generated."""
    loader = shared_loader()
    name = "graph convolution, pubmed" if loader else "graph convolution, rmat"
    A = sp.csr_array(loader.matrix("pubmed_adj") if loader else rmat(14, 4))
    A = normalized(sp.csr_array(((A + A.T) > 0).astype(float))).astype(FLOAT)
    X = sp.random_array((A.shape[0], 500), density=0.1, format="csr", rng=rng, dtype=FLOAT)
    X.sort_indices()
    train = np.sort(rng.choice(A.shape[0], 60, replace=False))
    data = {"A": A, "X": X, "train": train, "y": rng.integers(0, 3, 60)}
    parameters = {"W0": weights(rng, 500, 16), "W1": weights(rng, 16, 3)}
    name = f"{name} of {A.shape[0]}, {A.nnz} entries; X generated, {X.nnz} entries"
    return Model(name, graph_convolution_loss, graph_convolution_in_torch, parameters, data)


# ---------------------------------------------------------------- labels of documents


def labels_loss(W0: Any, W1: Any, b: Any, X: Any, Y: Any) -> Any:
    """Thousands of labels, each there or not: cross entropy of each, log(1 + exp(Z)) - Y Z."""
    Z = tp.nn.relu(X @ W0) @ W1 + b
    terms = np.maximum(Z, 0) + np.log1p(np.exp(-np.abs(Z)))
    return (terms.sum() - (Y * Z).sum()) / (Z.shape[0] * Z.shape[1])


def labels_in_torch(W0: Any, W1: Any, b: Any, X: Any, Y: Any) -> Any:
    from torch.nn.functional import binary_cross_entropy_with_logits, relu

    return binary_cross_entropy_with_logits(relu(X @ W0) @ W1 + b, Y)


def labels_of_documents(rng: np.random.Generator) -> Model:
    """A classifier as of extreme multi-label classification."""
    batch, words, hidden, labels = 256, 20_000, 128, 4000
    X = sp.random_array((batch, words), density=0.005, format="csr", rng=rng, dtype=FLOAT)
    Y = sp.random_array((batch, labels), density=0.001, format="csr", rng=rng, dtype=FLOAT)
    Y.data[:] = 1
    for each in (X, Y):
        each.sort_indices()
    parameters = {
        "W0": weights(rng, words, hidden), "W1": weights(rng, hidden, labels),
        "b": np.zeros(labels, FLOAT),
    }  # fmt: skip
    name = f"documents, {batch} of {words} words, {X.nnz} entries, {labels} labels"
    return Model(name, labels_loss, labels_in_torch, parameters, {"X": X, "Y": Y})


# ---------------------------------------------------------------- transformer


def transformer_loss(
    Wq: Any, Wk: Any, Wv: Any, Wo: Any, W1: Any, b1: Any, W2: Any, b2: Any,
    g1: Any, s1: Any, g2: Any, s2: Any, x: Any, target: Any,
) -> Any:  # fmt: skip
    """A block with the norms first, 4 heads, GELU, and the squares of what is left."""
    n = tp.nn.layer_norm(x, g1, s1)
    Q, K, V = (tp.einsum("btd,dhe->bhte", n, W) for W in (Wq, Wk, Wv))
    S = tp.einsum("bhqe,bhke->bhqk", Q, K) * FLOAT(1 / np.sqrt(Q.shape[-1]))
    P = tp.nn.softmax(S)
    x = x + tp.einsum("bhte,hed->btd", tp.einsum("bhqk,bhke->bhqe", P, V), Wo)
    H = tp.nn.gelu(tp.nn.layer_norm(x, g2, s2) @ W1 + b1, approximate="tanh")
    return ((x + H @ W2 + b2 - target) ** 2).mean()


def transformer_in_torch(
    Wq: Any, Wk: Any, Wv: Any, Wo: Any, W1: Any, b1: Any, W2: Any, b2: Any,
    g1: Any, s1: Any, g2: Any, s2: Any, x: Any, target: Any,
) -> Any:  # fmt: skip
    from torch import einsum
    from torch.nn.functional import gelu, layer_norm, mse_loss, scaled_dot_product_attention

    n = layer_norm(x, x.shape[-1:], g1, s1)
    Q, K, V = (einsum("btd,dhe->bhte", n, W) for W in (Wq, Wk, Wv))
    x = x + einsum("bhte,hed->btd", scaled_dot_product_attention(Q, K, V), Wo)
    H = gelu(layer_norm(x, x.shape[-1:], g2, s2) @ W1 + b1, approximate="tanh")
    return mse_loss(x + H @ W2 + b2, target)


def transformer_block(rng: np.random.Generator) -> Model:
    batch, length, heads, own = 8, 128, 4, 64
    width, wide = heads * own, 4 * heads * own
    parameters = {
        **{f"W{each}": weights(rng, width, width).reshape(width, heads, own) for each in "qkv"},
        "Wo": weights(rng, width, width).reshape(heads, own, width),
        "W1": weights(rng, width, wide), "b1": np.zeros(wide, FLOAT),
        "W2": weights(rng, wide, width), "b2": np.zeros(width, FLOAT),
        "g1": np.ones(width, FLOAT), "s1": np.zeros(width, FLOAT),
        "g2": np.ones(width, FLOAT), "s2": np.zeros(width, FLOAT),
    }  # fmt: skip
    data = {name: rng.standard_normal((batch, length, width), FLOAT) for name in ("x", "target")}
    name = f"transformer block, {batch} × {length} × {width}, {heads} heads"
    return Model(name, transformer_loss, transformer_in_torch, parameters, data)
