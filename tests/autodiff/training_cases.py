"""Small operands of the losses of `docs/examples`, which tests and benchmarks of training share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from docs.examples import documents, graph_convolution, perceptron, ratings, tensor_factors

Case = tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]
"""A loss, its parameters and its data, by the names of its arguments."""


def of_graph_convolution(rng: np.random.Generator) -> Case:
    made = graph_convolution.generated(40, 24, 3)
    data = graph_convolution.operands(made) | {"key": 3}
    W0 = graph_convolution.glorot(rng, 24, graph_convolution.HIDDEN)
    W1 = graph_convolution.glorot(rng, graph_convolution.HIDDEN, 3)
    return graph_convolution.loss, {"W0": W0, "W1": W1}, data


def of_perceptron(rng: np.random.Generator) -> Case:
    X, y = rng.standard_normal((30, 8)), rng.integers(0, 4, 30)
    return perceptron.loss, perceptron.initial(rng, (8, 16, 12, 4)), {"X": X, "y": y}


def of_ratings(rng: np.random.Generator) -> Case:
    R = sp.random_array((12, 15), density=0.3, format="csr", rng=rng)
    factors = {"U": rng.standard_normal((12, 3)), "V": rng.standard_normal((15, 3))}
    biases = {"b": rng.standard_normal(12), "c": rng.standard_normal(15)}
    return ratings.loss, factors | biases, {"M": ratings.pattern(R), "R": R, "decay": 0.1}


def of_tensor_factors(rng: np.random.Generator) -> Case:
    T, M = tensor_factors.generated((6, 7, 8), 2, 100)
    factors = {name: rng.random((size, 3)) for name, size in zip("ABC", T.shape, strict=True)}
    return tensor_factors.loss, factors, {"M": M, "T": T}


def of_documents(rng: np.random.Generator) -> Case:
    X = sp.random_array((30, 40), density=0.1, format="csr", rng=rng)
    W, b = rng.standard_normal((40, 3)), rng.standard_normal(3)
    y = rng.integers(0, 3, 30)
    return documents.loss, {"W": W, "b": b}, {"X": X, "y": y, "decay": 0.1}


CASES: Mapping[str, Callable[[np.random.Generator], Case]] = MappingProxyType({
    "graph convolution": of_graph_convolution, "perceptron": of_perceptron,
    "ratings": of_ratings, "tensor factors": of_tensor_factors, "documents": of_documents,
})  # fmt: skip
"""By the names of the models."""
