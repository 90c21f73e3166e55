"""Stored tensors of remapped formats: conversion from and to plain ones.

ds of shape (6, 4)   ⇄   dsdd of shape (2, 2, 3, 2), which is BSR(3,2)

`INTO` and `OUT_OF` are the decision, in order: the first conversion whose `fits` holds for the
format, and whose `take` does not decline the tensor, is used; else coordinates of all entries are
computed and packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import _sparsetools

from codegen.records import dataclass
from taco_py.data.convert.assemble_rows import assemble_rows, is_assembled
from taco_py.data.convert.block_rows import blocks_of_rows, rows_of_blocks
from taco_py.data.convert.convert import convert
from taco_py.data.convert.list_rows import is_listed, list_rows
from taco_py.data.convert.row_text import LEAST
from taco_py.data.convert.slice_diagonals import diagonals_of_slices, is_of_slices
from taco_py.data.convert.triangle_of_rows import (
    is_symmetric_format,
    rows_of_triangle,
    triangle_of_rows,
)
from taco_py.data.storage.by_level.sound_levels import check_rows
from taco_py.data.storage.pack import canonical, is_unique, pack_coo, to_dense, unpack
from taco_py.data.storage.room import room, stored_bytes
from taco_py.data.storage.sizes import index_dtype_of
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats import CSF, CSR, Format
from taco_py.language.formats.remapped import RemappedFormat

FULL_BLOCKS = "blocks are stored as a whole: tp.CSR stores the entries alone"


@dataclass(frozen=True, slots=True)
class Into:
    """A conversion from CSR, sorted and without duplicates, into a remapped format.

    says   its description and cost, for `describe_remap`
    fits   whether it converts into the format at all
    take   the stored tensor, or None where it declines the tensor
    least  the number of entries from which it is faster than the conversions after it
    """

    says: str
    fits: Callable[[RemappedFormat], bool]
    take: Callable[[TensorData, RemappedFormat], TensorData | None]
    least: int = 0


@dataclass(frozen=True, slots=True)
class OutOf:
    """A conversion from a remapped format into CSR, sorted and without duplicates.

    take   the matrix from the stored tensor, the format, the shape, and whether elements with the
           fill value are left out; None where it declines the tensor

    The other fields are those of `Into`.
    """

    says: str
    fits: Callable[[RemappedFormat], bool]
    take: Callable[[TensorData, RemappedFormat, tuple[int, ...], bool], TensorData | None]
    least: int = 0


INTO: tuple[Into, ...] = (
    Into(
        "blocks with an entry counted, then filled, O(nnz + blocks)",
        lambda format: format.is_bsr,
        blocks_of_rows,
    ),
    Into(
        "rows of each slice merged by diagonals, twice, O(nnz * rows of a slice)",
        is_of_slices,
        diagonals_of_slices,
    ),
    Into(
        "rows compared with columns, which a counting sort gives, then one triangle, O(nnz + rows)",
        is_symmetric_format,
        triangle_of_rows,
        LEAST,
    ),
    Into(
        "entries counted for each level that asks, then put at their positions, O(nnz + size)",
        is_assembled,
        assemble_rows,
        LEAST,
    ),
)
"""The conversions into remapped formats: special ones before the derived one."""
OUT_OF: tuple[OutOf, ...] = (
    OutOf(
        "entries of each row counted, then copied, O(stored)",
        is_listed,
        list_rows,
        LEAST,
    ),
    OutOf(
        "each row joined with the column below it, transposed by counting sort, O(nnz + rows)",
        is_symmetric_format,
        rows_of_triangle,
        LEAST,
    ),
    OutOf(
        "rows of blocks by scipy, O(stored)",
        lambda format: format.is_bsr,
        rows_of_blocks,
    ),
)
"""The conversions out of remapped formats."""
GENERAL = "through coordinates of all entries, sorted where they are not, O(nnz log nnz)"


def describe_remap(source: Format | RemappedFormat, target: Format | RemappedFormat) -> str:
    """Describe how tensors are converted between formats, of which at least one is remapped.

    >>> from taco_py.language.formats import BSR, ELL
    >>> describe_remap(ELL, CSR)
    'ELL -> ds: entries of each row counted, then copied, O(stored)'
    """
    says = []
    if isinstance(source, RemappedFormat):
        says += [next((c.says for c in OUT_OF if c.fits(source)), GENERAL)]
    if isinstance(target, RemappedFormat):
        says += [next((c.says for c in INTO if c.fits(target)), GENERAL)]
    return f"{source} -> {target}: {'; then '.join(says)}"


def plain_format(order: int) -> Format:
    """Return the plain format in which functions without remapped formats read a tensor."""
    return CSR if order == 2 else CSF(order)


def remap(data: TensorData, format: RemappedFormat) -> TensorData:
    """Store a plain tensor over the stored modes of `format`; entries keep their values.

    Zeros of dense tensors and blocks without entries are left out. Raises FormatError where the
    orders differ, OutOfMemoryError.
    """
    if format.order != data.format.order:
        raise FormatError(
            f"Expected a format of {data.format.order} modes for a tensor of order "
            f"{data.format.order}, found {format} of {format.order}",
            hint="BSR is of matrices; Blocked has a size for each mode",
        )
    with room(f"a tensor of shape {data.shape} in the format {format}"):
        conversions = [] if data.fill else [c for c in INTO if c.fits(format)]
        if any(data.nnz >= conversion.least for conversion in conversions):
            data = in_order(convert(data, CSR))
        elif data.format.levels == CSR.levels:
            check_rows(data)
        for conversion in conversions:
            if data.nnz >= conversion.least:
                stored = conversion.take(data, format)
                if stored is not None:
                    return stored
        return _by_coordinates(data, format)


def in_order(data: TensorData) -> TensorData:
    """Return CSR with sorted columns and without duplicates. Raises StructureError."""
    check_rows(data)
    arrays: Any = data.levels[1]
    if data.sorted and data.unique:
        return data
    if _sparsetools.csr_has_canonical_format(data.shape[0], arrays.pos, arrays.crd):
        return replace(data, sorted=True, unique=True)
    return canonical(data)


def _by_coordinates(data: TensorData, format: RemappedFormat) -> TensorData:
    if format.slots and not is_unique(data):
        data = canonical(data)  # entries are ranked, which needs unique coordinates
    coordinates, values = unpack(data, drop_fill=True)
    format.check(coordinates, data.shape, values)
    stored = format.stored(coordinates, data.shape, values)
    shape = format.stored_shape(data.shape, stored)
    kind = index_dtype_of(data) if not data.format.is_dense else None
    return pack_coo(stored, values, shape, format.inner, kind, data.fill, is_unique(data))


def unmap(
    stored: TensorData,
    format: RemappedFormat,
    shape: tuple[int, ...],
    target: Format | None = None,
    drop_fill: bool = False,
) -> TensorData:
    """Store a remapped tensor in a plain format: the inverse of `remap`.

    target     the plain format; by default CSR of a matrix, else CSF
    drop_fill  whether elements of blocks with the fill value, usually 0, are left out
    """
    form = plain_format(len(shape)) if target is None else target
    bytes_needed = stored_bytes(shape, stored.nnz, form, stored.dtype.itemsize)
    with room(f"a tensor of shape {shape} in the format {form}", bytes_needed, FULL_BLOCKS):
        for conversion in OUT_OF:
            if stored.nnz >= conversion.least and conversion.fits(format):
                rows = conversion.take(stored, format, shape, drop_fill)
                if rows is not None:
                    return convert(rows, form)
        coordinates, values = unpack(stored, drop_fill)
        logical, values = inside(format.logical(coordinates, shape), values, shape)
        return pack_coo(logical, values, shape, form, index_dtype_of(stored), stored.fill)


def inside(
    coordinates: Sequence[Array], values: Array, shape: Sequence[int]
) -> tuple[tuple[Array, ...], Array]:
    """Remove entries beyond `shape`: the padding of last blocks."""
    is_inside = np.ones(len(values), np.bool_)
    for column, size in zip(coordinates, shape, strict=True):
        is_inside &= (column >= 0) & (column < size)
    if is_inside.all():
        return tuple(coordinates), values
    return tuple(column[is_inside] for column in coordinates), values[is_inside]


def blocks_to_dense(stored: TensorData, format: RemappedFormat, shape: tuple[int, ...]) -> Array:
    """Return the dense array of a tensor in blocks, without coordinates of its elements."""
    array = to_dense(stored)
    order: list[int] = []
    for mode in range(format.order):
        order += [
            place for place, stored_mode in enumerate(format.modes) if stored_mode.reads == (mode,)
        ]
    sizes = [format.stored_shape(shape)[place] for place in order]
    cuts, merged_shape, place = format.cuts, list[int](), 0
    for cut in cuts:
        count = 2 if cut else 1
        merged_shape.append(int(np.prod(sizes[place : place + count])))
        place += count
    full = array.transpose(order).reshape(merged_shape)
    return np.ascontiguousarray(full[tuple(slice(size) for size in shape)])
