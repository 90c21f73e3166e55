"""Conversion between any two formats, by the cheapest method that preserves known properties.

`CONVERSIONS` is the decision, in order: the first conversion whose `fits` holds for the two
formats, and whose `take` does not decline the tensor, is used. The fallback, through sorted
coordinates, never declines. Chou, Kjolstad and Amarasinghe 2020 (Automatic Generation of Efficient
Sparse Tensor Format Conversion Routines) derive such routines; here each is a few NumPy or scipy
calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any

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


class ConversionWork(Enum):
    """What a conversion does with each entry: it sorts, counts, or only copies it."""

    SORTED = "sorted"
    COUNTED = "counted"
    CARRIED = "carried"


@dataclass(frozen=True, slots=True)
class Conversion:
    """One method of conversion.

    says   its description and cost, for `describe`
    fits   whether it converts between two formats at all
    take   the converted tensor, or None where it declines the tensor (say, for duplicates)
    work   what it does with each entry
    """

    says: str
    fits: Callable[[Format, Format], bool]
    take: Callable[[TensorData, Format], TensorData | None]
    work: ConversionWork = ConversionWork.CARRIED


def convert(data: TensorData, format: Format) -> TensorData:
    """Return the same tensor stored in `format`, sharing arrays of equal storage with `data`.

    Duplicates are summed where the conversion sorts, and preserved (and flagged) where it does not.
    From a format whose last level is dense, elements with the fill value, usually 0, are left out
    of a format whose last level is not. Raises FormatError when the orders differ or the format
    cannot hold the pattern.
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
    bytes_needed = stored_bytes(data.shape, entries, format, data.dtype.itemsize)
    if KERNELS.memory.on:
        bytes_needed = max(bytes_needed, with_coordinates(data, format))
    with room(f"a tensor of shape {data.shape} in the format {format}", bytes_needed, SPARSER):
        # `data.sorted` tells the order, so conversions see formats with ordered levels
        converted = convert_by_first(replace(data, format=ordered(data.format)), ordered(format))
        return replace(converted, format=format)


def with_coordinates(data: TensorData, format: Format) -> int:
    """Return an upper bound of the bytes of a conversion: its result, and coordinates on the
    way."""
    index = index_dtype_of(data).itemsize
    itemsize = data.dtype.itemsize
    stored = stored_most(data.shape, data.nnz, format, itemsize, index)
    coordinate_bytes = data.nnz * (index * len(data.shape) + itemsize)
    return stored if format.is_dense else stored + coordinate_bytes


def convert_by_first(data: TensorData, format: Format) -> TensorData:
    """Convert by the first conversion that fits and does not decline."""
    for conversion in CONVERSIONS:
        if conversion.fits(data.format, format):
            converted = conversion.take(data, format)
            if converted is not None:
                return converted
    return through_coordinates(data, format)


def recopied(data: TensorData, format: Format) -> TensorData:
    """Convert like `convert`, but store zeros of padded formats as entries.

    Kernels distinguish stored from unstored elements, so their input must not depend on a copy.
    """
    if data.format.is_dense or not fills_up(data.format) or format == data.format:
        return convert(data, format)
    return pack_coo(*unpack(data), data.shape, format, index_dtype_of(data), data.fill)


def describe(source: Format, target: Format) -> str:
    """Describe in one line how tensors are converted between two formats.

    >>> describe(CSR, CSC)
    'CSR -> CSC: transposed by counting sort, O(rows + nnz)'
    """
    conversion = _fitting(source, target)
    says = GENERAL if conversion is None else conversion.says
    return f"{format_name(source)} -> {format_name(target)}: {says}"


def work_between(source: Format, target: Format) -> ConversionWork:
    """Return the work of a conversion between two formats."""
    conversion = _fitting(source, target)
    return ConversionWork.SORTED if conversion is None else conversion.work


def is_short_call(source: Format, target: Format) -> bool:
    """Tell whether a conversion of no entries is quick: it distributes nothing, or CSR and CSC."""
    carries = work_between(source, target) is ConversionWork.CARRIED
    return carries or {source, target} == {CSR, CSC}


