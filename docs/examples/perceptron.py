"""A perceptron of three layers, with cross entropy, that reads handwritten digits.

    python docs/examples/perceptron.py

It takes the digits of scikit-learn, 1797 images of 8 × 8 that are part of that package.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import taco_py as tp

Array = np.ndarray[Any, Any]
SIZES, BATCH, EPOCHS = (64, 64, 32, 10), 64, 30


def logits(layers: Any, X: Any) -> Any:
    *hidden, (W, b) = layers
    for V, c in hidden:
        X = tp.nn.relu(X @ V + c)
    return X @ W + b


def loss(W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, X: Any, y: Any) -> Any:
    return tp.nn.cross_entropy(logits(((W1, b1), (W2, b2), (W3, b3)), X), y)


@tp.fuse
def classes(W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, X: Any) -> Any:
    return np.argmax(logits(((W1, b1), (W2, b2), (W3, b3)), X), axis=-1)


def initial(rng: np.random.Generator, sizes: tuple[int, ...]) -> dict[str, Array]:
    """Draw weights by the number of inputs (He et al. 2015), and begin biases at 0."""
    found = {}
    for number, (rows, columns) in enumerate(pairwise(sizes), 1):
        found[f"W{number}"] = rng.standard_normal((rows, columns)) * np.sqrt(2 / rows)
        found[f"b{number}"] = np.zeros(columns)
    return found


def trained(X: Array, y: Array, sizes: tuple[int, ...], epochs: int) -> tuple[Any, list[float]]:
    """Train on batches, and return the weights and the mean loss of each epoch."""
    rng = np.random.default_rng(0)
    step = tp.train_step(loss, optimizer="momentum", rate=0.05, decay=1e-4)
    state, means = step.begin(**initial(rng, sizes)), []
    for _ in range(epochs):
        order = rng.permutation(len(y))
        values = []
        for begin in range(0, len(y) - BATCH + 1, BATCH):
            chosen = order[begin : begin + BATCH]
            value, state = step(state, X=X[chosen], y=y[chosen])
            values.append(float(value))
        means.append(float(np.mean(values)))
    return state.parameters, means


def accuracy(weights: dict[str, Array], X: Array, y: Array) -> float:
    """The share of images that are read right."""
    return float((classes(**weights, X=X) == y).mean())


def main() -> None:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    train, test = order[:1400], order[1400:]
    X = X / 16
    weights, means = trained(X[train], y[train], SIZES, EPOCHS)
    print(f"loss {means[0]:.3f}, after {EPOCHS} epochs {means[-1]:.4f}")
    print(f"of {len(test)} other images {accuracy(weights, X[test], y[test]):.3f} are read right")


if __name__ == "__main__":
    main()
