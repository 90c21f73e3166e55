"""CSR into BSR and back.

Blocks that hold an entry are counted, then filled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools

from taco_py.data.kernels import KERNELS
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import StructureError
from taco_py.language.formats import CSR
from taco_py.language.formats.remapped import RemappedFormat
from taco_py.language.notation.half_types import is_half

FEWER = "smaller blocks store fewer zeros; tp.CSR stores the entries alone"


def blocks_of_rows(data: TensorData, format: RemappedFormat) -> TensorData:
    """Store a matrix in CSR, sorted and without duplicates, in BSR.

    Raises StructureError for a column outside of the matrix.
    """
    rows, columns = data.shape
    r, c = format.cuts
    shape = format.stored_shape(data.shape)
    level, values = data.levels[1], data.values
    assert level.pos is not None and level.crd is not None
    name = level.pos.dtype.name
    count = KERNELS.host_functions.get(f"taco_count_blocks_{name}")
    if count is None or level.crd.dtype != level.pos.dtype:
        return _by_scipy(data, format)
    with room("counters of blocks", (shape[0] + shape[1]) * level.pos.itemsize, FEWER):
        first, seen_blocks = np.zeros(shape[0] + 1, level.pos.dtype), np.zeros(shape[1], name)
    result = np.zeros(1, np.int64)
    count(level.pos, level.crd, result, first, seen_blocks, rows, columns, r, c)
    blocks = int(result[0])
    if blocks < 0:
        raise StructureError(
            f"Expected columns from 0 to {columns - 1}, found others",
            hint="tp.check says where",
        )
    column = np.empty(blocks, level.crd.dtype)
    what = f"a tensor of shape {data.shape} in the format {format}"
    with room(what, blocks * r * c * values.itemsize + shape[1] * 8, FEWER):
        filled, place = (
            np.zeros(blocks * r * c, values.dtype),
            np.zeros(shape[1], np.int64),
        )
    fill = KERNELS.host_functions[f"taco_fill_blocks_{name}"]
    source, into = values.view(np.uint8), filled.view(np.uint8)
    fill(level.pos, level.crd, source, first, column, into, place, rows, r, c, values.itemsize)
    nothing = LevelArrays()
    levels = (nothing, LevelArrays(first, column), nothing, nothing)
    return TensorData(format.inner, shape, levels, filled, sorted=True, unique=True)


def _by_scipy(data: TensorData, format: RemappedFormat) -> TensorData:
    """Convert with scipy, as `blocks_of_rows` without compiled functions."""
    arrays, source = data.levels[1], data.values
    shape, (r, c) = format.stored_shape(data.shape), format.cuts
    assert arrays.pos is not None
    pos = np.concatenate((arrays.pos, np.repeat(arrays.pos[-1:], shape[0] * r - data.shape[0])))
    parts: Any = (source.view(np.uint16) if is_half(source.dtype) else source, arrays.crd, pos)
    rows: Any = sp.csr_array(parts, shape=(shape[0] * r, shape[1] * c))
    sparsetools: Any = _sparsetools
    blocks = sparsetools.csr_count_blocks(*rows.shape, r, c, rows.indptr, rows.indices)
    what = f"a tensor of shape {data.shape} in the format {format}"
    with room(what, int(blocks) * r * c * source.itemsize, FEWER):
        blocked: Any = rows.tobsr((r, c))
    blocked.sort_indices()
    values = np.ascontiguousarray(blocked.data).reshape(-1)
    values = values.view(source.dtype) if is_half(source.dtype) else values
    nothing = LevelArrays()
    kind = arrays.pos.dtype
    column = LevelArrays(
        blocked.indptr.astype(kind, copy=False), blocked.indices.astype(kind, copy=False)
    )
    levels = (nothing, column, nothing, nothing)
    return TensorData(format.inner, shape, levels, values, sorted=True, unique=True)


def rows_of_blocks(
    stored: TensorData, format: RemappedFormat, shape: tuple[int, ...], drop_fill: bool
) -> TensorData | None:
    """Store a matrix in BSR in CSR, by scipy; None where scipy lacks the type."""
    r, c = format.cuts
    level: Any = stored.levels[1]
    if stored.fill or is_half(stored.dtype) or not stored.nnz:
        return None
    if not _sparsetools.csr_has_canonical_format(stored.shape[0], level.pos, level.crd):
        return None
    padded_shape = (stored.shape[0] * r, stored.shape[1] * c)
    parts: Any = (stored.values.reshape(-1, r, c), level.crd, level.pos)
    matrix: Any = sp.bsr_array(parts, shape=padded_shape).tocsr()
    if padded_shape != shape:
        matrix = matrix[: shape[0], : shape[1]]
    if drop_fill:
        matrix.eliminate_zeros()
    count = int(matrix.indptr[-1])
    crd, values = matrix.indices[:count], matrix.data[:count]
    kind = level.pos.dtype if level.pos is not None else matrix.indptr.dtype
    pos, crd = matrix.indptr.astype(kind, copy=False), crd.astype(kind, copy=False)
    levels = (LevelArrays(), LevelArrays(pos, crd))
    return TensorData(CSR, shape, levels, values, True, True)