def _fitting(source: Format, target: Format) -> Conversion | None:
    """Return the first conversion between two formats; None for the general method."""
    before, after = ordered(source), ordered(target)
    return next((c for c in CONVERSIONS if c.fits(before, after)), None)


GENERAL = "through coordinates, sorted where they are not, O(nnz log nnz)"


def format_name(format: Format) -> str:
    """Return the usual name of a format if it has one, else its letters."""
    for name, form in (("CSR", CSR), ("CSC", CSC), ("DCSR", DCSR)):
        if format == form:
            return name
    if format.is_coo:
        _, colon, modes = str(format).partition(":")
        return f"COO({format.order}){colon}{modes}"
    return f"'{format}'"


# --- the conversions -----------------------------------------------------------------------------


def relabel(data: TensorData, format: Format) -> TensorData | None:
    """Reuse the arrays with another format; a level becomes unique only where it provably is."""
    last = format.order - 1
    for place, (old, new) in enumerate(zip(data.format.levels, format.levels, strict=True)):
        if new.unique and not old.unique and (place < last or not data.unique):
            return None
    return replace(data, format=format)


def one_value(data: TensorData, format: Format) -> TensorData | None:
    """Keep one of the values where all are equal and none is 0, sharing the coordinates.

    Declined for others, and where rows have duplicates or are not in order.
    """
    values = data.values[: data.nnz]
    if data.fill or not len(values) or not _is_canonical(data):
        return None
    first = values[:1]
    if not first[0] or not (values[:64] == first).all() or not (values == first).all():
        return None
    return replace(data, format=format, values=first.copy(), sorted=True, unique=True)


def repeat_value(data: TensorData, format: Format) -> TensorData | None:
    """Store the one value of a pattern for each entry, and convert the lists."""
    if data.values.size != 1 or data.fill:
        return None
    values = np.full(data.nnz, data.values[0], data.dtype)
    lists = replace(data, format=_lists_of(data.format), values=values)
    return convert_by_first(lists, format)


def _lists_of(pattern: Format) -> Format:
    """Return the format with a value for each entry in place of one for all."""
    return replace(pattern, levels=(*pattern.levels[:-1], CSR.levels[-1]))


def _is_canonical(data: TensorData) -> bool:
    """Tell whether the rows of a matrix are in order and without duplicates."""
    if data.sorted and data.unique:
        return True
    if data.format != CSR:
        return False
    check_rows(data)
    last: Any = data.levels[1]
    return bool(_sparsetools.csr_has_canonical_format(data.shape[0], last.pos, last.crd))


def densify(data: TensorData, format: Format) -> TensorData | None:
    """Scatter the values into a dense array."""
    coords, values = unpack(data)
    return pack_coo(coords, values, data.shape, format, fill=data.fill)


def gather_nonzeros(data: TensorData, format: Format) -> TensorData | None:
    """Pack the nonzeros of an array, or its blocks with nonzeros, in the target's order."""
    packed = pack_array(data.values, format, data.fill)
    if np.may_share_memory(packed.values, data.values):
        return replace(packed, values=packed.values.copy())
    return packed


def transpose_compressed(data: TensorData, format: Format) -> TensorData | None:
    """Transpose CSR to CSC or back by a counting sort, with scipy for few entries.

    Afterwards the rows of each column ascend.
    """
    arrays = data.levels[1]
    assert arrays.pos is not None and arrays.crd is not None
    size = data.shape[format.mode_order[0]]
    entry = arrays.crd.itemsize + data.dtype.itemsize
    worth_it = is_worth_it(data.nnz, size, arrays.crd.dtype, data.dtype.itemsize)
    if worth_it and not arrays.pos[0] and bucket_bits(arrays.crd, size, entry):
        entries = order_entries(arrays.crd, arrays.crd, data.values, size, arrays.pos)
        if entries is not None:
            return of_rows(data, format, entries)
    source, count = data.values, int(arrays.pos[-1])
    index = np.result_type(arrays.pos, arrays.crd)
    lists = len(arrays.pos) - 1
    if arrays.pos[0] or not 0 <= arrays.pos[-1] <= min(len(arrays.crd), len(source)):
        raise StructureError(
            f"Expected positions from 0 to at most {min(len(arrays.crd), len(source))}, found "
            f"{arrays.pos[0]} and {arrays.pos[-1]}",
            hint="tp.check says where",
        )
    values = source.view(np.uint16) if is_half(source.dtype) else source  # for scipy
    pool = KERNELS.pool
    pos, crd = pool.empty((size + 1,), index), pool.empty((count,), index)
    transposed = pool.empty((count,), values.dtype)
    starts, coordinates = (a.astype(index, copy=False) for a in (arrays.pos, arrays.crd))
    _sparsetools.csr_tocsc(lists, size, starts, coordinates, values, pos, crd, transposed)
    levels = (LevelArrays(), LevelArrays(pos, crd))
    return replace(
        data, format=format, levels=levels, values=transposed.view(source.dtype), sorted=True
    )


