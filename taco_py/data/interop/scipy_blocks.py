"""scipy.sparse's bsr arrays as stored tensors in blocks and back, around the same arrays."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.data.interop.scipy_arrays import CLASSES, require_zero_fill
from taco_py.data.storage.borrow import index_vectors, plain, require_dtype
from taco_py.data.storage.by_level.index_checks import require_sound
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import FormatError, StructureError
from taco_py.language.formats.remapped import BSR, RemappedFormat

NO_ARRAYS = LevelArrays()


def is_bsr(x: Any) -> bool:
    """Tell whether `x` is a bsr_array or bsr_matrix with blocks larger than 1 × 1, which is CSR."""
    return type(x) in BSR_TYPES and x.data.shape[1:] != (1, 1)


BSR_TYPES = (sp.bsr_array, sp.bsr_matrix)


@lru_cache(maxsize=64)
def blocked(rows: int, columns: int) -> RemappedFormat:
    """Return `BSR`, built once for each size because every call needs it."""
    return BSR((rows, columns))


def from_bsr(A: Any) -> tuple[TensorData, RemappedFormat]:  # noqa: N803 - the field's name
    """Return the stored tensor of a bsr array, which borrows its arrays, and its format.

    indptr, indices, data of shape (blocks, r, c)   →   dsdd of shape (m/r, n/c, r, c)

    Coordinates and blocks beyond the last position are left out. Raises OperandTypeError for an
    unsupported dtype, StructureError where the lengths contradict each other, or indices are
    outside of the shape.
    """
    values = A.data
    if not isinstance(values, np.ndarray) or values.ndim != 3:
        raise StructureError(
            f"Expected blocks as an array of shape (blocks, rows, columns), found "
            f"{getattr(values, 'shape', type(values).__name__)}",
            hint="rebuild the matrix from its coordinates",
        )
    require_dtype(values.dtype, "values")
    count, r, c = values.shape
    rows, columns = A.shape
    if r < 1 or c < 1 or rows % r or columns % c:
        raise StructureError(
            f"Expected blocks that fill a matrix of shape {A.shape}, found {r} × {c}",
            hint="rebuild the matrix from its coordinates",
        )
    pos, crd = index_vectors((A.indptr, A.indices), ("indptr", "indices"))
    if len(pos) != rows // r + 1:
        raise StructureError(
            f"Expected indptr to have {rows // r + 1} entries for {rows // r} rows of blocks, "
            f"found {len(pos)}",
            hint="indptr has one entry more than there are rows of blocks",
        )
    blocks = int(pos[-1])
    if not 0 <= blocks <= min(len(crd), count):
        raise StructureError(
            f"Expected the last entry of indptr to be the number of blocks, found {blocks} with "
            f"{len(crd)} indices and {count} blocks",
            hint="rebuild the matrix from its coordinates, or cut indptr to the blocks that exist",
        )
    what = ("row of blocks", "columns of blocks")
    require_sound(A.indptr, A.indices, columns // c, ("indptr", "indices"), what)
    if not plain(values) or not values.dtype.isnative:
        native = values.dtype.newbyteorder("=")
        values = np.require(values, dtype=native, requirements=["C", "A"])
    if blocks < count or blocks < len(crd):
        crd, values = crd[:blocks], values[:blocks]
    form = blocked(r, c)
    levels = (NO_ARRAYS, LevelArrays(pos, crd), NO_ARRAYS, NO_ARRAYS)
    shape = (rows // r, columns // c, r, c)
    return TensorData(form.inner, shape, levels, values.reshape(-1)), form


def to_bsr(stored: TensorData, format: RemappedFormat, shape: tuple[int, ...], kind: str) -> Any:
    """Return a bsr_array or bsr_matrix around the arrays of a stored tensor.

    Raises FormatError for another format, or where blocks do not fill the shape.
    """
    require_zero_fill(stored)
    if not format.is_bsr:
        raise FormatError(
            f"Expected a tensor stored as BSR for {kind}, found {str(format)!r}",
            hint="convert it first, as in .to_format(tp.BSR((2, 2)))",
        )
    r, c = format.cuts
    if shape[0] % r or shape[1] % c:
        raise FormatError(
            f"Expected a shape that blocks of {r} × {c} fill for {kind}, found {shape}",
            hint='.to_scipy("csr") has the entries alone',
        )
    arrays = stored.levels[1]
    matrix = copy(_empty(kind, shape, (r, c)))
    matrix.indptr, matrix.indices = arrays.pos, arrays.crd
    matrix.data = stored.values.reshape(-1, r, c)
    if stored.sorted is not None:
        matrix.has_sorted_indices = stored.sorted
    if stored.sorted and stored.unique is not None:
        matrix.has_canonical_format = stored.unique
    return matrix


@lru_cache(maxsize=64)
def _empty(kind: str, shape: tuple[int, ...], blocks: tuple[int, int]) -> Any:
    """Return a matrix of which callers replace the arrays in a copy: scipy's constructor takes 20
    µs."""
    return CLASSES[kind](shape, blocksize=blocks)
