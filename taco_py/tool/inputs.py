"""Matrices and tensors to try kernels on, made from a few numbers: the same numbers, the same
matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Coordinates = tuple[NDArray[np.int64], ...]


def pde27(nx: int, ny: int | None = None, nz: int | None = None) -> sp.csr_array:
    """Return the 27-point operator on a box of nx x ny x nz points: 26 on the diagonal, -1 at each
    neighbour.

    It is the operator of the HPCG benchmark (Dongarra et al. 2016): up to 27 nonzeros a row,
    symmetric.
    """

    def line(points: int) -> sp.dia_array:
        ones = np.ones(points)
        return sp.diags_array([ones[1:], ones, ones[1:]], offsets=[-1, 0, 1])

    box = sp.kron(line(nz or nx), sp.kron(line(ny or nx), line(nx)))
    matrix = sp.csr_array(box)
    matrix.eliminate_zeros()  # kron of small factors stores whole blocks
    matrix.data[:] = -1.0
    matrix.setdiag(26.0)
    matrix.sort_indices()
    return matrix


def poisson(side: int) -> sp.csr_array:
    """Return the 5-point operator on a square of side x side points."""
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    matrix = sp.csr_array(sp.kron(one, eye) + sp.kron(eye, one))
    matrix.sort_indices()
    return matrix


def rmat(scale: int, edges: int = 8, seed: int = 0) -> sp.csr_array:
    """Return a power-law graph of 2^scale vertices and at most edges·2^scale arcs, with random
    weights.

    Recursive matrix (Chakrabarti, Zhan and Faloutsos 2004) with Graph500's probabilities .57 .19
    .19 .05: each arc chooses one quadrant of the matrix at each of `scale` levels. Arcs chosen
    twice are kept once.
    """
    random = np.random.default_rng(seed)
    count = edges << scale
    rows = np.zeros(count, np.int64)
    columns = np.zeros(count, np.int64)
    for _ in range(scale):
        quadrant = random.random(count)
        rows = 2 * rows + (quadrant >= 0.76)
        columns = 2 * columns + (((quadrant >= 0.57) & (quadrant < 0.76)) | (quadrant >= 0.95))
    keys = np.unique((rows << scale) + columns)
    return _from_keys(keys, (1 << scale, 1 << scale), random)


def uniform(rows: int, columns: int, per_row: int, seed: int = 0) -> sp.csr_array:
    """Draw about `per_row` nonzeros in each row, anywhere."""
    random = np.random.default_rng(seed)
    keys = np.unique(random.integers(0, rows * columns, rows * per_row))
    return _from_keys(keys, (rows, columns), random)


def _from_keys(
    keys: NDArray[np.int64], shape: tuple[int, int], random: np.random.Generator
) -> sp.csr_array:
    """Return random values at sorted row-major positions; int32 indices, as scipy users mostly
    have."""
    rows, columns = (where.astype(np.int32) for where in np.divmod(keys, shape[1]))
    return sp.csr_array((random.random(keys.size), (rows, columns)), shape=shape)


def tensor_coordinates(
    shape: tuple[int, ...], nonzeros: int, skew: float = 0.0, seed: int = 0
) -> tuple[Coordinates, NDArray[Any]]:
    """Return distinct sorted coordinates, one array a mode, and their values.

    skew 0 is uniform; larger values crowd the coordinates toward 0 by the power 1 + skew.
    """
    random = np.random.default_rng(seed)
    modes = [(size * random.random(nonzeros) ** (1.0 + skew)).astype(np.int64) for size in shape]
    keys = np.unique(np.ravel_multi_index(modes, shape)) if nonzeros else np.zeros(0, np.int64)
    coordinates = np.unravel_index(keys, shape)
    return tuple(mode.astype(np.int64) for mode in coordinates), random.random(keys.size)
