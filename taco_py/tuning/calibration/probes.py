"""Small kernels of one kind each, whose seconds say what the parts of prices cost on a machine.

    Probe("rows times vector, 2000", "y[i] = A[i,j] * x[j]", {"A": …, "x": …})

They are in the order in which they are measured: the first ones already have each kind once. What
is a part of many prices, as iterations and lines, is in probes of several sizes; a coefficient that
no probe needs stays as it was shipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from codegen.records import dataclass
from taco_py.data.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Drawn:
    """An operand of numbers from 0.5 to 1.5.

    entries  that are stored, anywhere, of a matrix in CSR or a tensor in CSF; None for all
    """

    shape: tuple[int, ...]
    entries: int | None = None
    dtype: str = "float64"
    seed: int = 0

    def make(self) -> Any:
        """Return the operand, the same one each time."""
        rng = np.random.default_rng(self.seed)
        if self.entries is None:
            return (0.5 + rng.random(self.shape)).astype(self.dtype)
        places = np.sort(rng.integers(0, prod(self.shape), self.entries))
        places = places[np.diff(places, prepend=-1) > 0]
        columns = np.unravel_index(places, self.shape)
        values = 0.5 + rng.random(places.size)
        if len(self.shape) == 2:
            return sp.csr_array((values, columns), shape=self.shape)
        form = "s" * len(self.shape)
        return Tensor.from_coo(list(columns), values, self.shape, format=form)


Operands = Mapping[str, Drawn]


@dataclass(frozen=True, slots=True)
class Probe:
    """A text over operands that are drawn, and the threads that run it."""

    name: str
    text: str
    operands: Operands
    threads: int = 1

    def make_operands(self) -> dict[str, Any]:
        """Return the operands by name."""
        return {name: drawn.make() for name, drawn in self.operands.items()}


def full(*shape: int, dtype: str = "float64", seed: int = 1) -> Drawn:
    """Describe a dense array."""
    return Drawn(shape, dtype=dtype, seed=seed)


def sparse(rows: int, columns: int, row: int, seed: int = 0) -> Drawn:
    """Describe a matrix in CSR with `row` entries in a row on average."""
    return Drawn((rows, columns), rows * row, seed=seed)


def _square(size: int, row: int, seed: int = 0) -> Drawn:
    return sparse(size, size, row, seed)


SPMV, SPMM = "y[i] = A[i,j] * x[j]", "Y[i,f] = A[i,j] * X[j,f]"
ADD, MERGE = "C[i,j] = A[i,j] + B[i,j]", "s = A[i,j] * B[i,j]"
MATMUL, SDDMM = "C[i,j] = A[i,k] * B[k,j]", "Y[i,j] = S[i,j] * U[i,r] * V[j,r]"
SCATTER, TURN = "y[j] = A[i,j] * x[i]", "B[j,i] = A[i,j]"
ROWS, COLUMNS = "y[i] = A[i,j]", "y[j] = A[i,j]"
VECTORS, EXP, LOG = "z[i] = x[i] + y[i]", "y[i] = exp(x[i])", "y[i] = log(x[i])"
BATCH, TTV = "C[b,i,j] = A[b,i,k] * B[b,k,j]", "Y[i,j] = T[i,j,k] * v[k]"
MTTKRP = "Y[i,r] = T[i,j,k] * U[j,r] * V[k,r]"
SQUARES, TURNED = "s = A[i,j] * A[i,j]", "C[i,j] = A[i,j] + B[j,i]"
MINUS = "D[i,j] = A[i,j] - B[i,j] * C[i,j]"


def _two(size: int, row: int, dtype: str = "") -> Operands:
    """Describe two operands of a size: sparse ones with entries in a row, or dense ones."""
    if dtype:
        return {"A": full(size, row, dtype=dtype), "B": full(row, size, dtype=dtype, seed=2)}
    return {"A": _square(size, row), "B": _square(size, row, 2)}


def _with_vector(size: int, row: int) -> Operands:
    return {"A": _square(size, row), "x": full(size)}


def _with_panel(size: int, row: int, width: int) -> Operands:
    return {"A": _square(size, row), "X": full(size, width)}


def _sampled(size: int, row: int, width: int) -> Operands:
    return {"S": _square(size, row), "U": full(size, width), "V": full(size, width, seed=2)}


def _vectors(size: int) -> Operands:
    return {"x": full(size), "y": full(size, seed=2)}


_CUBE = Drawn((200, 250, 300), 30_000)

PROBES = (
    Probe("rows times vector, 2000", SPMV, _with_vector(2000, 10)),
    Probe("rows times panel, 2000 by 16", SPMM, _with_panel(2000, 10, 16)),
    Probe("product of entries, 10000", MERGE, _two(10_000, 8)),
    Probe("sparse times sparse, 1500", MATMUL, _two(1500, 8)),
    Probe("sums of rows, 400", ROWS, {"A": full(400, 400)}),
    Probe("product of matrices, 256", MATMUL, _two(256, 256, "float64")),
    Probe("exp of 20000", EXP, {"x": full(20_000)}),
    Probe("two vectors of 20", VECTORS, _vectors(20)),
    Probe("two vectors of a million", VECTORS, _vectors(1_000_000)),
    Probe("rows times vector, 200000", SPMV, _with_vector(200_000, 6)),
    Probe("matrix and one turned, 4000", TURNED, _two(4000, 10)),
    Probe("rows times vector, 100", SPMV, _with_vector(100, 6)),
    Probe("rows times vector, 12000", SPMV, _with_vector(12_000, 12)),
    Probe("rows times vector, 50000", SPMV, _with_vector(50_000, 10)),
    Probe("rows times panel, 4000 by 64", SPMM, _with_panel(4000, 8, 64)),
    Probe("rows times panel, 20000 by 32", SPMM, _with_panel(20_000, 6, 32)),
    Probe("columns times vector, 5000", SCATTER, _with_vector(5000, 10)),
    Probe("columns times vector, 60000", SCATTER, _with_vector(60_000, 8)),
    Probe("sum of matrices, 1000", ADD, _two(1000, 10)),
    Probe("sum of matrices, 20000", ADD, _two(20_000, 8)),
    Probe("product of entries, 800", MERGE, _two(800, 12)),
    Probe("sparse times sparse, 6000", MATMUL, _two(6000, 6)),
    Probe("sampled product, 2000 by 16", SDDMM, _sampled(2000, 10, 16)),
    Probe("sampled product, 6000 by 48", SDDMM, _sampled(6000, 8, 48)),
    Probe("transposed, 300", TURN, {"A": full(300, 300)}),
    Probe("transposed, 1500", TURN, {"A": full(1500, 1500)}),
    Probe("sums of rows, 2000", ROWS, {"A": full(2000, 2000)}),
    Probe("sums of columns, 600", COLUMNS, {"A": full(600, 600)}),
    Probe("two vectors of 20000", VECTORS, _vectors(20_000)),
    Probe("product of matrices, 96", MATMUL, _two(96, 96, "float64")),
    Probe("product of floats, 384", MATMUL, _two(384, 384, "float32")),
    Probe("batch of products", BATCH, {"A": full(300, 24, 24), "B": full(300, 24, 24, seed=2)}),
    Probe("exp of 400000", EXP, {"x": full(400_000)}),
    Probe("log of 50000", LOG, {"x": full(50_000)}),
    Probe("three matrices, 500", MINUS, {n: full(500, 500, seed=k) for k, n in enumerate("ABC")}),
    Probe("tensor times vector", TTV, {"T": _CUBE, "v": full(300)}),
    Probe("tensor times two matrices", MTTKRP, {"T": _CUBE, "U": full(250, 12),
          "V": full(300, 12, seed=2)}),
    Probe("squares of entries, 30000", SQUARES, {"A": _square(30_000, 10)}),
    Probe("rows times vector, 50000, shared", SPMV, _with_vector(50_000, 10), 2),
    Probe("rows times panel, shared", SPMM, _with_panel(4000, 8, 64), 2),
    Probe("sums of rows, shared", ROWS, {"A": full(1500, 1500)}, 2),
    Probe("exp, shared", EXP, {"x": full(400_000)}, 2),
)  # fmt: skip
"""Kernels of few milliseconds at most, none of which says what another one does not."""
