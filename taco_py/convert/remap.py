"""Stored tensors of remapped formats: made of plain ones, and plain ones made of them.

ds of shape (6, 4)   ⇄   dsdd of shape (2, 2, 3, 2), which is BSR(3,2)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.diagnostics.errors import FormatError
from taco_py.formats import CSF, CSR, Format
from taco_py.formats.remapped import RemappedFormat
from taco_py.storage.pack import is_unique, pack_coo, to_dense, unpack
from taco_py.storage.room import room, stored_bytes
from taco_py.storage.sizes import index_dtype_of
from taco_py.storage.tensor_data import Array, TensorData

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
        coordinates, values = unpack(data, drop_fill=True)
        stored = format.stored(coordinates, data.shape, values)
        shape = format.stored_shape(data.shape, stored)
        kind = index_dtype_of(data) if not data.format.is_dense else None
        return pack_coo(stored, values, shape, format.inner, kind, data.fill, is_unique(data))


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
