"""Stored tensors of remapped formats: made of plain ones, and plain ones made of them.

ds of shape (6, 4)   ⇄   dsdd of shape (2, 2, 3, 2), which is BSR(3,2)

`INTO` and `OUT_OF` are the whole decision, in order: the first road whose `fits` holds for the
format, and whose `take` does not decline the tensor at hand, is taken; else coordinates of all
entries are computed and packed, which is always open.
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

WHOLE_BLOCKS = "blocks are stored as a whole: tp.CSR stores the entries alone"


@dataclass(frozen=True, slots=True)
class Into:
    """One way from CSR, sorted and without duplicates, into a remapped format.

    says   what is done and what it costs, for `describe_remap`
    fits   whether it leads to the format at all
    take   the stored tensor, or None where this tensor does not allow it
    least  entries from which on it takes less time than what stands below
    """

    says: str
    fits: Callable[[RemappedFormat], bool]
    take: Callable[[TensorData, RemappedFormat], TensorData | None]
    least: int = 0


@dataclass(frozen=True, slots=True)
class OutOf:
    """One way from a remapped format into CSR, sorted and without duplicates.

    take   the matrix from what is stored, the format, the shape, and whether elements with the fill
           value are left out; None where this tensor does not allow it

    The others are those of `Into`.
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
"""The ways into remapped formats: kinds with one of their own above the one derived for many."""
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
"""The ways out of remapped formats."""
GENERAL = "through coordinates of all entries, sorted where they are not, O(nnz log nnz)"


def describe_remap(source: Format | RemappedFormat, target: Format | RemappedFormat) -> str:
    """Say how many entries are converted where one of the formats at least is remapped.

    >>> from taco_py.language.formats import BSR, ELL
    >>> describe_remap(ELL, CSR)
    'ELL -> ds: entries of each row counted, then copied, O(stored)'
    """
    says = []
    if isinstance(source, RemappedFormat):
        says += [next((road.says for road in OUT_OF if road.fits(source)), GENERAL)]
    if isinstance(target, RemappedFormat):
        says += [next((road.says for road in INTO if road.fits(target)), GENERAL)]
    return f"{source} -> {target}: {'; then '.join(says)}"


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
        roads = [] if data.fill else [road for road in INTO if road.fits(format)]
        if any(data.nnz >= road.least for road in roads):
            data = in_order(convert(data, CSR))
        elif data.format.levels == CSR.levels:
            check_rows(data)
        for road in roads:
            if data.nnz >= road.least:
                made = road.take(data, format)
                if made is not None:
                    return made
        return _by_coordinates(data, format)


def in_order(data: TensorData) -> TensorData:
    """Return CSR with the columns of each row ascending, each once. Raises StructureError."""
    check_rows(data)
    arrays: Any = data.levels[1]
    if data.sorted and data.unique:
        return data
    if _sparsetools.csr_has_canonical_format(data.shape[0], arrays.pos, arrays.crd):
        return replace(data, sorted=True, unique=True)
    return canonical(data)


def _by_coordinates(data: TensorData, format: RemappedFormat) -> TensorData:
    if format.slots and not is_unique(data):
        data = canonical(data)  # entries are numbered, each coordinate once
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
        for road in OUT_OF:
            if stored.nnz >= road.least and road.fits(format):
                rows = road.take(stored, format, shape, drop_fill)
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