def of_rows(data: TensorData, format: Format, entries: Ordered) -> TensorData:
    """Return CSR or CSC with ordered entries."""
    pos, crd, values = entries
    levels = (LevelArrays(), LevelArrays(pos, crd))
    return replace(data, format=format, levels=levels, values=values, sorted=True)


def distribute(data: TensorData, format: Format) -> TensorData | None:
    """Distribute the entries of COO over rows of CSR or CSC; entries in order are only counted.

    Declined for few entries, and for ordered duplicates, which have to be summed.
    """
    outer, inner = (data.levels[data.format.mode_order.index(m)].crd for m in format.mode_order)
    assert outer is not None and inner is not None
    rows, columns = (data.shape[mode] for mode in format.mode_order)
    most = max(rows, columns)
    if not is_worth_it(data.nnz, most, outer.dtype, data.dtype.itemsize):
        return None
    same = format.mode_order == data.format.mode_order
    first = (outer, inner, rows) if same else (inner, outer, columns)
    counted = count_starts(first[0], first[1], data.values, first[2])
    if counted is None:
        return None
    pos, in_order, distinct = counted
    if in_order and same:
        entries = (pos, inner, data.values)
        return replace(of_rows(data, format, entries), unique=True) if distinct else None
    by_columns: Ordered | None = (pos, outer, data.values)
    if not in_order or same:
        by_columns = order_entries(inner, outer, data.values, columns)
    ordered_twice = None if by_columns is None else _by_rows(by_columns, rows)
    if ordered_twice is None:
        return None
    by_rows = of_rows(data, format, ordered_twice)
    distinct = ascends_strictly(ordered_twice[0], ordered_twice[1])
    return replace(by_rows, unique=True) if distinct else canonical(replace(by_rows, unique=False))


def distribute_rows(data: TensorData, format: Format) -> TensorData | None:
    """Distribute the entries of COO over rows, of which the empty ones are left out.

    Declined for a matrix with so many empty rows or columns that sorting its entries is faster.
    """
    if sum(data.shape) > EMPTY * data.nnz:
        return None
    by_rows = distribute(data, CSR if format == DCSR else CSC)
    return None if by_rows is None else drop_empty_rows(by_rows, format)


def _by_rows(by_columns: Ordered, rows: int) -> Ordered | None:
    """Reorder entries from the order of columns to that of rows."""
    pos, outer, values = by_columns
    return order_entries(outer, outer, values, rows, pos)


def transpose_rows(data: TensorData, format: Format) -> TensorData | None:
    """Transpose as `transpose_compressed` where one or both formats leave empty rows out.

    Declined for a matrix with so many empty rows or columns that sorting its entries is faster.
    """
    if sum(data.shape) > EMPTY * data.nnz:
        return None
    rows = CSR if data.format.mode_order == CSR.mode_order else CSC
    columns = CSC if rows == CSR else CSR
    full = data if data.format == rows else insert_empty_rows(data, rows)
    if full is None:
        return None
    transposed = transpose_compressed(full, columns)
    return (
        transposed
        if transposed is None or format == columns
        else drop_empty_rows(transposed, format)
    )


