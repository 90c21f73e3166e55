"""Coordinates into the arrays of any format, and back.

Packing follows Chou et al. 2018 (Format Abstraction, section 4) level by level, for all entries at
once: the entries, sorted and distinct, each carry their position at the level above. A dense level
maps it to position * size + coordinate. A compressed level and the singletons below it (a *chain*)
make one position of every distinct prefix of coordinates, and `pos` counts them per parent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from taco_py.data.storage.by_level.level_tree import (
    asks_order,
    fills_up,
    is_usual,
    list_levels,
    list_tree,
    pack_tree,
)
from taco_py.data.storage.coordinates import (
    ascends,
    fuse,
    has_duplicates,
    scatter_sum,
    sort_and_sum,
    unravel,
)
from taco_py.data.storage.nonzero import nonzero_places
from taco_py.data.storage.pack_matrix import is_distributable, pack_matrix
from taco_py.data.storage.room import room, stored_bytes
from taco_py.data.storage.sizes import (
    chains,
    coordinate_lists,
    index_dtype_of,
    index_type,
    level_counts,
    level_sizes,
    position_count,
)
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, dense_data, ordered
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.fill import Fill, as_number, differs
from taco_py.language.formats import CSC, CSR, Format
from taco_py.language.notation.half_types import computed_dtype

ENTRIES = "the entries alone are what .to_coo() gives"
SPARSER = 'store modes with few coordinates compressed, as in tp.COO(2) or "ss"'


def pack_coo(
    coords: Array | Sequence[Array],
    values: Array,
    shape: tuple[int, ...],
    format: Format,
    index_dtype: DTypeLike | None = None,
    fill: Fill = "",
    unique: bool = False,
) -> TensorData:
    """Return the tensor with these entries, stored in `format`; duplicates are summed (bool: or).

    coords       an (nnz, order) array or one array a mode, integers within `shape`, in any order
    index_dtype  int32 or int64; None for int32 where every size and the number of entries fit
    fill         the value of all other elements, also where a dense level stores them
    unique       whether there are known to be no duplicates

    The inputs are never written to; the result may share their memory where they are sorted. Raises
    IndexOverflowError when the index type or the address space cannot hold the
    tensor, FormatError when the format cannot (a unique level above a singleton that needs
    duplicates), OutOfMemoryError.

    >>> rows, columns = np.array([1, 0]), np.array([0, 2])
    >>> pack_coo([rows, columns], np.array([5.0, 6.0]), (2, 3), CSR).levels[1].crd
    array([2, 0], dtype=int32)
    """
    modes = coordinate_lists(coords)
    columns = [modes[mode] for mode in format.mode_order]
    bytes_needed = stored_bytes(shape, len(values), format, values.dtype.itemsize)
    with room(f"a tensor of shape {shape} in the format {format}", bytes_needed, SPARSER):
        return packed(columns, values, shape, format, index_dtype, fill, unique)


def packed(
    columns: Sequence[Array],
    values: Array,
    shape: tuple[int, ...],
    format: Format,
    index_dtype: DTypeLike | None,
    fill: Fill = "",
    unique: bool = False,
) -> TensorData:
    """Pack columns in level order, as `pack_coo`."""
    if format.is_dense:
        return pack_dense(columns, values, shape, format, fill)
    if format.levels == CSR.levels:
        outer, inner = columns
        if is_distributable(outer, inner, level_sizes(shape, format)):
            return pack_matrix(outer, inner, values, shape, format, index_dtype, fill)
    if not (unique and not is_usual(format) and not asks_order(format)):
        columns, values = sort_and_sum(columns, values, level_sizes(shape, format))
    return pack_sorted(columns, values, shape, format, index_dtype, fill)


def pack_dense(
    columns: Sequence[Array],
    values: Array,
    shape: tuple[int, ...],
    format: Format,
    fill: Fill = "",
) -> TensorData:
    """Return the n-D array of a coordinate list, laid out in the format's mode order."""
    sizes = level_sizes(shape, format)
    size = position_count(sizes)
    places = np.zeros(len(values), dtype=np.int64)
    for column, extent in zip(columns, sizes, strict=True):
        places *= extent
        places += column
    array = scatter_sum(size, places, values, fill).reshape(sizes)
    return dense_data(array.transpose(np.argsort(format.mode_order)), format, fill)


