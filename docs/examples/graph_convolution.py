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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import taco_py as tp

Array = np.ndarray[Any, Any]
HIDDEN, RATE, DECAY, EPOCHS = 16, 0.01, 5e-4, 200  # of the paper


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


def loss(W0: Any, W1: Any, A: Any, X: Any, key: Any, train: Any, y: Any, decay: Any) -> Any:
    X = tp.nn.dropout(X, 0.5, 2 * key)
    H = tp.nn.dropout(tp.nn.relu(A @ (X @ W0)), 0.5, 2 * key + 1)
    Z = (A @ (H @ W1))[train]
    return tp.nn.cross_entropy(Z, y) + decay / 2 * (W0 * W0).sum()


@tp.fuse
def classes(W0: Any, W1: Any, A: Any, X: Any) -> Any:
    return np.argmax(A @ (tp.nn.relu(A @ (X @ W0)) @ W1), axis=-1)


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


def operands(data: Citations) -> dict[str, Any]:
    """What each step reads: the graph, its features, and the classes that are given."""
    A, X = normalized(data.A), normalized_rows(data.X)
    return {"A": A, "X": X, "train": data.train, "y": data.y[data.train], "decay": DECAY}


def trained(data: Citations, seed: int = 0, epochs: int = EPOCHS) -> tuple[dict[str, Array], Array]:
    """Train, and return the weights and the loss of each epoch."""
    rng = np.random.default_rng(seed)
    W0 = glorot(rng, data.X.shape[1], HIDDEN)
    W1 = glorot(rng, HIDDEN, int(data.y.max()) + 1)
    step = tp.train_step(loss, optimizer="adam", rate=RATE)
    state, values, given = step.begin(W0=W0, W1=W1), [], operands(data)
    for key in range(epochs):
        value, state = step(state, **given, key=key + seed * epochs)
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
