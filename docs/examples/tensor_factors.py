"""A CP decomposition of a sparse tensor of order 3, by the gradient at its entries.

    python docs/examples/tensor_factors.py FILE.tns

Acar et al. 2011, Scalable tensor factorizations for incomplete data: what is not stored is unknown.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import taco_py as tp

Array = np.ndarray[Any, Any]
RANK, STEPS, RATE = 6, 300, 0.05


def loss(A: Any, B: Any, C: Any, M: Any, T: Any) -> Any:
    """Return the relative squared error over the entries of `T`; `M` is 1 at each of them."""
    E = tp.einsum("ijk,ir,jr,kr->ijk", M, A, B, C) - T
    return (E * E).sum() / (T * T).sum()


def decomposed(T: Any, M: Any, rank: int, steps: int) -> tuple[Any, list[float]]:
    """Train, and return the factors and the loss of each step."""
    rng = np.random.default_rng(0)
    step = tp.train_step(loss, optimizer="adam", rate=RATE)
    factors = {name: rng.random((size, rank)) for name, size in zip("ABC", T.shape, strict=True)}
    state, values = step.begin(factors), []
    for _ in range(steps):
        value, state = step(state, M=M, T=T)
        values.append(float(value))
    return state.parameters, values


def with_ones(coordinates: Array, values: Array, shape: Any) -> tuple[Any, Any]:
    """The tensor, and the one with 1 in each of its entries."""
    T = tp.Tensor.from_coo(coordinates, values, shape)
    return T, tp.Tensor.from_coo(coordinates, np.ones(len(values)), shape)


def generated(shape: tuple[int, int, int], rank: int, entries: int) -> tuple[Any, Any]:
    """Entries of a tensor of a rank."""
    rng = np.random.default_rng(1)
    places = rng.choice(int(np.prod(shape)), entries, replace=False)
    i, j, k = np.unravel_index(places, shape)
    A, B, C = (rng.random((size, rank)) for size in shape)
    return with_ones(np.array([i, j, k]), (A[i] * B[j] * C[k]).sum(-1), shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    table = np.loadtxt(parser.parse_args().file, ndmin=2)
    coordinates = table[:, :3].astype(int).T - 1
    T, M = with_ones(coordinates, table[:, 3], tuple(coordinates.max(1) + 1))
    _, values = decomposed(T, M, RANK, STEPS)
    print(f"{T.shape}, {len(table)} entries: loss {values[0]:.3f}, at the end {values[-1]:.3f}")


if __name__ == "__main__":
    main()