def pack_sorted(
    columns: Sequence[Array],
    values: Array,
    shape: tuple[int, ...],
    format: Format,
    index_dtype: DTypeLike | None = None,
    fill: Fill = "",
) -> TensorData:
    """Pack columns in level order with strictly ascending entries, for a format not all dense."""
    dtype = index_type(shape, len(values), index_dtype)
    if not is_usual(format):
        return pack_tree(columns, values, shape, format, dtype, fill)
    levels, places, count = pack_levels(columns, shape, format, dtype)
    if places is not None:
        what = f"a tensor of shape {shape} in the format {format}"
        with room(what, count * values.itemsize, SPARSER):
            values = scatter_sum(count, places, values, fill)
    stored = np.ascontiguousarray(values)
    return TensorData(format, shape, tuple(levels), stored, sorted=True, unique=True, fill=fill)


def pack_levels(
    columns: Sequence[Array], shape: tuple[int, ...], format: Format, dtype: np.dtype[Any]
) -> tuple[list[LevelArrays], Array | None, int]:
    """Return pos and crd of the outermost levels from columns with strictly ascending entries.

    Also returns the position of each entry below these levels (None where each entry has its own,
    as below a compressed level) and the number of positions. Raises FormatError where a unique
    level above a singleton needs duplicates.

    [0 0 2] in a level s below the root  ->  pos = [0 2], crd = [0 2], positions [0 0 1] of 2
    """
    sizes, depth = level_sizes(shape, format), len(columns)
    levels: list[LevelArrays] = []
    parents: Array | None = None  # position of each entry at the level above; None: all at the root
    heads = np.zeros(len(columns[0]), dtype=np.bool_)  # entries whose prefix is new
    heads[:1] = True
    count = 1
    for start, stop in chains(format):
        if start >= depth:
            break
        if format.levels[start].full:
            levels.append(LevelArrays())
            count = position_count((count, sizes[start]))
            mark_heads(heads, columns[start])
            parents = next_positions(parents, columns[start], sizes[start])
            continue
        for level in range(start, min(stop, depth - 1)):  # each entry is one of the last level
            mark_heads(heads, columns[level])
            if format.levels[level].unique and level + 1 < stop:
                require_unique(heads, columns[level + 1 : stop], format, level)
        selected = None if stop == depth else np.flatnonzero(heads)
        crds = [as_index(select(columns[level], selected), dtype) for level in range(start, stop)]
        above = None if parents is None else select(parents, selected)
        pos = pointers(above, len(crds[0]), count, dtype)
        levels += [LevelArrays(pos, crds[0]), *(LevelArrays(crd=crd) for crd in crds[1:])]
        count = len(crds[0])
        parents = np.cumsum(heads) - 1 if stop < depth else None
    return levels, parents, count


def select(column: Array, selected: Array | None) -> Array:
    """Return the selected entries of a column; all for None."""
    return column if selected is None else column.take(selected)


def mark_heads(heads: NDArray[np.bool_], column: Array) -> None:
    """Mark the entries whose coordinate differs from the one before, besides marked ones."""
    heads[1:] |= column[1:] != column[:-1]


def next_positions(parents: Array | None, column: Array, size: int) -> Array:
    """Return positions at a dense level: parent position * size + coordinate."""
    if parents is None:
        return column.astype(np.int64)
    return parents * size + column


def pointers(parents: Array | None, children: int, count: int, dtype: np.dtype[Any]) -> Array:
    """Return pos: the start of the children of each of `count` parents, and the end of the last."""
    if parents is None:
        return np.array([0, children], dtype=dtype)
    pos = np.zeros(count + 1, dtype=dtype)
    np.cumsum(np.bincount(parents, minlength=count), out=pos[1:])
    return pos


