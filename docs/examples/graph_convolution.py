"""A two-layer graph convolutional network on a citation graph (Kipf and Welling 2017).

    python docs/examples/graph_convolution.py FOLDER [NAME]

FOLDER holds the files of planetoid (Yang et al. 2016), `ind.NAME.x` and so on; NAME is cora unless
it is said. Those files are pickles: read none that you do not trust.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

import argparse
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import taco_py as tp

Array = np.ndarray[Any, Any]
HIDDEN, RATE, DECAY, DROPPED, EPOCHS = 16, 0.01, 5e-4, 0.5, 200  # of the paper


class Citations(NamedTuple):
    """A graph of papers.

    A      n × n, 1 where one cites the other
    X      n × words, the words of each
    y      the class of each
    train  the papers whose class is given
    test   those whose class is asked for
    """

    A: sp.csr_array
    X: sp.csr_array
    y: Array
    train: Array
    test: Array


def loss(W0: Any, W1: Any, A: Any, X: Any, keep: Any, train: Any, y: Any, decay: Any) -> Any:
    H = np.maximum(A @ (X @ W0), 0) * keep
    Z = (A @ (H @ W1))[train]
    Z = Z - Z.max(-1, keepdims=True)
    logp = Z - np.log(np.exp(Z).sum(-1, keepdims=True))
    return -logp[np.arange(len(y)), y].mean() + decay / 2 * (W0 * W0).sum()


@tp.fuse
def classes(W0: Any, W1: Any, A: Any, X: Any) -> Any:
    return np.argmax(A @ (np.maximum(A @ (X @ W0), 0) @ W1), axis=-1)


def normalized(A: sp.csr_array) -> sp.csr_array:
    """Add self-loops and scale symmetrically: D^-1/2 (A + I) D^-1/2."""
    A = sp.csr_array(A + sp.eye_array(A.shape[0]))
    scale = 1 / np.sqrt(A.sum(1))
    found = sp.csr_array(A.multiply(scale[:, None]).multiply(scale))
    found.sort_indices()
    return found


def normalized_rows(X: sp.csr_array) -> sp.csr_array:
    """Divide each row by its sum."""
    found = sp.csr_array(X.multiply(1 / np.maximum(X.sum(1), 1)[:, None]))
    found.sort_indices()
    return found


def glorot(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """Draw initial weights (Glorot and Bengio 2010)."""
    limit = np.sqrt(6 / (rows + columns))
    return rng.uniform(-limit, limit, (rows, columns))


def dropout(rng: np.random.Generator, shape: Any) -> Array:
    """Draw factors: 0 where an element is dropped, else what keeps the mean."""
    return (rng.random(shape) >= DROPPED) / (1 - DROPPED)


def batches(data: Citations, rng: np.random.Generator, epochs: int) -> Iterator[dict[str, Any]]:
    """What each step reads: the graph, its features with some dropped, and what else is dropped."""
    A, X = normalized(data.A), normalized_rows(data.X)
    for _ in range(epochs):
        dropped = sp.csr_array((X.data * dropout(rng, X.nnz), X.indices, X.indptr), shape=X.shape)
        keep = dropout(rng, (A.shape[0], HIDDEN))
        y = data.y[data.train]
        yield {"A": A, "X": dropped, "keep": keep, "train": data.train, "y": y, "decay": DECAY}


def trained(data: Citations, seed: int = 0, epochs: int = EPOCHS) -> tuple[dict[str, Array], Array]:
    """Train, and return the weights and the loss of each epoch."""
    rng = np.random.default_rng(seed)
    W0 = glorot(rng, data.X.shape[1], HIDDEN)
    W1 = glorot(rng, HIDDEN, int(data.y.max()) + 1)
    step = tp.train_step(loss, optimizer="adam", rate=RATE)
    state, values = step.begin(W0=W0, W1=W1), []
    for batch in batches(data, rng, epochs):
        value, state = step(state, **batch)
        values.append(float(value))
    return dict(state.parameters), np.array(values)


def accuracy(data: Citations, weights: dict[str, Array]) -> float:
    """The share of the test papers that get their class."""
    found = classes(weights["W0"], weights["W1"], normalized(data.A), normalized_rows(data.X))
    return float((found[data.test] == data.y[data.test]).mean())


def read_planetoid(folder: Path, name: str) -> Citations:
    """Read a graph with the split that papers compare by."""

    def read(part: str) -> Any:
        with (folder / f"ind.{name}.{part}").open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # pickled by an old scipy
            return pickle.load(file, encoding="latin1")

    graph, labels = read("graph"), np.vstack([read("ally"), read("ty")])
    X = sp.csr_array(sp.vstack([read("allx"), read("tx")]), dtype=float)
    test = np.loadtxt(folder / f"ind.{name}.test.index", dtype=int)
    place = np.arange(len(graph))  # the row of each paper in the files
    place[test] = np.arange(X.shape[0] - len(test), X.shape[0])
    rows = np.repeat(np.arange(len(graph)), [len(graph[paper]) for paper in range(len(graph))])
    columns = np.concatenate([graph[paper] for paper in range(len(graph))])
    A = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(graph), len(graph))).tocsr()
    A = sp.csr_array(((A + A.T) > 0).astype(float))
    return Citations(A, X[place], labels[place].argmax(1), np.arange(len(read("y"))), test)


def generated(papers: int, words: int, kinds: int, seed: int = 0) -> Citations:
    """Make a graph whose papers cite their own class most, and use its words most."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, kinds, papers)
    near = np.where(y[:, None] == y, 8 / papers, 1 / papers)
    A = np.triu(rng.random((papers, papers)) < near, 1)
    own = np.arange(words) % kinds == y[:, None]
    X = rng.random((papers, words)) < np.where(own, 0.2, 0.05)
    order = rng.permutation(papers)
    train, test = order[: papers // 10], order[papers // 10 :]
    return Citations(
        sp.csr_array((A | A.T).astype(float)), sp.csr_array(X.astype(float)), y, train, test
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", nargs="?", default="cora")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs")
    asked = parser.parse_args()
    data = read_planetoid(asked.folder, asked.name)
    print(
        f"{asked.name}: {data.A.shape[0]} papers, {data.A.nnz} citations, {data.X.shape[1]} words"
    )
    for seed in range(asked.seeds):
        weights, values = trained(data, seed)
        print(f"seed {seed}: loss {values[-1]:.3f}, accuracy {accuracy(data, weights):.3f}")


if __name__ == "__main__":
    main()
