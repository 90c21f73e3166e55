"""Factors of a matrix of ratings, by the gradient at the ratings that are there.

    python docs/examples/ratings.py FILE

FILE is `ratings.csv` of MovieLens (Harper and Konstan 2015), or a matrix that scipy.sparse kept.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

Array = np.ndarray[Any, Any]
RANK, EPOCHS, RATE, DECAY = 8, 100, 0.02, 5.0


def loss(U: Any, V: Any, b: Any, c: Any, M: Any, R: Any, decay: Any) -> Any:
    """Return the mean squared error over the entries of `R`; `M` is 1 at each of them."""
    E = M * (U @ V.T + b[:, None] + c) - R
    weights = (U * U).sum() + (V * V).sum() + (b * b).sum() + (c * c).sum()
    return ((E * E).sum() + decay * weights) / M.sum()


def split(R: sp.csr_array, share: float, seed: int = 0) -> tuple[sp.csr_array, sp.csr_array]:
    """Two matrices, the second with a share of the entries."""
    rng, found = np.random.default_rng(seed), R.tocoo()
    apart = rng.random(found.nnz) < share
    parts = []
    for chosen in (~apart, apart):
        coordinates = (found.row[chosen], found.col[chosen])
        parts.append(sp.csr_array((found.data[chosen], coordinates), shape=R.shape))
    return parts[0], parts[1]


def less(R: sp.csr_array, number: float) -> sp.csr_array:
    """Subtract a number from the entries of `R`."""
    return sp.csr_array((R.data - number, R.indices, R.indptr), shape=R.shape)


def pattern(R: sp.csr_array) -> sp.csr_array:
    """A matrix with 1 where `R` has an entry."""
    return sp.csr_array((np.ones(R.nnz), R.indices, R.indptr), shape=R.shape)


def trained(R: sp.csr_array, epochs: int, optimizer: str = "adam") -> tuple[Any, list[float]]:
    """Train on all ratings at once, and return the parameters and the loss of each epoch."""
    rng = np.random.default_rng(0)
    n, m = R.shape
    step = tp.train_step(loss, optimizer=optimizer, rate=RATE)
    M, values = pattern(R), []
    state = step.begin(
        U=0.1 * rng.standard_normal((n, RANK)),
        V=0.1 * rng.standard_normal((m, RANK)),
        b=np.zeros(n),
        c=np.zeros(m),
    )
    for _ in range(epochs):
        value, state = step(state, M=M, R=R, decay=DECAY)
        values.append(float(value))
    return state.parameters, values


def error(weights: dict[str, Array], R: sp.csr_array) -> float:
    """The root of the mean of squares over the entries of other ratings."""
    return float(np.sqrt(tp.fuse(loss)(**weights, M=pattern(R), R=R, decay=0.0)))


def read_ratings(file: Path) -> sp.csr_array:
    """Read the columns userId, movieId, rating, or a matrix of scipy."""
    if file.suffix == ".npz":
        return sp.csr_array(sp.load_npz(file)).astype(float)
    users, films, stars = np.loadtxt(file, delimiter=",", skiprows=1, usecols=(0, 1, 2)).T
    _, rows = np.unique(users, return_inverse=True)
    _, columns = np.unique(films, return_inverse=True)
    return sp.coo_array((stars, (rows, columns))).tocsr()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    known, asked = split(read_ratings(parser.parse_args().file), 0.1)
    mean = known.data.mean()
    known, asked = less(known, mean), less(asked, mean)
    weights, values = trained(known, EPOCHS)
    print(f"{known.shape[0]} users, {known.shape[1]} films, {known.nnz} ratings")
    print(f"loss {values[0]:.3f}, after {EPOCHS} steps {values[-1]:.3f}")
    print(f"error of {asked.nnz} other ratings {error(weights, asked):.3f}", end=", ")
    print(f"of the mean {np.sqrt((asked.data**2).mean()):.3f}")


if __name__ == "__main__":
    main()
