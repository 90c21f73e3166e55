"""The numbers that say what a format gains for a product: of matrix, product and candidate.

Counts are logarithms to base 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.compiler.cost.machine import machine_of
from taco_py.language.formats.remapped import is_remapped
from taco_py.tuning.formats.candidate_formats import HEIGHT, KINDS, Candidate
from taco_py.tuning.formats.matrix_sample import MatrixSample, count_distinct

GAIN, SECONDS, CONVERSION = 0, 1, 2
"""What is asked of a row: the gain over CSR, the seconds of CSR, or those of a conversion."""
LINE = 8
"""Rows and columns of the squares whose number says how near entries are to each other."""
NANO = 1e-9
COST_OF_CALL = 4e-6
"""Seconds of a call besides its loops."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product of the matrix with a dense operand.

    columns     of the operand
    near, far   bytes of the near and the far caches
    """

    columns: int
    near: int
    far: int


def product_of(columns: int) -> Product:
    """Return the product with a dense operand of some columns, on this machine."""
    loops = machine_of("c").loops
    return Product(columns, int(loops.near_cache_bytes), int(loops.far_cache_bytes))


def log(number: float) -> float:
    """Return the logarithm to base 2; that of 2^-20 for numbers below."""
    return float(np.log2(max(number, 2.0**-20)))


def features_of_matrix(sample: MatrixSample) -> dict[str, float]:
    """Return the features that are counted of the matrix alone."""
    (rows, columns), nnz, lengths = sample.data.shape, sample.data.nnz, sample.lengths
    mean = max(nnz / max(1, rows), 1e-9)
    diagonal = sample.rows * (columns / max(1, rows))
    steps = np.diff(sample.columns)[np.diff(sample.rows) == 0]
    squares = count_distinct(sample.rows // LINE, sample.columns // LINE)
    return {
        "entries": log(nnz),
        "rows": log(rows),
        "columns": log(columns),
        "row length": log(mean),
        "row spread": float(lengths.std() / mean) if rows else 0.0,
        "longest row": log(float(lengths.max(initial=0)) / mean),
        "empty rows": 1.0 - float(np.count_nonzero(lengths)) / max(1, rows),
        "band": float(np.abs(sample.columns - diagonal).mean()) / max(1, columns) if nnz else 0.0,
        "gap": log(float(steps.mean())) if len(steps) else 0.0,
        "adjacent": float((steps == 1).mean()) if len(steps) else 0.0,
        "squares": squares / sample.entries,
        **{f"fill {k}": 1.0 / (k * k * max(sample.blocks(k, k), 1e-9)) for k in (2, 3, 4, 8)},
        "slots": sample.slots(HEIGHT),
        "diagonals": log(sample.diagonals),
        "mirrored": sample.mirrored,
        "item bytes": float(sample.data.dtype.itemsize),
        "index bytes": float(sample.index_bytes),
    }


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate for a product with a matrix."""

    sample: MatrixSample
    product: Product
    candidate: Candidate
    usual: Candidate
    quantity: int

    @property
    def operand_bytes(self) -> float:
        """Return the bytes of the dense operand."""
        data = self.sample.data
        return float(data.shape[1] * self.product.columns * data.dtype.itemsize)

    @property
    def result_bytes(self) -> float:
        """Return the bytes of the result."""
        data = self.sample.data
        return float(data.shape[0] * self.product.columns * data.dtype.itemsize)

    @property
    def stored_bytes(self) -> float:
        """Return the bytes of the matrix in the candidate's format."""
        return self.candidate.bytes * self.sample.data.nnz

    @property
    def seconds(self) -> float:
        """Return the analytic seconds of a product in the candidate's format."""
        nanoseconds = self.candidate.product(self.product.columns)
        return COST_OF_CALL + NANO * nanoseconds * self.sample.data.nnz

    @property
    def usual_seconds(self) -> float:
        """Return the analytic seconds of a product in CSR."""
        nanoseconds = self.usual.product(self.product.columns)
        return COST_OF_CALL + NANO * nanoseconds * self.sample.data.nnz

    @property
    def conversion_seconds(self) -> float:
        """Return the analytic seconds of the conversion from CSR."""
        return 1e-4 + NANO * self.candidate.convert * self.sample.data.nnz

    @property
    def expected(self) -> float:
        """Return the analytic number that the trees correct: a gain, or seconds."""
        if self.quantity == GAIN:
            return self.usual_seconds / self.seconds
        return self.usual_seconds if self.quantity == SECONDS else self.conversion_seconds


def _block(row: Row, mode: int) -> float:
    form = row.candidate.format
    return float(form.cuts[mode]) if is_remapped(form) else 0.0


OF_ROW: Mapping[str, Callable[[Row], float]] = MappingProxyType({
    "asked": lambda r: float(r.quantity),
    "operand columns": lambda r: log(r.product.columns),
    "operand in near cache": lambda r: log(r.operand_bytes / r.product.near),
    "result in near cache": lambda r: log(r.result_bytes / r.product.near),
    "matrix in near cache": lambda r: log(r.stored_bytes / r.product.near),
    "matrix in far cache": lambda r: log(r.stored_bytes / r.product.far),
    "kind": lambda r: float(KINDS.index(r.candidate.kind)),
    "values": lambda r: r.candidate.values,
    "units": lambda r: r.candidate.units,
    "bytes": lambda r: log(r.candidate.bytes / r.usual.bytes),
    "block rows": lambda r: _block(r, 0),
    "block columns": lambda r: _block(r, 1),
    "full": lambda r: float(not r.candidate.finite),
    "expected": lambda r: log(r.expected),
})  # fmt: skip
MATRIX_FEATURES = (
    "entries", "rows", "columns", "row length", "row spread", "longest row", "empty rows", "band",
    "gap", "adjacent", "squares", "fill 2", "fill 3", "fill 4", "fill 8", "slots", "diagonals",
    "mirrored", "item bytes", "index bytes",
)  # fmt: skip
FEATURES = (*MATRIX_FEATURES, *OF_ROW)
RANGED = ("entries", "operand columns", "operand in near cache", "item bytes", "index bytes")
"""Features of which a model knows nothing beyond the numbers that it was trained on."""


def features_of(row: Row, matrix: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the features of a row.

    matrix  the features of its matrix
    """
    numbers = [matrix[name] for name in MATRIX_FEATURES]
    return np.array([*numbers, *(of(row) for of in OF_ROW.values())])
