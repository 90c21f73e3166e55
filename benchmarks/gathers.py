"""What do steps of training take that read rows at positions, and add gradients up there?

`ratings` is a factorisation: the squares of what products of rows of two factors are off at 100 000
ratings, with the gradients of both; `ratings, product` is the same loss by `(U @ V.T)[rows, cols]`,
which NumPy and SciPy do not compute so. `bag` is a mean of embeddings of 256 texts of 50 words, a
linear layer and the cross entropy of `logp[np.arange(n), y]`. Gradients are added up by a product
with a matrix of one entry a row in SciPy, and by `np.add.at` in NumPy.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records

Scatter = Callable[[Any, Any, int], Any]


def run() -> Iterator[Record]:
    yield from records("gathers", contests())


def contests() -> Iterator[Contest]:
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 6000, 100_000), rng.integers(0, 4000, 100_000)
    factors = rng.random((6000, 32)), rng.random((4000, 32))
    ratings = (*factors, rows, cols, rng.random(100_000))
    for name, loss in (("ratings", by_rows), ("ratings, product", by_product)):
        yield contest(name, loss, ("U", "V"), by_hand, ratings)
    words, labels = rng.integers(0, 20_000, (256, 50)), rng.integers(0, 20, 256)
    layers = rng.random((20_000, 64)), rng.random((64, 20))
    yield contest("bag", bag, ("E", "W"), bag_by_hand, (*layers, words, labels))


def contest(
    name: str, loss: Callable[..., Any], wrt: tuple[str, ...], hand: Any, operands: Any
) -> Contest:
    """A loss and its gradients, by hand and by tacopy."""
    ours = tp.value_and_grad(loss, wrt)
    alone = tp.value_and_grad(loss, wrt, optimize="none")
    contenders = {
        REFERENCE: partial(hand, by_sparse_product, *operands),
        "np.add.at": partial(hand, by_add_at, *operands),
        OURS: lambda: flat(ours(*operands)),
    }
    if loss is not by_product:  # each primitive by itself makes the product
        contenders[f"{OURS}, none"] = lambda: flat(alone(*operands))
    return Contest(name, contenders)


def flat(found: Any) -> Any:
    """A value and two gradients as one vector, to compare."""
    value, gradients = found
    return np.concatenate([np.ravel(value), *map(np.ravel, gradients)])


def by_rows(U: Any, V: Any, rows: Any, cols: Any, r: Any) -> Any:
    """The squares of what products of rows are off."""
    return (((U[rows] * V[cols]).sum(-1) - r) ** 2).mean()


def by_product(U: Any, V: Any, rows: Any, cols: Any, r: Any) -> Any:
    """The same by elements of the product of the factors."""
    return (((U @ V.T)[rows, cols] - r) ** 2).mean()


def by_hand(scatter: Scatter, U: Any, V: Any, rows: Any, cols: Any, r: Any) -> Any:
    """The loss and its gradients as a user of NumPy writes them."""
    u, v = U[rows], V[cols]
    error = np.einsum("nk,nk->n", u, v) - r
    share = (2 / len(r) * error)[:, None]
    gradients = scatter(rows, share * v, len(U)), scatter(cols, share * u, len(V))
    return flat(((error @ error) / len(r), gradients))


def bag(E: Any, W: Any, words: Any, labels: Any) -> Any:
    """The cross entropy of labels of texts."""
    Z = E[words].mean(1) @ W
    Z = Z - Z.max(-1, keepdims=True)
    logp = Z - np.log(np.exp(Z).sum(-1, keepdims=True))
    return -logp[np.arange(len(labels)), labels].mean()


def bag_by_hand(scatter: Scatter, E: Any, W: Any, words: Any, labels: Any) -> Any:
    """The loss and its gradients as a user of NumPy writes them."""
    H, each = E[words].mean(1), np.arange(len(labels))
    Z = H @ W
    P = np.exp(Z - Z.max(-1, keepdims=True))
    P /= P.sum(-1, keepdims=True)
    value = -np.log(P[each, labels]).mean()
    P[each, labels] -= 1
    P /= len(labels)
    of_words = np.repeat(P @ W.T / words.shape[1], words.shape[1], axis=0)
    return flat((value, (scatter(words.ravel(), of_words, len(E)), H.T @ P)))


def by_add_at(positions: Any, values: Any, size: int) -> Any:
    """Add rows up at positions, as np.add.at does."""
    found = np.zeros((size, values.shape[1]), values.dtype)
    np.add.at(found, positions, values)
    return found


def by_sparse_product(positions: Any, values: Any, size: int) -> Any:
    """Add rows up at positions, by a matrix of one entry a row."""
    ends = np.arange(len(positions) + 1)
    ones = np.ones(len(positions), values.dtype)
    return sp.csr_array((ones, positions, ends), (len(positions), size)).T @ values
