"""From any format to any other, along the cheapest road that keeps what is known.

`ROADS` is the whole decision, in order: the first road whose `fits` holds for the two formats, and
whose `take` does not decline the tensor at hand, is taken. The last one, through sorted
coordinates, always is. Chou, Kjolstad and Amarasinghe 2020 (Automatic Generation of Efficient
Sparse Tensor Format Conversion Routines) derive such routines; here each is a few NumPy or scipy
calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.sparse import _sparsetools

from codegen.records import dataclass
from taco_py.data.convert.order_entries import (
    Ordered,
    ascends_strictly,
    bucket_bits,
    count_starts,
    is_worth_it,
    order_entries,
)
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.blocks import pack_array
from taco_py.data.storage.by_level.level_tree import fills_up, is_usual
from taco_py.data.storage.by_level.sound_levels import check_rows
from taco_py.data.storage.pack import (
    SPARSER,
    canonical,
    expand,
    pack_coo,
    pack_sorted,
    unpack,
)
from taco_py.data.storage.room import room, stored_bytes, stored_most
from taco_py.data.storage.sizes import index_dtype_of
from taco_py.data.storage.tensor_data import LevelArrays, TensorData, ordered
from taco_py.language.diagnostics.errors import FormatError, StructureError
from taco_py.language.formats import CSC, CSR, DCSR, Format
from taco_py.language.notation.half_types import is_half


@dataclass(frozen=True, slots=True)
class Road:
    """One way to convert.

    says   what is done and what it costs, for `describe`
    fits   whether it leads from one format to the other at all
    take   the converted tensor, or None where this tensor does not allow it (say, it has
           duplicates)
    """

    says: str
    fits: Callable[[Format, Format], bool]
    take: Callable[[TensorData, Format], TensorData | None]


def convert(data: TensorData, format: Format) -> TensorData:
    """Return the same tensor stored in `format`; shares arrays with `data` wherever the storage is
    the same.

    Duplicates are summed where the road sorts, and kept (and flagged) where it does not. From a
    format whose last level is dense, what has the fill value, as a rule 0, is left out of a format
    whose last level is not. Raises FormatError when the orders differ or the format cannot hold the
    pattern.
    """
    if format.order != data.format.order:
        raise FormatError(
            f"Expected a format of {data.format.order} levels for a tensor of order "
            f"{data.format.order}, found {str(format)!r} of {format.order}",
            hint="write one level letter a mode",
        )
    if data.format == format:
        return data
    if data.format.levels == CSR.levels:
        check_rows(data)
    entries = 0 if data.format.is_dense else data.nnz
    wanted = stored_bytes(data.shape, entries, format, data.dtype.itemsize)
    if KERNELS.memory.on:
        wanted = max(wanted, with_coordinates(data, format))
    with room(f"a tensor of shape {data.shape} in the format {format}", wanted, SPARSER):
        # what is sorted the data say themselves, so the roads see levels that are all ordered
        made = take_road(replace(data, format=ordered(data.format)), ordered(format))
        return replace(made, format=format)


def with_coordinates(data: TensorData, format: Format) -> int:
    """Return bytes that a conversion takes at most: of the result, and of coordinates on its
    way."""
    index = index_dtype_of(data).itemsize
    itemsize = data.dtype.itemsize
    stored = stored_most(data.shape, data.nnz, format, itemsize, index)
    moved = data.nnz * (index * len(data.shape) + itemsize)
    return stored if format.is_dense else stored + moved


def take_road(data: TensorData, format: Format) -> TensorData:
    """Return `convert` along the first road that leads there."""
    for road in ROADS:
        if road.fits(data.format, format):
            made = road.take(data, format)
            if made is not None:
                return made
    return through_coordinates(data, format)


def recopied(data: TensorData, format: Format) -> TensorData:
    """As `convert`, but a zero of a format that fills up with zeros stays a stored entry.

    Kernels tell what is stored from what is not, so what they read must not depend on a copy.
    """
    if data.format.is_dense or not fills_up(data.format) or format == data.format:
        return convert(data, format)
    return pack_coo(*unpack(data), data.shape, format, index_dtype_of(data), data.fill)


def describe(source: Format, target: Format) -> str:
    """Return one line on how tensors are converted between two formats.

    >>> describe(CSR, CSC)
    'CSR -> CSC: transposed by counting sort, O(rows + nnz)'
    """
    fitting = (road.says for road in ROADS if road.fits(ordered(source), ordered(target)))
    says = next(fitting, GENERAL)
    return f"{format_name(source)} -> {format_name(target)}: {says}"


GENERAL = "through coordinates, sorted where they are not, O(nnz log nnz)"


def format_name(format: Format) -> str:
    """Return the usual name of a format that has one, else its letters."""
    for name, known in (("CSR", CSR), ("CSC", CSC), ("DCSR", DCSR)):
        if format == known:
            return name
    if format.is_coo:
        _, colon, modes = str(format).partition(":")
        return f"COO({format.order}){colon}{modes}"
    return f"'{format}'"


# --- the roads -----------------------------------------------------------------------------------


def relabel(data: TensorData, format: Format) -> TensorData | None:
    """Return the same arrays under another name; a level only becomes unique where it is known to
    be."""
    last = format.order - 1
    for place, (old, new) in enumerate(zip(data.format.levels, format.levels, strict=True)):
        if new.unique and not old.unique and (place < last or not data.unique):
            return None
    return replace(data, format=format)


def densify(data: TensorData, format: Format) -> TensorData | None:
    """Scatter the values into an n-D array."""
    coords, values = unpack(data)
    return pack_coo(coords, values, data.shape, format, fill=data.fill)


def gather_nonzeros(data: TensorData, format: Format) -> TensorData | None:
    """Return the nonzeros of an array, or blocks with some, found in the target's order and
    copied."""
    made = pack_array(data.values, format, data.fill)
    if np.may_share_memory(made.values, data.values):
        return replace(made, values=made.values.copy())
    return made


def transpose_compressed(data: TensorData, format: Format) -> TensorData | None:
    """Return CSR to CSC or back by a counting sort, scipy's of few entries; afterwards each
    column's rows ascend."""
    arrays = data.levels[1]
    assert arrays.pos is not None and arrays.crd is not None
    size = data.shape[format.mode_order[0]]
    entry = arrays.crd.itemsize + data.dtype.itemsize
    worth_it = is_worth_it(data.nnz, size, arrays.crd.dtype, data.dtype.itemsize)
    if worth_it and not arrays.pos[0] and bucket_bits(arrays.crd, size, entry):
        found = order_entries(arrays.crd, arrays.crd, data.values, size, arrays.pos)
        if found is not None:
            return of_rows(data, format, found)
    own, count = data.values, int(arrays.pos[-1])
    index = np.result_type(arrays.pos, arrays.crd)
    lists = len(arrays.pos) - 1
    if arrays.pos[0] or not 0 <= arrays.pos[-1] <= min(len(arrays.crd), len(own)):
        raise StructureError(
            f"Expected positions from 0 to at most {min(len(arrays.crd), len(own))}, found "
            f"{arrays.pos[0]} and {arrays.pos[-1]}",
            hint="tp.check says where",
        )
    values = own.view(np.uint16) if is_half(own.dtype) else own  # which scipy moves as they are
    pool = KERNELS.pool
    pos, crd = pool.empty((size + 1,), index), pool.empty((count,), index)
    made = pool.empty((count,), values.dtype)
    starts, others = (a.astype(index, copy=False) for a in (arrays.pos, arrays.crd))
    _sparsetools.csr_tocsc(lists, size, starts, others, values, pos, crd, made)
    levels = (LevelArrays(), LevelArrays(pos, crd))
    return replace(data, format=format, levels=levels, values=made.view(own.dtype), sorted=True)


