"""What the demo computes: index notation with its operands beside what scipy users write for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import taco_py as tp
from codegen.records import dataclass

COLUMNS = 32  # of the dense factors
MOST_PRODUCTS = 200_000_000  # a sparse product that needs more is left out

Compute = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel on one input: index notation with its operands, and the same in scipy."""

    name: str
    text: str
    operands: Mapping[str, Any]
    reference: Compute


def matrix_jobs(matrix: sp.csr_array) -> list[Job]:
    """Return SpMV, SpMM, SpGEMM and SDDMM."""
    random = np.random.default_rng(1)
    rows, columns = matrix.shape
    x = random.random(columns)
    right = random.random((columns, COLUMNS))
    left = random.random((rows, COLUMNS))
    other = matrix if rows == columns else sp.csr_array(matrix.T)
    jobs = [
        Job("SpMV", "y[i] = A[i,j] * x[j]", {"A": matrix, "x": x}, lambda: matrix @ x),
        Job("SpMM", "C[i,k] = A[i,j] * X[j,k]", {"A": matrix, "X": right}, lambda: matrix @ right),
        Job(
            "SDDMM",
            "D[i,j] = A[i,j] * U[i,k] * V[j,k]",
            {"A": matrix, "U": left, "V": right},
            lambda: sampled_product(matrix, left, right),
        ),
    ]
    if products(matrix, other) <= MOST_PRODUCTS:
        operands = {"A": matrix, "B": other}
        multiply = Job("SpGEMM", "C[i,k] = A[i,j] * B[j,k]", operands, lambda: matrix @ other)
        jobs.insert(2, multiply)
    else:
        print(f"  SpGEMM is left out: it needs {products(matrix, other):.1e} products")
    return jobs


def products(a: sp.csr_array, b: sp.csr_array) -> int:
    """Count how many multiplications the sparse product a·b takes."""
    return int(np.diff(b.indptr)[a.indices].sum(dtype=np.int64))


def sampled_product(s: sp.csr_array, u: NDArray[Any], v: NDArray[Any]) -> sp.csr_array:
    """Compute S ∘ (U Vᵀ) as scipy users write it: gather both rows of every nonzero, then sum."""
    rows = np.repeat(np.arange(s.shape[0]), np.diff(s.indptr))
    values = s.data * np.einsum("nk,nk->n", u[rows], v[s.indices])
    return sp.csr_array((values, s.indices, s.indptr), shape=s.shape)


def tensor_jobs(
    coordinates: NDArray[Any], values: NDArray[Any], shape: tuple[int, ...]
) -> list[Job]:
    """Return TTV over the last mode, MTTKRP over the first, and the squared norm."""
    random = np.random.default_rng(1)
    tensor = tp.Tensor.from_coo(coordinates, values, shape, tp.CSF(len(shape)), axis=1)
    letters = [f"i{mode}" for mode in range(len(shape))]
    every, free = ",".join(letters), ",".join(letters[:-1])
    x = random.random(shape[-1])
    factors = {f"F{mode}": random.random((shape[mode], COLUMNS)) for mode in range(1, len(shape))}
    product = " * ".join(f"F{mode}[{letters[mode]},r]" for mode in range(1, len(shape)))
    return [
        Job(
            "TTV",
            f"R[{free}] = T[{every}] * x[{letters[-1]}]",
            {"T": tensor, "x": x},
            lambda: times_vector(coordinates, values, shape, x),
        ),
        Job(
            "MTTKRP",
            f"M[i0,r] = T[{every}] * {product}",
            {"T": tensor, **factors},
            lambda: mttkrp(coordinates, values, shape[0], list(factors.values())),
        ),
        Job(
            "squared norm",
            f"s = T[{every}] * T[{every}]",
            {"T": tensor},
            lambda: np.dot(values, values),
        ),
    ]


def times_vector(
    coordinates: NDArray[Any], values: NDArray[Any], shape: tuple[int, ...], x: NDArray[Any]
) -> Any:
    """Compute TTV as scipy users write it: scale the nonzeros, then let scipy add those that
    coincide."""
    rows = tuple(coordinates[:, mode] for mode in range(len(shape) - 1))
    return summed(values * x[coordinates[:, -1]], rows, shape[:-1])


def mttkrp(
    coordinates: NDArray[Any], values: NDArray[Any], rows: int, factors: list[NDArray[Any]]
) -> NDArray[Any]:
    """Compute MTTKRP as scipy users write it: a sparse matrix adds the scaled factor rows up."""
    scaled = values[:, None]
    for mode, factor in enumerate(factors, start=1):
        scaled = scaled * factor[coordinates[:, mode]]
    count = np.arange(values.size)
    add = sp.csr_array((np.ones(values.size), (coordinates[:, 0], count)), (rows, values.size))
    return np.asarray(add @ scaled)


def summed(values: NDArray[Any], coordinates: tuple[NDArray[Any], ...], shape: Any) -> Any:
    """Return an n-D coo_array without duplicates. (scipy's type stubs know no more than two
    modes.)"""
    build: Any = sp.coo_array
    result = build((values, coordinates), shape=shape)
    result.sum_duplicates()
    return result