def as_index(column: Array, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(column, dtype=dtype)


def require_unique(
    heads: NDArray[np.bool_], below: Sequence[Array], format: Format, level: int
) -> None:
    """Check that singletons below a unique level need only one entry for each of its
    coordinates."""
    rest = heads.copy()
    for column in below:
        mark_heads(rest, column)
    clashes = np.flatnonzero(rest & ~heads)
    if len(clashes):
        letters = "".join(kind.letter for kind in format.levels)
        raise FormatError(
            f"Expected at most one entry for each coordinate of level {level} of format "
            f"{str(format)!r}, found {len(clashes)} more (the singleton level below it stores one)",
            hint=f"let level {level} hold duplicates: {loosened(letters, level)!r}, "
            "or store the levels below compressed",
        )


def loosened(letters: str, level: int) -> str:
    """Return format letters with duplicates allowed at one level.

    >>> loosened("sc", 0)
    'uc'
    """
    return letters[:level] + {"s": "u", "c": "q"}[letters[level]] + letters[level + 1 :]


# --- back to coordinates -------------------------------------------------------------------------


def unpack(data: TensorData, drop_fill: bool = False) -> tuple[tuple[Array, ...], Array]:
    """Return every stored entry: one coordinate array a mode, and the values.

    Entries come in storage order. Dense levels yield all their entries; `drop_fill` leaves out
    entries with the fill value, usually 0, where the format `fills_up` (elsewhere a stored zero is
    part of the pattern, and stays). The arrays may be the tensor's own: do not write to them.
    """
    if data.format.is_dense:
        columns, values = unpack_dense(data, drop_fill)
    else:
        if is_usual(data.format):
            columns, values = expand(data), data.values
        else:
            columns, values = list_tree(data)
        if drop_fill and fills_up(data.format):
            nonfill = np.flatnonzero(differs(values, data.fill) if data.fill else values)
            columns, values = [column[nonfill] for column in columns], values[nonfill]
    place = np.argsort(data.format.mode_order)
    return tuple(columns[level] for level in place), values


def unpack_dense(data: TensorData, drop_fill: bool) -> tuple[list[Array], Array]:
    """Return columns and values of an all-dense tensor, in the format's mode order."""
    array = data.values.transpose(data.format.mode_order)
    values = array.reshape(-1)
    if not drop_fill:
        return [grid.reshape(-1) for grid in np.indices(array.shape)], values
    nonfill = np.flatnonzero(differs(values, data.fill)) if data.fill else nonzero_places(values)
    return unravel(nonfill, array.shape), values[nonfill]


def expand(data: TensorData, levels: Collection[int] | None = None) -> list[Array]:
    """Return the coordinates of every stored value, a column a level, of a format not all dense.

    levels  the requested levels, without a coordinate for each element of dense levels inside all
            of them; None for all levels. With unusual kinds of levels, elements without coordinates
            are left out.

    From the values upwards, `first[p]` is the start of the values below position p, so that each
    coordinate is repeated first[p+1] - first[p] times.
    """
    if not is_usual(data.format):
        requested = range(data.format.order) if levels is None else sorted(levels)
        columns_of_levels, _ = list_levels(data, max(*requested, data.format.depth - 1) + 1)
        return [columns_of_levels[level].coordinates for level in requested]
    sizes = level_sizes(data.shape, data.format)
    counts = level_counts(data)
    dtype = index_dtype_of(data)
    first: Array | None = None
    columns: list[Array] = []
    requested_levels = range(len(sizes)) if levels is None else levels
    for k in range(max(*requested_levels, data.format.depth - 1), min(requested_levels) - 1, -1):
        arrays, above = data.levels[k], counts[k]
        crd = arrays.crd
        if crd is None:
            crd = np.tile(np.arange(sizes[k], dtype=dtype), above)
        if k in requested_levels:
            columns.append(crd if first is None else np.repeat(crd, np.diff(first)))
        if data.format.levels[k].full:
            starts = np.arange(above + 1) * sizes[k]
            first = starts if first is None else first[starts]
        elif arrays.pos is not None:
            first = arrays.pos if first is None else first[arrays.pos]
    return columns[::-1]


def to_dense(data: TensorData) -> Array:
    """Return the n-D array with duplicates summed and the fill value elsewhere."""
    if data.format.is_dense:
        return data.values
    dense = Format.parse("d" * data.format.order)
    bytes_needed = prod(data.shape) * data.dtype.itemsize
    with room(f"a dense array of shape {data.shape}", bytes_needed, ENTRIES):
        coords, values = unpack(data)
        if is_unique(data) and values.dtype.kind in "fc":  # a sum with 0 has no minus zero
            array = np.full(
                data.shape, as_number(data.fill, data.dtype) if data.fill else 0, data.dtype
            )
            array[coords] = values
            return array
        return pack_coo(coords, values, data.shape, dense, fill=data.fill).values


# --- order ---------------------------------------------------------------------------------------


def is_sorted(data: TensorData) -> bool:
    """Tell whether coordinates ascend below every parent, lexicographically in chains as of COO."""
    if data.sorted is not None:
        return data.sorted
    if not is_usual(data.format):
        return all(level.kind.ordered for level in data.format.levels)
    return all(
        chain_ascends(data, start, stop, strictly=False) for start, stop in sparse_chains(data)
    )


def is_unique(data: TensorData) -> bool:
    """Tell whether no coordinate tuple is stored twice."""
    if data.unique is not None:
        return data.unique
    if not is_usual(data.format):
        return not has_duplicates(list_tree(data)[0], level_sizes(data.shape, data.format))
    spans = list(sparse_chains(data))
    if all(chain_ascends(data, start, stop, strictly=True) for start, stop in spans):
        return True
    sizes = level_sizes(data.shape, data.format)
    if ordered(data.format) in (CSR, CSC) and sizes[1] <= max(data.nnz, sizes[0]):
        return rows_are_unique(data, sizes)
    return not has_duplicates(expand(data), sizes)


def rows_are_unique(data: TensorData, sizes: Sequence[int]) -> bool:
    """Tell whether CSR or CSC in any order has no duplicates: times the identity it keeps its nnz.

    SciPy counts entries with a mark a column, which takes a quarter of the time of sorting.
    """
    from scipy.sparse import _sparsetools

    pos, crd = data.levels[1].pos, data.levels[1].crd
    assert pos is not None and crd is not None
    identity_pos = np.arange(sizes[1] + 1, dtype=pos.dtype)
    arguments = (
        sizes[0],
        sizes[1],
        pos,
        crd.astype(pos.dtype, copy=False),
        identity_pos,
        identity_pos[:-1],
    )
    return bool(_sparsetools.csr_matmat_maxnnz(*arguments) == pos[-1] - pos[0])


def canonical(data: TensorData) -> TensorData:
    """Return the same tensor in the same format, sorted and with duplicates summed.

    Returns the same object where both properties are known, the same arrays with `sorted` and
    `unique` set where they hold, otherwise new arrays. The input's arrays are never written to.
    """
    if data.sorted and data.unique:
        return data
    if not is_usual(data.format):
        coords, values = unpack(data)
        return pack_coo(coords, values, data.shape, data.format, index_dtype_of(data), data.fill)
    spans = list(sparse_chains(data))
    if all(chain_ascends(data, start, stop, strictly=True) for start, stop in spans):
        return replace(data, sorted=True, unique=True)
    if ordered(data.format) in (CSR, CSC):
        return canonical_matrix(data)
    coords, values = unpack(data)
    return pack_coo(coords, values, data.shape, data.format, index_dtype_of(data), data.fill)


def canonical_matrix(data: TensorData) -> TensorData:
    """Sort CSR or CSC and sum its duplicates by scipy, twice as fast as by sorting keys."""
    arrays, dtype = data.levels[1], data.dtype
    values = data.values.astype(computed_dtype(dtype), copy=False)  # scipy has no sums of halves
    parts: Any = (values, arrays.crd, arrays.pos)
    sizes: Any = level_sizes(data.shape, data.format)  # CSC is the CSR of the transposed matrix
    matrix: Any = sp.csr_array(parts, shape=sizes, copy=True)
    matrix.sum_duplicates()
    levels = (LevelArrays(), LevelArrays(matrix.indptr, matrix.indices))
    sums = matrix.data.astype(dtype, copy=False)
    return replace(data, levels=levels, values=sums, sorted=True, unique=True)


def chain_ascends(data: TensorData, start: int, stop: int, strictly: bool) -> bool:
    """Tell whether siblings in the chain of levels start … stop - 1 ascend."""
    sizes = level_sizes(data.shape, data.format)[start:stop]
    crds = [arrays.crd for arrays in data.levels[start:stop] if arrays.crd is not None]
    if len(crds[0]) < 2:
        return True
    rises = ascends(fuse(crds, sizes), strictly)
    if rises.all():
        return True
    pos = data.levels[start].pos
    assert pos is not None
    breaks = pos[(pos > 0) & (pos < len(crds[0]))]
    rises[breaks - 1] = True  # the first child of the next parent may be anything
    return bool(rises.all())


def sparse_chains(data: TensorData) -> Iterator[tuple[int, int]]:
    """Yield each compressed level with the singletons below it."""
    return (span for span in chains(data.format) if not data.format.levels[span[0]].full)
