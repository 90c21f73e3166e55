"""Steps of training of the benchmarks' models: NumPy computes nothing in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from benchmarks.training_models import graph_convolution_loss, perceptron_loss, transformer_loss

rng = np.random.default_rng(0)


def perceptron() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    sizes = (7, 6, 5, 4)
    parameters = {}
    for layer in (1, 2, 3):
        parameters[f"W{layer}"] = rng.random(sizes[layer - 1 : layer + 1], np.float32)
        parameters[f"b{layer}"] = np.zeros(sizes[layer], np.float32)
    data = {"X": rng.random((8, 7), np.float32), "y": rng.integers(0, 4, 8)}
    return perceptron_loss, parameters, data


def graph_convolution() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    A, X = (
        sp.random_array(shape, density=0.3, format="csr", rng=rng, dtype=np.float32)
        for shape in ((9, 9), (9, 7))
    )
    data = {"A": A, "X": X, "train": np.array([0, 3, 4, 8]), "y": rng.integers(0, 3, 4)}
    for each in (A, X):
        each.sort_indices()
    parameters = {"W0": rng.random((7, 5), np.float32), "W1": rng.random((5, 3), np.float32)}
    return graph_convolution_loss, parameters, data


def transformer_block() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    heads, own = 2, 3
    width, wide = heads * own, 4 * heads * own
    shapes = {
        "Wq": (width, heads, own), "Wk": (width, heads, own), "Wv": (width, heads, own),
        "Wo": (heads, own, width), "W1": (width, wide), "b1": (wide,), "W2": (wide, width),
        "b2": (width,), "g1": (width,), "s1": (width,), "g2": (width,), "s2": (width,),
    }  # fmt: skip
    parameters = {name: rng.random(shape, np.float32) for name, shape in shapes.items()}
    data = {name: rng.random((2, 5, width), np.float32) for name in ("x", "target")}
    return transformer_loss, parameters, data


@pytest.mark.parametrize("make", [perceptron, graph_convolution, transformer_block])
def test_a_step_of_training_is_one_kernel_call(make: Any) -> None:
    loss, parameters, data = make()
    step = tp.train_step(loss, optimizer="adam")
    state = step.begin(parameters)
    told = step.graph(state, **data).explain().splitlines()
    assert told[1].startswith("runs      1 kernel calls, 0 calls of NumPy")