def of_rows(data: TensorData, format: Format, found: Ordered) -> TensorData:
    """Return CSR or CSC of entries that were ordered."""
    pos, others, values = found
    levels = (LevelArrays(), LevelArrays(pos, others))
    return replace(data, format=format, levels=levels, values=values, sorted=True)


def distribute(data: TensorData, format: Format) -> TensorData | None:
    """Return COO to CSR or CSC: entries distributed over rows; where they are in order, counted
    alone.

    Declined for few entries, and for duplicates that are in order, which are to be summed.
    """
    outer, inner = (data.levels[data.format.mode_order.index(m)].crd for m in format.mode_order)
    assert outer is not None and inner is not None
    rows, columns = (data.shape[mode] for mode in format.mode_order)
    most = max(rows, columns)
    if not is_worth_it(data.nnz, most, outer.dtype, data.dtype.itemsize):
        return None
    same = format.mode_order == data.format.mode_order
    first = (outer, inner, rows) if same else (inner, outer, columns)
    looked = count_starts(first[0], first[1], data.values, first[2])
    if looked is None:
        return None
    pos, in_order, distinct = looked
    if in_order and same:
        found = (pos, inner, data.values)
        return replace(of_rows(data, format, found), unique=True) if distinct else None
    by_columns: Ordered | None = (pos, outer, data.values)
    if not in_order or same:
        by_columns = order_entries(inner, outer, data.values, columns)
    ordered_twice = None if by_columns is None else _by_rows(by_columns, rows)
    if ordered_twice is None:
        return None
    made = of_rows(data, format, ordered_twice)
    distinct = ascends_strictly(ordered_twice[0], ordered_twice[1])
    return replace(made, unique=True) if distinct else canonical(replace(made, unique=False))


