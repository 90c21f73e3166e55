"""Drawn matrices of many structures, for the choice of formats to be learned from.

Each number is a matrix, the same everywhere: a structure of `STRUCTURES`, a size, values that are
all equal or not, symmetric or not, of 64 or 32 bits. None is one of a public collection.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

SMALLEST, LARGEST = 11, 22
"""Powers of two of the entries."""
MOST_ROWS = 1 << 20
"""Rows of a matrix with few entries."""
Matrix = Any
Draw = Callable[[int, Random, np.random.Generator], Matrix]


def draw(number: int) -> tuple[str, Matrix]:
    """Return the structure and the matrix of a number, CSR in order without duplicates."""
    numbers, random = Random(number), np.random.default_rng(number)
    name = [*STRUCTURES][number % len(STRUCTURES)]
    entries = int(2 ** numbers.uniform(SMALLEST, LARGEST))
    matrix = sp.csr_array(STRUCTURES[name](entries, numbers, random))
    if numbers.random() < 0.25 and matrix.shape[0] == matrix.shape[1]:
        matrix = sp.csr_array(matrix + matrix.T)
    matrix.sum_duplicates()
    matrix.sort_indices()
    matrix.data = random.random(matrix.nnz) + 0.5
    if numbers.random() < 0.4:
        matrix.data[:] = 1.0
    elif name in SYMMETRIC and numbers.random() < 0.8:
        matrix = symmetric_values(matrix)
    dtype = np.float32 if numbers.random() < 0.2 else np.float64
    arrays = (matrix.data.astype(dtype), matrix.indices.astype(np.int32))
    return name, sp.csr_array((*arrays, matrix.indptr.astype(np.int32)), shape=matrix.shape)


def symmetric_values(matrix: Matrix) -> Matrix:
    """Return a matrix of a symmetric pattern with values that are symmetric too."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)).astype(np.int64)
    low, high = np.minimum(rows, matrix.indices), np.maximum(rows, matrix.indices)
    matrix.data = 0.5 + (low * 7919 + high * 104729) % 1021 / 1021
    return matrix


