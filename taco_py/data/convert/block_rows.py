"""CSR into blocks of matrices, and back: BSR.

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

    Raises StructureError where a column is none of the matrix.
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
        first, met = np.zeros(shape[0] + 1, level.pos.dtype), np.zeros(shape[1], name)
    found = np.zeros(1, np.int64)
    count(level.pos, level.crd, found, first, met, rows, columns, r, c)
    blocks = int(found[0])
    if blocks < 0:
        raise StructureError(
            f"Expected columns from 0 to {columns - 1}, found others",
            hint="tp.check says where",
        )
    column = np.empty(blocks, level.crd.dtype)
    what = f"a tensor of shape {data.shape} in the format {format}"
    with room(what, blocks * r * c * values.itemsize + shape[1] * 8, FEWER):
        made, place = np.zeros(blocks * r * c, values.dtype), np.zeros(shape[1], np.int64)
    fill = KERNELS.host_functions[f"taco_fill_blocks_{name}"]
    given, into = values.view(np.uint8), made.view(np.uint8)
    fill(level.pos, level.crd, given, first, column, into, place, rows, r, c, values.itemsize)
    nothing = LevelArrays()
    levels = (nothing, LevelArrays(first, column), nothing, nothing)
    return TensorData(format.inner, shape, levels, made, sorted=True, unique=True)


def _by_scipy(data: TensorData, format: RemappedFormat) -> TensorData:
    """Return `blocks_of_rows` where nothing was compiled so far."""
    arrays, own = data.levels[1], data.values
    shape, (r, c) = format.stored_shape(data.shape), format.cuts
    assert arrays.pos is not None
    pos = np.concatenate((arrays.pos, np.repeat(arrays.pos[-1:], shape[0] * r - data.shape[0])))
    parts: Any = (own.view(np.uint16) if is_half(own.dtype) else own, arrays.crd, pos)
    rows: Any = sp.csr_array(parts, shape=(shape[0] * r, shape[1] * c))
    sparsetools: Any = _sparsetools
    blocks = sparsetools.csr_count_blocks(*rows.shape, r, c, rows.indptr, rows.indices)
    what = f"a tensor of shape {data.shape} in the format {format}"
    with room(what, int(blocks) * r * c * own.itemsize, FEWER):
        made: Any = rows.tobsr((r, c))
    made.sort_indices()
    values = np.ascontiguousarray(made.data).reshape(-1)
    values = values.view(own.dtype) if is_half(own.dtype) else values
    nothing = LevelArrays()
    kind = arrays.pos.dtype
    column = LevelArrays(
        made.indptr.astype(kind, copy=False), made.indices.astype(kind, copy=False)
    )
    levels = (nothing, column, nothing, nothing)
    return TensorData(format.inner, shape, levels, values, sorted=True, unique=True)


def rows_of_blocks(
    stored: TensorData, format: RemappedFormat, shape: tuple[int, ...], drop_fill: bool
) -> TensorData | None:
    """Store a matrix in BSR in CSR, by scipy; None where scipy has no such numbers."""
    r, c = format.cuts
    level: Any = stored.levels[1]
    if stored.fill or is_half(stored.dtype) or not stored.nnz:
        return None
    if not _sparsetools.csr_has_canonical_format(stored.shape[0], level.pos, level.crd):
        return None
    whole = (stored.shape[0] * r, stored.shape[1] * c)
    parts: Any = (stored.values.reshape(-1, r, c), level.crd, level.pos)
    made: Any = sp.bsr_array(parts, shape=whole).tocsr()
    if whole != shape:
        made = made[: shape[0], : shape[1]]
    if drop_fill:
        made.eliminate_zeros()
    kept = int(made.indptr[-1])
    crd, values = made.indices[:kept], made.data[:kept]
    kind = level.pos.dtype if level.pos is not None else made.indptr.dtype
    pos, crd = made.indptr.astype(kind, copy=False), crd.astype(kind, copy=False)
    levels = (LevelArrays(), LevelArrays(pos, crd))
    return TensorData(CSR, shape, levels, values, True, True)
