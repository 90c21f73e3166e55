"""Stored tensors of remapped formats: made of plain ones, and plain ones made of them.

ds of shape (6, 4)   ⇄   dsdd of shape (2, 2, 3, 2), which is BSR(3,2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools

from taco_py.convert.convert import convert
from taco_py.convert.slice_diagonals import diagonals_of_slices
from taco_py.diagnostics.errors import FormatError, StructureError
from taco_py.formats import CSF, CSR, SDIA, Format
from taco_py.formats.remapped import RemappedFormat
from taco_py.formats.stored_modes import Quotient
from taco_py.kernels import KERNELS
from taco_py.notation.half_types import is_half
from taco_py.storage.pack import canonical, is_unique, pack_coo, to_dense, unpack
from taco_py.storage.room import room, stored_bytes
from taco_py.storage.sizes import index_dtype_of
from taco_py.storage.tensor_data import Array, LevelArrays, TensorData

WHOLE_BLOCKS = "blocks are stored as a whole: tp.CSR stores the entries alone"


def plain_format(order: int) -> Format:
    """Return the format that a remapped tensor is read in by what knows plain ones alone."""
    return CSR if order == 2 else CSF(order)


def remap(data: TensorData, format: RemappedFormat) -> TensorData:
    """Store a plain tensor over the stored modes of `format`; entries keep their values.

    Zeros of dense tensors are left out, and blocks without entries. Raises FormatError where the
    orders differ, OutOfMemoryError.
    """
    if format.order != data.format.order:
        raise FormatError(
            f"Expected a format of {data.format.order} modes for a tensor of order "
            f"{data.format.order}, found {format} of {format.order}",
            hint="BSR is of matrices; Blocked has a size for each mode",
        )
    with room(f"a tensor of shape {data.shape} in the format {format}"):
        if format.is_bsr and not data.fill:
            return blocks_of_rows(in_order(convert(data, CSR)), format)
        rows = slice_rows(format)
        if rows and not data.fill:
            made = diagonals_of_slices(in_order(convert(data, CSR)), format, rows)
            if made is not None:
                return made
        return _by_coordinates(data, format)


def slice_rows(format: RemappedFormat) -> int:
    """The rows of a slice where the format is SDIA, else 0."""
    first, *_ = format.modes
    rows = first.block if isinstance(first, Quotient) else 0
    return rows if rows and format == SDIA(rows) else 0


def blocks_of_rows(data: TensorData, format: RemappedFormat) -> TensorData:
    """Store a matrix in CSR, sorted and without duplicates, in BSR.

    Blocks that hold an entry are counted, then filled.
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
    first, found = np.zeros(shape[0] + 1, level.pos.dtype), np.zeros(1, np.int64)
    count(level.pos, level.crd, found, first, np.zeros(shape[1], name), rows, columns, r, c)
    blocks = int(found[0])
    if blocks < 0:
        raise StructureError(
            f"Expected columns from 0 to {columns - 1}, found others",
            hint="tp.check says where",
        )
    column = np.empty(blocks, level.crd.dtype)
    made, place = np.zeros(blocks * r * c, values.dtype), np.zeros(shape[1], np.int64)
    fill = KERNELS.host_functions[f"taco_fill_blocks_{name}"]
    given, into = values.view(np.uint8), made.view(np.uint8)
    fill(level.pos, level.crd, given, first, column, into, place, rows, r, c, values.itemsize)
    nothing = LevelArrays()
    levels = (nothing, LevelArrays(first, column), nothing, nothing)
    return TensorData(format.inner, shape, levels, made, sorted=True, unique=True)


def in_order(data: TensorData) -> TensorData:
    """CSR with the columns of each row ascending, each once."""
    arrays: Any = data.levels[1]
    if data.sorted and data.unique:
        return data
    if _sparsetools.csr_has_canonical_format(data.shape[0], arrays.pos, arrays.crd):
        return replace(data, sorted=True, unique=True)
    return canonical(data)


def _by_scipy(data: TensorData, format: RemappedFormat) -> TensorData:
    """`blocks_of_rows` where nothing was compiled so far."""
    arrays, own = data.levels[1], data.values
    shape, (r, c) = format.stored_shape(data.shape), format.cuts
    assert arrays.pos is not None
    pos = np.concatenate((arrays.pos, np.repeat(arrays.pos[-1:], shape[0] * r - data.shape[0])))
    parts: Any = (own.view(np.uint16) if is_half(own.dtype) else own, arrays.crd, pos)
    rows: Any = sp.csr_array(parts, shape=(shape[0] * r, shape[1] * c))
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


def _by_coordinates(data: TensorData, format: RemappedFormat) -> TensorData:
    if format.slots and not is_unique(data):
        data = canonical(data)  # entries are numbered, each coordinate once
    coordinates, values = unpack(data, drop_fill=True)
    format.check(coordinates, data.shape, values)
    stored = format.stored(coordinates, data.shape, values)
    shape = format.stored_shape(data.shape, stored)
    kind = index_dtype_of(data) if not data.format.is_dense else None
    return pack_coo(stored, values, shape, format.inner, kind, data.fill, is_unique(data))


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


def unmap(
    stored: TensorData,
    format: RemappedFormat,
    shape: tuple[int, ...],
    wanted: Format | None = None,
    drop_fill: bool = False,
) -> TensorData:
    """Store a remapped tensor in a plain format: `remap` backwards.

    wanted     CSR of a matrix, else CSF, where it is not given
    drop_fill  whether elements of blocks that have the fill value, as a rule 0, are left out
    """
    form = plain_format(len(shape)) if wanted is None else wanted
    bytes_needed = stored_bytes(shape, stored.nnz, form, stored.dtype.itemsize)
    with room(f"a tensor of shape {shape} in the format {form}", bytes_needed, WHOLE_BLOCKS):
        if format.is_bsr:
            rows = rows_of_blocks(stored, format, shape, drop_fill)
            if rows is not None:
                return convert(rows, form)
        coordinates, values = unpack(stored, drop_fill)
        found, values = inside(format.logical(coordinates, shape), values, shape)
        return pack_coo(found, values, shape, form, index_dtype_of(stored), stored.fill)


def inside(
    coordinates: Sequence[Array], values: Array, shape: Sequence[int]
) -> tuple[tuple[Array, ...], Array]:
    """Leave out what is beyond `shape`: what fills last blocks up."""
    kept = np.ones(len(values), np.bool_)
    for column, size in zip(coordinates, shape, strict=True):
        kept &= (column >= 0) & (column < size)
    if kept.all():
        return tuple(coordinates), values
    return tuple(column[kept] for column in coordinates), values[kept]


def whole(stored: TensorData, format: RemappedFormat, shape: tuple[int, ...]) -> Array:
    """Return the n-D array of a tensor in blocks, without coordinates of its elements."""
    array = to_dense(stored)
    order: list[int] = []
    for mode in range(format.order):
        order += [place for place, each in enumerate(format.modes) if each.reads == (mode,)]
    sizes = [format.stored_shape(shape)[place] for place in order]
    cuts, joined, place = format.cuts, list[int](), 0
    for cut in cuts:
        count = 2 if cut else 1
        joined.append(int(np.prod(sizes[place : place + count])))
        place += count
    full = array.transpose(order).reshape(joined)
    return np.ascontiguousarray(full[tuple(slice(size) for size in shape)])