def of_places(rows: Any, columns: Any, shape: tuple[int, int]) -> Matrix:
    """Return the matrix of ones at some places."""
    return sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def banded(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """A band that is filled in part."""
    width, fill = numbers.choice((2, 4, 8, 20, 60, 200)), numbers.choice((1.0, 1.0, 0.7, 0.3))
    size = max(width + 2, int(entries / ((2 * width + 1) * fill)))
    count = int(size * (2 * width + 1) * fill)
    if fill == 1.0:
        rows = np.repeat(np.arange(size), 2 * width + 1)
        columns = rows + np.tile(np.arange(-width, width + 1), size)
    else:
        rows = random.integers(0, size, count)
        columns = rows + random.integers(-width, width + 1, count)
    inside = (columns >= 0) & (columns < size)
    return of_places(rows[inside], columns[inside], (size, size))


def stencil(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """A grid in two or three dimensions, whose points are coupled to near or all neighbours."""
    modes, corners = numbers.choice(((2, False), (2, True), (3, False), (3, True)))
    points = {(2, False): 5, (2, True): 9, (3, False): 7, (3, True): 27}[modes, corners]
    side = max(3, round((entries / points) ** (1 / modes)))
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    unit = sp.eye_array(side)
    grid: Matrix = line
    for _ in range(modes - 1):
        if corners:
            grid = sp.kron(grid, line)
        else:
            grid = sp.kron(grid, unit) + sp.kron(sp.eye_array(grid.shape[0]), line)
    return grid


def elasticity(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Blocks at the places of a stencil; in some of them zeros."""
    size = numbers.choice((2, 3, 3, 4, 6, 8))
    graph = sp.csr_array(stencil(max(64, entries // size**2), numbers, random))
    found = sp.kron(graph, np.ones((size, size)), format="csr")
    return thinned(found, numbers.choice((1.0, 1.0, 0.97, 0.8)), random)


def thinned(matrix: Matrix, share: float, random: np.random.Generator) -> Matrix:
    """Return a share of the entries of a matrix."""
    if share == 1.0:
        return matrix
    matrix.data = (random.random(matrix.nnz) < share).astype(float)
    matrix.eliminate_zeros()
    return matrix


def blocks_anywhere(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Blocks of several shapes at random places."""
    rows, columns = numbers.choice(((2, 2), (4, 4), (8, 8), (2, 1), (4, 1), (8, 1), (1, 4), (3, 3)))
    graph = uniform(max(64, entries // (rows * columns)), numbers, random)
    found = sp.kron(sp.csr_array(graph), np.ones((rows, columns)), format="csr")
    return thinned(found, numbers.choice((1.0, 1.0, 0.9)), random)


def uniform(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Entries anywhere."""
    length = numbers.choice((1.5, 3, 6, 12, 30, 100))
    size = max(8, int(entries / length))
    other = int(size * numbers.choice((0.1, 1, 1, 1, 4)) + 8)
    return of_places(random.integers(0, size, entries), random.integers(0, other, entries),
                     (size, other))  # fmt: skip


def hypersparse(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Far more rows than entries."""
    ratio = numbers.choice((2, 4, 10, 30))
    size = min(entries * ratio, MOST_ROWS)
    entries = size // ratio
    near = numbers.random() < 0.5
    rows = random.integers(0, size, entries)
    if near:
        rows = rows // 64 * 64
    columns = random.integers(0, size, entries)
    return of_places(rows, columns, (size, size))


def power_law(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Rows and columns whose lengths follow a power law."""
    size = max(64, int(entries / numbers.choice((2, 4, 8, 20, 60))))
    power = numbers.choice((1.5, 2.0, 3.0))
    rows, columns = (
        np.minimum(size - 1, (size * random.random(entries) ** power).astype(np.int64))
        for _ in range(2)
    )
    if numbers.random() < 0.7:
        rows, columns = random.permutation(size)[rows], random.permutation(size)[columns]
    return of_places(rows, columns, (size, size))


def communities(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """A graph whose neighbours lie near each other, and some far away: a web, a mesh."""
    size = max(64, int(entries / numbers.choice((3, 6, 10, 30))))
    rows = random.integers(0, size, entries)
    reach = numbers.choice((10, 100, 1000))
    columns = rows + (reach * random.standard_cauchy(entries)).astype(np.int64)
    columns = np.where(
        (columns >= 0) & (columns < size), columns, random.integers(0, size, entries)
    )
    return of_places(rows, columns, (size, size))


def skewed(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Short rows, and a few that have a large part of all entries."""
    size = max(64, entries // 6)
    long = max(1, int(size * 0.002))
    share = numbers.choice((0.2, 0.5))
    count = int(entries * share)
    rows = np.concatenate([
        random.integers(0, size, entries - count), random.integers(0, long, count) * (size // long),
    ])  # fmt: skip
    return of_places(rows, random.integers(0, size, entries), (size, size))


def block_diagonal(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Dense or sparse squares along the diagonal."""
    size = numbers.choice((2, 4, 6, 8, 12, 16, 32, 100))
    count = max(2, entries // size**2)
    found = sp.kron(sp.eye_array(count), np.ones((size, size)), format="csr")
    return thinned(found, numbers.choice((1.0, 1.0, 0.5)), random)


def weights(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Pruned weights of a network: a third to a fiftieth of all elements, anywhere."""
    density = numbers.choice((0.5, 0.3, 0.2, 0.1, 0.05, 0.02))
    size = max(16, int(sqrt(entries / density)))
    ratio = numbers.choice((0.25, 1, 1, 4))
    shape = max(8, int(size * ratio)), max(8, int(size / ratio))
    count = int(shape[0] * shape[1] * density)
    places = random.choice(shape[0] * shape[1], count, replace=False, shuffle=False)
    return of_places(places // shape[1], places % shape[1], shape)


def flat(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """Few long rows, or many short ones, as constraints and ratings have."""
    small = numbers.choice((16, 64, 300, 2000))
    length = max(64, int(entries / small / numbers.choice((0.02, 0.1, 0.3))))
    power = numbers.choice((1.0, 2.0))
    rows = (small * random.random(entries) ** power).astype(np.int64)
    columns = random.integers(0, length, entries)
    shape = small, length
    if numbers.random() < 0.5:
        rows, columns, shape = columns, rows, (length, small)
    return of_places(rows, columns, shape)


def circuit(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """A diagonal, neighbours on a few diagonals, and wires that go anywhere."""
    size = max(64, entries // 7)
    offsets = [0, 1, -1, numbers.randint(2, 60), -numbers.randint(2, 60)]
    lines = sp.diags_array([np.ones(size - abs(k)) for k in offsets], offsets=offsets)
    wires = of_places(*(random.integers(0, size, 2 * size) for _ in range(2)), (size, size))
    return thinned(sp.csr_array(lines), numbers.choice((1.0, 0.6)), random) + wires


def triangle(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """The lower triangle of a band or of entries anywhere."""
    whole = banded if numbers.random() < 0.5 else uniform
    return sp.tril(whole(2 * entries, numbers, random))


def shuffled(entries: int, numbers: Random, random: np.random.Generator) -> Matrix:
    """A stencil or blocks whose rows and columns are in another order."""
    found = sp.csr_array(
        (stencil if numbers.random() < 0.6 else elasticity)(entries, numbers, random)
    )
    order = random.permutation(found.shape[0])
    return found[order][:, order]


STRUCTURES: dict[str, Draw] = {
    "banded": banded, "stencil": stencil, "elasticity": elasticity, "blocks": blocks_anywhere,
    "uniform": uniform, "hypersparse": hypersparse, "power law": power_law,
    "communities": communities, "skewed": skewed, "block diagonal": block_diagonal,
    "weights": weights, "flat": flat, "circuit": circuit, "triangle": triangle,
    "shuffled": shuffled,
}  # fmt: skip
SYMMETRIC = ("stencil", "elasticity", "shuffled", "block diagonal")
"""Structures whose patterns are symmetric as a rule."""
