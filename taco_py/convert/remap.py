"""Stored tensors of remapped formats: made of plain ones, and plain ones made of them.

ds of shape (6, 4)   ⇄   dsdd of shape (2, 2, 3, 2), which is BSR(3,2)

`ROADS` and `ROADS_BACK` are the whole decision, in order: the first road that fits and does not
decline the tensor at hand is taken. A new road is an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import _sparsetools

from codegen.records import dataclass
from taco_py.convert.assemble_units import units_of_rows
from taco_py.convert.blocks_of_rows import blocks_of_rows, rows_of_blocks
from taco_py.convert.convert import convert
from taco_py.convert.list_units import rows_of_units
from taco_py.convert.slice_diagonals import diagonals_of_slices, slice_rows
from taco_py.convert.stored_text import LEAST
from taco_py.convert.triangle_of_rows import triangle_of_rows
from taco_py.diagnostics.errors import FormatError
from taco_py.formats import CSF, CSR, SYM, Format
from taco_py.formats.remapped import RemappedFormat
from taco_py.storage.pack import canonical, is_unique, pack_coo, to_dense, unpack
from taco_py.storage.room import room, stored_bytes
from taco_py.storage.sizes import index_dtype_of
from taco_py.storage.tensor_data import Array, LevelArrays, TensorData

WHOLE_BLOCKS = "blocks are stored as a whole: tp.CSR stores the entries alone"


def plain_format(order: int) -> Format:
    """Return the format that a remapped tensor is read in by what knows plain ones alone."""
    return CSR if order == 2 else CSF(order)


@dataclass(frozen=True, slots=True)
class RoadToUnits:
    """One way to store a plain tensor in a remapped format.

    says   what is done and what it costs, and why it is a road of its own
    fits   whether it takes this tensor to that format
    take   the stored tensor, or None where it declines what it finds
    """

    says: str
    fits: Callable[[TensorData, RemappedFormat], bool]
    take: Callable[[TensorData, RemappedFormat], TensorData | None]


@dataclass(frozen=True, slots=True)
class RoadFromUnits:
    """One way to store a matrix of a remapped format in CSR.

    says   what is done and what it costs, and why it is a road of its own
    fits   whether it takes this stored tensor
    take   of what is stored, its format, the shape of the matrix, and whether zeros of units are
           left out: the matrix in CSR, or None where it declines what it finds
    """

    says: str
    fits: Callable[[TensorData, RemappedFormat], bool]
    take: Callable[[TensorData, RemappedFormat, tuple[int, ...], bool], TensorData | None]


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
        for road in ROADS:
            if road.fits(data, format):
                made = road.take(data, format)
                if made is not None:
                    return made
        return through_coordinates(data, format)


def to_blocks(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix in BSR."""
    return blocks_of_rows(in_order(convert(data, CSR)), format)


def to_diagonals(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix in SDIA."""
    return diagonals_of_slices(in_order(convert(data, CSR)), format)


def to_units(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix over stored modes that texts know."""
    return units_of_rows(in_order(convert(data, CSR)), format)


def to_triangle(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a symmetric matrix in SYM; None where another is found, to say where."""
    return triangle_of_rows(in_order(convert(data, CSR)), format)


def in_order(data: TensorData) -> TensorData:
    """CSR with the columns of each row ascending, each once."""
    arrays: Any = data.levels[1]
    if data.sorted and data.unique:
        return data
    if _sparsetools.csr_has_canonical_format(data.shape[0], arrays.pos, arrays.crd):
        return replace(data, sorted=True, unique=True)
    return canonical(data)


def through_coordinates(data: TensorData, format: RemappedFormat) -> TensorData:
    """Store a tensor by the coordinates of its entries: the road that is always open."""
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
        for road in ROADS_BACK:
            if road.fits(stored, format):
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


def _is_blocks(data: TensorData, format: RemappedFormat) -> bool:
    return format.is_bsr and not data.fill


def _is_slices(data: TensorData, format: RemappedFormat) -> bool:
    return slice_rows(format) > 0 and not data.fill


def _is_large(data: TensorData, format: RemappedFormat) -> bool:
    return format.order == 2 and not data.fill and len(data.values) >= LEAST


ROADS: tuple[RoadToUnits, ...] = (
    RoadToUnits(
        "blocks with an entry are counted, then filled, O(rows + nnz): compiled with the package, "
        "for any size of blocks",
        _is_blocks,
        to_blocks,
    ),
    RoadToUnits(
        "rows of each slice are merged by diagonals, O(nnz): numbers in a slice ask for all of its "
        "rows at once",
        _is_slices,
        to_diagonals,
    ),
    RoadToUnits(
        "rows compared with columns, which a counting sort lists, and the lower triangle kept, "
        "O(rows + nnz): entries are looked for in other rows",
        lambda data, format: format == SYM and _is_large(data, format),
        to_triangle,
    ),
    RoadToUnits(
        "slots and ends are queried, then each entry goes to its place, O(nnz): a text that the "
        "stored modes write, worth compiling for many entries",
        _is_large,
        to_units,
    ),
)
"""Roads to remapped formats; any other tensor goes `through_coordinates`, sorted, O(nnz log nnz)."""
ROADS_BACK: tuple[RoadFromUnits, ...] = (
    RoadFromUnits(
        "levels are nested loops, which count the entries of rows and then list them, O(stored): "
        "worth compiling for many entries",
        _is_large,
        rows_of_units,
    ),
    RoadFromUnits(
        "blocks cut into rows by scipy, O(stored): nothing to compile",
        _is_blocks,
        rows_of_blocks,
    ),
)
"""Roads to CSR; any other tensor goes through coordinates, sorted, O(stored log stored)."""
