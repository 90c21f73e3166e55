"""Logistic regression on the words of documents: sparse features, one weight for word and class.

    python docs/examples/documents.py FOLDER

The classes are the text files of FOLDER, the documents their paragraphs: `docs` will do.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

Array = np.ndarray[Any, Any]
STEPS, RATE, DECAY = 100, 0.1, 1e-5


def loss(W: Any, b: Any, X: Any, y: Any, decay: Any) -> Any:
    return tp.nn.cross_entropy(X @ W + b, y) + decay / 2 * (W * W).sum()


def trained(X: sp.csr_array, y: Array, steps: int) -> tuple[Any, list[float]]:
    """Train on all documents at once, and return the weights and the loss of each step."""
    step = tp.train_step(loss, optimizer="adam", rate=RATE)
    kinds = int(y.max()) + 1
    state, values = step.begin(W=np.zeros((X.shape[1], kinds)), b=np.zeros(kinds)), []
    for _ in range(steps):
        value, state = step(state, X=X, y=y, decay=DECAY)
        values.append(float(value))
    return state.parameters, values


def accuracy(weights: dict[str, Array], X: sp.csr_array, y: Array) -> float:
    """The share of documents that get their class."""
    found = tp.fuse(lambda W, b, X: np.argmax(X @ W + b, axis=-1))(**weights, X=X)
    return float((found == y).mean())


def weighted_words(documents: Sequence[Sequence[str]]) -> sp.csr_array:
    """The words of documents, a row for each: rare ones weigh more, rows have length 1."""
    counts = [Counter(words) for words in documents]
    known = {word: number for number, word in enumerate(sorted(set().union(*counts)))}
    rows = np.repeat(np.arange(len(counts)), [len(each) for each in counts])
    columns = [known[word] for each in counts for word in each]
    times = np.array([number for each in counts for number in each.values()], float)
    X = sp.coo_array((np.log1p(times), (rows, columns)), shape=(len(counts), len(known))).tocsr()
    X = X.multiply(np.log(len(counts) / np.maximum((X > 0).sum(0), 1)))
    found = sp.csr_array(X.multiply(1 / np.maximum(np.sqrt(X.power(2).sum(1)), 1e-9)[:, None]))
    found.sort_indices()
    return found


def paragraphs(folder: Path) -> tuple[list[list[str]], Array]:
    """The words of each paragraph of ten words or more, and the number of its file."""
    documents, classes = [], []
    for number, file in enumerate(sorted(folder.glob("*.md")) or sorted(folder.glob("*.txt"))):
        for paragraph in re.split(r"\n\s*\n", file.read_text()):
            words = re.findall(r"[a-z]{3,}", paragraph.lower())
            if len(words) >= 10:
                documents.append(words)
                classes.append(number)
    return documents, np.array(classes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    documents, y = paragraphs(parser.parse_args().folder)
    X = weighted_words(documents)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    weights, values = trained(X[train], y[train], STEPS)
    print(f"{X.shape[0]} paragraphs, {X.shape[1]} words, {y.max() + 1} files")
    print(f"loss {values[0]:.3f}, after {STEPS} steps {values[-1]:.3f}")
    most = float((y[test] == np.bincount(y[train]).argmax()).mean())
    print(f"accuracy {accuracy(weights, X[test], y[test]):.3f}, of the largest file {most:.3f}")


if __name__ == "__main__":
    main()