def _by_rows(by_columns: Ordered, rows: int) -> Ordered | None:
    """Return entries in the order of columns, in that of rows."""
    pos, outer, values = by_columns
    return order_entries(outer, outer, values, rows, pos)


def transpose_rows(data: TensorData, format: Format) -> TensorData | None:
    """Return `transpose_compressed` between formats that leave empty rows out, on either side or
    both.

    Declined for a matrix of so many empty rows or columns that sorting what it stores takes less.
    """
    if sum(data.shape) > EMPTY * data.nnz:
        return None
    rows = CSR if data.format.mode_order == CSR.mode_order else CSC
    columns = CSC if rows == CSR else CSR
    full = data if data.format == rows else insert_empty_rows(data, rows)
    if full is None:
        return None
    made = transpose_compressed(full, columns)
    return made if made is None or format == columns else drop_empty_rows(made, format)


def list_coordinates(data: TensorData, format: Format) -> TensorData | None:
    """Return the tree's coordinates written out as COO, in storage order."""
    if format.levels[-1].unique and not data.unique:
        return None
    if data.format.levels[-1].full or not is_usual(data.format):
        return None
    modes = dict(zip(data.format.mode_order, expand(data), strict=True))
    crds = [modes[mode] for mode in format.mode_order]
    pos = np.array([0, data.nnz], dtype=crds[0].dtype)
    levels = (LevelArrays(pos, crds[0]), *(LevelArrays(crd=crd) for crd in crds[1:]))
    ordered = data.sorted if format.mode_order == data.format.mode_order else None
    return replace(data, format=format, levels=levels, sorted=ordered)


def drop_empty_rows(data: TensorData, format: Format) -> TensorData | None:
    """Return a dense root becomes compressed: keep the rows that have children. CSR to DCSR.

    pos = [0 2 2 3]  ->  root pos = [0 2], root crd = [0 2], pos = [0 2 3]
    """
    child = data.levels[1]
    assert child.pos is not None
    rows = np.flatnonzero(child.pos[1:] > child.pos[:-1])
    pos = np.concatenate((child.pos[:1], child.pos[1:][rows]))
    root = LevelArrays(np.array([0, len(rows)], dtype=pos.dtype), rows.astype(pos.dtype))
    levels = (root, replace(child, pos=pos), *data.levels[2:])
    return replace(data, format=format, levels=levels)


