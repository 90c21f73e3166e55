"""The formats that a matrix may be stored in for products, and what each is expected to take.

`STORAGES` is the table: a storage counts what it stores of a sample, and says what must hold so
that products have the values that CSR gives.

    27 points in 3 dimensions   SDIA(8): 1.01 values in 0.127 slots an entry
    elasticity                  BSR(3,3): 1.00 values in 0.111 blocks
    a graph                     SDIA(8): nearly 8 values an entry
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.formats import (
    BSR,
    COO,
    CSR,
    DCSR,
    DIA,
    ELL,
    SDIA,
    SELL,
    SYM,
    Format,
    RemappedFormat,
    dense,
)
from taco_py.tuning.formats.matrix_sample import MatrixSample

AnyFormat = Format | RemappedFormat
EQUAL = Format.parse("de")
"""Rows of coordinates with one value for all entries."""
BLOCKS = ((2, 1), (4, 1), (8, 1), (2, 2), (3, 3), (4, 4), (6, 6), (8, 8))
"""The candidate sizes of blocks."""
HEIGHT = 8
"""The rows of candidate slices: the lanes of a vector."""
MOST_VALUES = 4.0
"""Values that a candidate stores for each entry at most."""
MOST_DENSE = 12.0
"""Elements of a dense matrix for each entry at most."""
MOST_DIAGONALS = 256
"""Diagonals of a matrix in DIA at most."""
MIRRORED = 1.0
"""The share of sampled entries with equal mirror images from which SYM is a candidate."""
BYTE, ENTRY, ROW, SLOT, SLICE, BLOCK = 0.03, 0.06, 2.6, 1.0, 7.5, 0.8
"""Nanoseconds for each byte from memory; in CSR for each entry and row; for each slot and slice;
for each block. Fitted to measurements of `benchmarks/formats.py` on an EPYC: CSR 0.96,
0.52 and 0.48 ns an entry on 5 points, 27 points and elasticity; SDIA 0.58 and 0.44; BSR 0.35."""
COLUMN, COLUMN_OF_BLOCK, COLUMN_OF_SLOT, COLUMN_OF_DIAGONAL = 0.09, 0.05, 0.2, 0.3
"""Nanoseconds for each value and each further column of a dense operand: in rows, blocks, slots of
slices, and diagonals."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A format with what it stores for each entry, and what it is expected to take.

    kind     of storage, its place in `KINDS`
    values   stored values
    units    rows, slots or blocks, by `unit`
    bytes    of values and coordinates
    fixed    nanoseconds of a product with a vector, for each entry
    column   nanoseconds of each further column, for each entry
    convert  nanoseconds of the conversion from CSR, for each entry
    finite   whether its padding is multiplied: with infinities products would be NaN
    full     whether it stores no padding that products multiply, as far as the sample tells
    lists    whether products with dense operands are lists of rows unless `format=` says dense
    serial   whether products run in one thread
    """

    format: AnyFormat
    kind: str
    values: float
    units: float
    unit: str
    bytes: float
    fixed: float
    column: float
    convert: float
    finite: bool = False
    full: bool = False
    lists: bool = False
    serial: bool = False

    def product(self, columns: int) -> float:
        """Return the nanoseconds of a product for each entry.

        columns  of the dense operand
        """
        return self.fixed + self.column * (columns - 1)

    @property
    def is_checked(self) -> bool:
        """Tell whether only the whole matrix tells that it may be stored so."""
        return self.full or self.kind == "SYM"

    def is_exact(self, stored: TensorData, entries: int) -> bool:
        """Tell whether a stored matrix has no padding that products multiply."""
        return not self.full or stored.nnz == entries


Storage = Callable[[MatrixSample], Iterator[Candidate]]


def candidates_of(sample: MatrixSample, finite: bool = False) -> tuple[Candidate, ...]:
    """Return the formats that a matrix may be stored in, CSR first.

    finite  whether the dense operands of products have finite numbers alone
    """
    candidates = (one for storage in STORAGES for one in storage(sample))
    return tuple(one for one in candidates if finite or not one.finite)


def rows(sample: MatrixSample) -> Iterator[Candidate]:
    """Yield CSR."""
    share = sample.data.shape[0] / max(1, sample.data.nnz)
    size = sample.data.dtype.itemsize + sample.index_bytes * (1 + share)
    fixed = BYTE * size + ENTRY + ROW * share
    yield Candidate(CSR, "CSR", 1.0, share, "rows", size, fixed, COLUMN, 0.0)


def equal_values(sample: MatrixSample) -> Iterator[Candidate]:
    """Yield rows of coordinates with one value."""
    if not sample.has_equal_values:
        return
    share = sample.data.shape[0] / max(1, sample.data.nnz)
    size = sample.index_bytes * (1 + share)
    fixed = BYTE * size + ENTRY + ROW * share
    yield Candidate(EQUAL, "equal", 1.0, share, "rows", size, fixed, COLUMN, 0.3)


def listed_rows(sample: MatrixSample) -> Iterator[Candidate]:
    """Yield formats that leave empty rows out, where there are any."""
    full = int(np.count_nonzero(sample.lengths)) / max(1, sample.data.nnz)
    share = sample.data.shape[0] / max(1, sample.data.nnz)
    if full > 0.9 * share:
        return
    index, item = sample.index_bytes, sample.data.dtype.itemsize
    size = item + index * (1 + 2 * full)
    fixed = BYTE * size + ENTRY + ROW * full + 0.3 * share
    yield Candidate(DCSR, "DCSR", 1.0, full, "rows", size, fixed, COLUMN, 1.0, lists=True)
    size = item + 2 * index
    fixed = BYTE * size + 0.6 + 0.3 * share
    yield Candidate(COO(2), "COO", 1.0, 1.0, "entries", size, fixed, 2 * COLUMN, 2.0, lists=True)


def slices(sample: MatrixSample) -> Iterator[Candidate]:
    """Yield rows of slots in slices and in the whole matrix, and diagonals of slices."""
    share = sample.data.shape[0] / max(1, sample.data.nnz)
    item, index = sample.data.dtype.itemsize, sample.index_bytes
    for height, form in ((HEIGHT, SELL(HEIGHT)), (0, ELL)):
        values = sample.padded(height)
        if values > MOST_VALUES:
            continue
        size = values * (item + index)
        fixed = BYTE * size + 4 * ENTRY * values + SLICE * share / (height or 8)
        kind = "SELL" if height else "ELL"
        yield Candidate(
            form, kind, values, values, "slots", size, fixed, COLUMN * values, 6 * values
        )
    slots = sample.slots(HEIGHT)
    size = slots * (HEIGHT * item + 2 * index)
    fixed = BYTE * size + SLOT * slots + SLICE * share / HEIGHT
    values = slots * HEIGHT
    if values > MOST_VALUES:
        return
    column, work = COLUMN_OF_SLOT * values, 10 + 5 * values
    yield Candidate(SDIA(HEIGHT), "SDIA", values, slots, "slots", size, fixed, column, work)


def diagonals(sample: MatrixSample) -> Iterator[Candidate]:
    """Yield DIA where there are few diagonals."""
    count = sample.diagonals
    if not 0 < count <= MOST_DIAGONALS:
        return
    rows = min(sample.data.shape)
    values = max(1.0, count * rows / max(1, sample.data.nnz))
    size = values * sample.data.dtype.itemsize
    fixed, column = 4 * BYTE * size + 0.05 * values, COLUMN_OF_DIAGONAL * values
    units = count / max(1, sample.data.nnz)
    if values > MOST_VALUES:
        return
    full = values < 1.0 + 1e-3 + 2.0 * count * count / max(1, sample.data.nnz)
    finite = not full
    yield Candidate(
        DIA, "DIA", values, units, "slots", size, fixed, column, 10 + 2 * values, finite, full
    )


def triangle(sample: MatrixSample) -> Iterator[Candidate]:
    """Yield SYM for a symmetric matrix."""
    if not sample.data.nnz or sample.mirrored < MIRRORED:
        return
    on = np.count_nonzero(sample.rows == sample.columns) / sample.entries
    share = sample.data.shape[0] / sample.data.nnz
    values = (1.0 + on) / 2
    size = values * (sample.data.dtype.itemsize + sample.index_bytes)
    fixed = BYTE * size + 1.5 * ENTRY + 1.5 * ROW * share
    yield Candidate(SYM, "SYM", values, share, "rows", size, fixed, 1.5 * COLUMN, 15.0, serial=True)


def blocks(rows: int, columns: int, sample: MatrixSample) -> Iterator[Candidate]:
    """Yield blocks of one size."""
    if sample.data.shape[1] % columns:
        return
    count = sample.blocks(rows, columns)
    values = count * rows * columns
    if values > MOST_VALUES:
        return
    full = values <= 1.0 + 1e-9 and not sample.data.shape[0] % rows
    size = count * (rows * columns * sample.data.dtype.itemsize + sample.index_bytes)
    fixed = BYTE * size + count * (BLOCK + ENTRY * rows * columns / 4)
    finite = not full
    yield Candidate(
        BSR((rows, columns)), "BSR", values, count, "blocks", size, fixed,
        COLUMN_OF_BLOCK * values, 4 + 14 * count, finite, full,
    )  # fmt: skip


def all_elements(sample: MatrixSample) -> Iterator[Candidate]:
    """Yield the dense format."""
    shape, nnz = sample.data.shape, max(1, sample.data.nnz)
    values = shape[0] * shape[1] / nnz
    if values > MOST_DENSE:
        return
    size = values * sample.data.dtype.itemsize
    fixed, units = BYTE * size, shape[0] / nnz
    yield Candidate(
        dense(2), "dense", values, units, "rows", size, fixed, 0.03 * values, 5 + values,
        finite=True,
    )  # fmt: skip


STORAGES: tuple[Storage, ...] = (
    rows, equal_values, listed_rows, slices, diagonals, triangle,
    *(partial(blocks, r, c) for r, c in BLOCKS), all_elements,
)  # fmt: skip
"""What candidates come from, in the order of the table in docs/formats.md."""
KINDS = ("CSR", "equal", "DCSR", "COO", "SELL", "ELL", "SDIA", "DIA", "SYM", "BSR", "dense")
"""The kinds of storage, by which features number them."""