def list_coordinates(data: TensorData, format: Format) -> TensorData | None:
    """Write the coordinates of all levels out as COO, in storage order."""
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
    """Make a dense root compressed by removing the rows without children: CSR to DCSR.

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
    """Make a compressed root dense by inserting empty rows: DCSR to CSR."""
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
    """Convert by the general method: unpack, sort where needed, pack."""
    coords, values = unpack(data, drop_fill=not format.levels[-1].full)
    in_order = data.sorted and data.unique and format.mode_order == data.format.mode_order
    dtype = index_dtype_of(data)
    if in_order:
        columns = [coords[mode] for mode in format.mode_order]
        return pack_sorted(columns, values, data.shape, format, dtype, data.fill)
    return pack_coo(coords, values, data.shape, format, dtype, data.fill)


# --- conditions on formats -----------------------------------------------------------------------


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


def shares_value(lists: Format, pattern: Format) -> bool:
    """Tell whether formats differ in the last level alone, which has one value for all entries."""
    return (
        lists.mode_order == pattern.mode_order
        and lists.levels[:-1] == pattern.levels[:-1]
        and lists.levels[-1].is_list
        and lists.levels[-1].unique
        and pattern.levels[-1].kind.shared
        and is_usual(lists)
    )


def is_matrix_of_rows(format: Format) -> bool:
    """Tell whether a format is CSR or CSC, with or without empty rows."""
    return format in (CSR, CSC, DCSR, DCSC)


DCSC = Format.parse("ss:1,0")
EMPTY = 4
"""Rows and columns per entry above which a counting sort, which visits all of them, is slower than
sorting the entries."""
CONVERSIONS: tuple[Conversion, ...] = (
    Conversion("the same storage, no copy", lambda a, b: a == b, lambda data, format: data),
    Conversion(
        "the same arrays where no duplicates are known to be in the way", same_storage, relabel
    ),
    Conversion("one value kept, O(nnz), coordinates shared", shares_value, one_value),
    Conversion("scattered into an array, O(size)", lambda a, b: b.is_dense, densify),
    Conversion(
        "its value repeated, O(nnz), then as CSR or what has its lists",
        lambda a, b: a.levels[-1].kind.shared and is_usual(_lists_of(a)) and a != b,
        repeat_value,
        ConversionWork.COUNTED,
    ),
    Conversion(
        "blocks of the array that are not all zero, found in order, O(size)",
        lambda a, b: a.is_dense and b.levels[-1].full and is_usual(b),
        gather_nonzeros,
    ),
    Conversion(
        "nonzeros of the array, found in order, O(size)",
        lambda a, b: a.is_dense and is_usual(b),
        gather_nonzeros,
    ),
    Conversion(
        "transposed by counting sort, O(rows + nnz)",
        lambda a, b: {a, b} == {CSR, CSC},
        transpose_compressed,
        ConversionWork.COUNTED,
    ),
    Conversion(
        "transposed by counting sort, O(rows + nnz), unless most rows are empty",
        lambda a, b: is_matrix_of_rows(a) and is_matrix_of_rows(b) and a.mode_order != b.mode_order,
        transpose_rows,
        ConversionWork.COUNTED,
    ),
    Conversion(
        "distributed over rows by counting sorts, O(rows + nnz); only counted where in order",
        lambda a, b: a.is_coo and b in (CSR, CSC),
        distribute,
        ConversionWork.COUNTED,
    ),
    Conversion(
        "distributed over rows by counting sorts, O(rows + nnz), unless most rows are empty",
        lambda a, b: a.is_coo and b in (DCSR, DCSC),
        distribute_rows,
        ConversionWork.COUNTED,
    ),
    Conversion(
        "coordinates written out in storage order, O(nnz)",
        lambda a, b: b.is_coo and not a.levels[-1].full,
        list_coordinates,
    ),
    Conversion(
        "empty rows left out, O(rows), coordinates and values shared",
        root_differs,
        drop_empty_rows,
    ),
    Conversion(
        "empty rows put in, O(rows), coordinates and values shared",
        lambda a, b: root_differs(b, a),
        insert_empty_rows,
    ),
)
