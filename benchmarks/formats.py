"""How fast are y = A x, Y = A X and conversions for A in blocks, in slices of diagonals, as a
triangle, against CSR, SciPy and MKL?

A is the stiffness matrix of linear elasticity in three dimensions on a grid of hexahedra: each pair
of nodes that share one is a block of 3 × 3. And it is a stencil: of 5 points in two dimensions, of
27 in three.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from operator import matmul
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.mkl_handles import handle_products

SPMV, SPMM = "y[i] = A[i,j] * x[j]", "Y[i,k] = A[i,j] * X[j,k]"
CORNERS = np.array([
    [-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1],
    [-1, 1, 1],
])  # fmt: skip


def run() -> Iterator[Record]:
    return records("formats", contests())


def contests() -> Iterator[Contest]:
    for side in (12, 30):
        blocks = elasticity(side)
        rows = blocks.tocsr()
        rows.sort_indices()
        name = f"elasticity, {side}³ cells, {rows.nnz / 1e6:.1f}M entries"
        yield Contest(f"{name}: SpMV", spmv(blocks, rows))
        for columns in (8, 32):
            yield Contest(f"{name}: SpMM, {columns} columns", spmm(blocks, rows, columns))
        yield Contest(f"{name}: CSR to BSR", conversions(rows))
        yield Contest(f"{name}: SpMV, a triangle", triangle(rows))
    for name, matrix in (("5 points, 1000²", stencil(1000, 2)), ("27 points, 57³", stencil(57, 3))):
        yield Contest(f"{name}: SpMV", diagonals(matrix))
        yield Contest(f"{name}: CSR to SDIA(8)", {OURS: partial(slices_of, tp.tensor(matrix))})
        yield Contest(f"{name}: CSR to DIA", diagonals_of(matrix))


def spmv(blocks: Any, rows: Any) -> dict[str, Any]:
    x = np.random.default_rng(0).random(blocks.shape[1])
    own = partial(tp.evaluate, SPMV, x=x, threads=1)
    return {
        REFERENCE: partial(matmul, blocks, x),
        OURS: partial(own, A=tp.tensor(blocks)),
        f"{OURS}, CSR": partial(own, A=tp.tensor(rows)),
        "scipy, CSR": partial(matmul, rows, x),
        **handle_products(rows, x),
        **handle_products(blocks, x),
    }


def triangle(rows: Any) -> dict[str, Any]:
    x = np.random.default_rng(0).random(rows.shape[1])
    own = partial(tp.evaluate, SPMV, x=x, threads=1)
    return {
        REFERENCE: partial(matmul, rows, x),
        OURS: partial(own, A=tp.symmetric(rows, "lower")),
        f"{OURS}, CSR": partial(own, A=rows),
        **handle_products(rows, x),
    }


def diagonals(rows: Any) -> dict[str, Any]:
    x = np.random.default_rng(0).random(rows.shape[1])
    own = partial(tp.evaluate, SPMV, x=x, threads=1)
    return {
        REFERENCE: partial(matmul, rows, x),
        OURS: partial(own, A=tp.tensor(rows, format="sdia(8)")),
        f"{OURS}, DIA": partial(own, A=tp.tensor(rows, format="dia")),
        f"{OURS}, CSR": partial(own, A=rows),
        "scipy, DIA": partial(matmul, rows.todia(), x),
        **handle_products(rows, x),
    }


def slices_of(rows: tp.Tensor) -> Any:
    return rows.to_format("sdia(8)").stored.data.values  # type: ignore[attr-defined]


def diagonals_of(rows: Any) -> dict[str, Any]:
    own = tp.tensor(rows)
    return {
        REFERENCE: lambda: rows.todia().data.sum(),
        OURS: lambda: own.to_format("dia").stored.data.values.sum(),  # type: ignore[attr-defined]
    }


def stencil(side: int, modes: int) -> Any:
    """The matrix of a grid whose points are coupled to their neighbours: 4 in two dimensions, all
    26 around in three."""
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    if modes == 2:
        line = line - 3 * sp.eye_array(side)
        found = sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line)
    else:
        found = 27 * sp.eye_array(side**3) - sp.kron(sp.kron(line, line), line)
    rows = sp.csr_array(found)
    rows.sort_indices()
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def spmm(blocks: Any, rows: Any, columns: int) -> dict[str, Any]:
    X = np.random.default_rng(0).random((blocks.shape[1], columns))  # noqa: N806
    own = partial(tp.evaluate, SPMM, X=X, threads=1)
    return {
        REFERENCE: partial(matmul, blocks, X),
        OURS: partial(own, A=tp.tensor(blocks)),
        f"{OURS}, CSR": partial(own, A=tp.tensor(rows)),
        "scipy, CSR": partial(matmul, rows, X),
    }


def conversions(rows: Any) -> dict[str, Any]:
    own = tp.tensor(rows)
    return {
        REFERENCE: lambda: rows.tobsr((3, 3)),
        OURS: lambda: own.to_format(tp.BSR((3, 3))).to_scipy(),
    }


def elasticity(side: int) -> Any:
    """The stiffness matrix of side³ hexahedra, as a bsr_array of blocks of 3 × 3."""
    nodes_a_line = side + 1
    i, j, k = (axis.ravel() for axis in np.indices((side, side, side)))
    first = (i * nodes_a_line + j) * nodes_a_line + k
    corners = (CORNERS + 1) // 2
    offsets = (corners[:, 0] * nodes_a_line + corners[:, 1]) * nodes_a_line + corners[:, 2]
    nodes = first[:, None] + offsets
    count = nodes_a_line**3
    pairs = (np.repeat(nodes, 8, axis=1) * count + np.tile(nodes, (1, 8))).ravel()
    places, number = np.unique(pairs, return_inverse=True)
    blocks = np.zeros((len(places), 3, 3))
    own = element().reshape(8, 3, 8, 3).transpose(0, 2, 1, 3).reshape(64, 3, 3)
    np.add.at(blocks, number, np.tile(own, (side**3, 1, 1)))
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(places // count, minlength=count), out=starts[1:])
    columns = (places % count).astype(np.int32)
    return sp.bsr_array((blocks, columns, starts), shape=(3 * count, 3 * count))


def element() -> Any:
    """The stiffness of a cube of side 1, Young's modulus 1 and Poisson's ratio 0.3, by Gauss's rule
    of 2³ points."""
    young, poisson = 1.0, 0.3
    lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    shear = young / (2 * (1 + poisson))
    material = np.diag([2 * shear] * 3 + [shear] * 3)
    material[:3, :3] += lame
    found = np.zeros((24, 24))
    for point in product((-1 / np.sqrt(3), 1 / np.sqrt(3)), repeat=3):
        factors = 1 + CORNERS * np.array(point)
        strain = np.zeros((6, 24))
        for node, (own, sign) in enumerate(zip(factors, CORNERS, strict=True)):
            x, y, z = sign * np.prod(own) / own / 4
            strain[:, 3 * node : 3 * node + 3] = [
                [x, 0, 0], [0, y, 0], [0, 0, z], [y, x, 0], [0, z, y], [z, 0, x],
            ]  # fmt: skip
        found += strain.T @ material @ strain / 8
    return found