def insert_empty_rows(data: TensorData, format: Format) -> TensorData | None:
    """Return a compressed root becomes dense: rows without children get none. DCSR to CSR."""
    root, child = data.levels[0], data.levels[1]
    if not (data.sorted and data.unique):
        return None  # the children of a row must be adjacent, and rows in order
    assert root.crd is not None and child.pos is not None
    pos = np.zeros(data.shape[format.mode_order[0]] + 1, dtype=child.pos.dtype)
    pos[1:][root.crd] = np.diff(child.pos)
    np.cumsum(pos, out=pos)
    levels = (LevelArrays(), replace(child, pos=pos), *data.levels[2:])
    return replace(data, format=format, levels=levels)


def through_coordinates(data: TensorData, format: Format) -> TensorData:
    """Return the road that is always open: unpack, sort where needed, pack."""
    coords, values = unpack(data, drop_fill=not format.levels[-1].full)
    known = data.sorted and data.unique and format.mode_order == data.format.mode_order
    dtype = index_dtype_of(data)
    if known:
        columns = [coords[mode] for mode in format.mode_order]
        return pack_sorted(columns, values, data.shape, format, dtype, data.fill)
    return pack_coo(coords, values, data.shape, format, dtype, data.fill)


# --- where they lead -----------------------------------------------------------------------------


def same_storage(source: Format, target: Format) -> bool:
    kinds = [level.kind for level in source.levels] == [level.kind for level in target.levels]
    return kinds and (source.mode_order == target.mode_order or source.is_dense)


def root_differs(dense: Format, sparse: Format) -> bool:
    """Tell whether formats differ in the root alone, above a compressed level: a dense one in
    `dense`, a compressed one in `sparse`; all levels unique."""
    return (
        dense.order > 1
        and dense.mode_order == sparse.mode_order
        and dense.levels[0].full
        and sparse.levels[0].is_list
        and dense.levels[1:] == sparse.levels[1:]
        and is_usual(dense)
        and dense.levels[1].is_list
        and all(level.unique for level in (dense.levels[0], sparse.levels[0]))
    )


def is_matrix_of_rows(format: Format) -> bool:
    """Return CSR or CSC, with or without empty rows."""
    return format in (CSR, CSC, DCSR, DCSC)


DCSC = Format.parse("ss:1,0")
EMPTY = 4
"""Rows and columns for each entry from which a counting sort, which meets all, takes longer than
sorting the entries."""
ROADS: tuple[Road, ...] = (
    Road("the same storage, no copy", lambda a, b: a == b, lambda data, format: data),
    Road("the same arrays where no duplicates are known to be in the way", same_storage, relabel),
    Road("scattered into an array, O(size)", lambda a, b: b.is_dense, densify),
    Road(
        "blocks of the array that are not all zero, found in order, O(size)",
        lambda a, b: a.is_dense and b.levels[-1].full and is_usual(b),
        gather_nonzeros,
    ),
    Road(
        "nonzeros of the array, found in order, O(size)",
        lambda a, b: a.is_dense and is_usual(b),
        gather_nonzeros,
    ),
    Road(
        "transposed by counting sort, O(rows + nnz)",
        lambda a, b: {a, b} == {CSR, CSC},
        transpose_compressed,
    ),
    Road(
        "transposed by counting sort, O(rows + nnz), unless most rows are empty",
        lambda a, b: is_matrix_of_rows(a) and is_matrix_of_rows(b) and a.mode_order != b.mode_order,
        transpose_rows,
    ),
    Road(
        "distributed over rows by counting sorts, O(rows + nnz); only counted where in order",
        lambda a, b: a.is_coo and b in (CSR, CSC),
        distribute,
    ),
    Road(
        "coordinates written out in storage order, O(nnz)",
        lambda a, b: b.is_coo and not a.levels[-1].full,
        list_coordinates,
    ),
    Road(
        "empty rows left out, O(rows), coordinates and values shared",
        root_differs,
        drop_empty_rows,
    ),
    Road(
        "empty rows put in, O(rows), coordinates and values shared",
        lambda a, b: root_differs(b, a),
        insert_empty_rows,
    ),
)
