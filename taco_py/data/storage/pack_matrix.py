"""Coordinates into CSR or CSC by counting sorts: by the inner level, then by the outer one.

Files list matrices column by column, so their rows come out in order if entries are distributed
over these one after another, without the first sort. Duplicates stay in their order of appearance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from taco_py.data.storage.sizes import INT32_MAX, index_type, level_sizes
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.fill import Fill
from taco_py.language.formats import Format
from taco_py.language.notation.half_types import computed_dtype

FEW = 1 << 12  # entries that are as fast sorted
SPARSE = 4  # rows an entry beyond which distributing entries over them takes longer than a sort


def is_distributable(outer: Array, inner: Array, sizes: tuple[int, ...]) -> bool:
    """Tell whether entries do not ascend in the outer level, and rows and columns are not many."""
    if len(inner) < FEW or sizes[0] > SPARSE * len(inner):
        return False
    if bool((outer[1:] >= outer[:-1]).all()):
        return False
    return sizes[1] <= SPARSE * len(inner) or _ascends(inner)


def _ascends(inner: Array) -> bool:
    return bool((inner[1:] >= inner[:-1]).all())


def pack_matrix(
    outer: Array,
    inner: Array,
    values: Array,
    shape: tuple[int, ...],
    format: Format,
    index_dtype: DTypeLike | None,
    fill: Fill = "",
) -> TensorData:
    """Pack entries in any order into CSR or CSC; duplicates are summed.

    outer, inner  a coordinate an entry in each of the two levels
    """
    sizes: Any = level_sizes(shape, format)
    numbers = values.astype(computed_dtype(values.dtype), copy=False)  # scipy adds up no halves
    narrow = outer.dtype == inner.dtype == np.int32 and len(values) <= INT32_MAX
    wide = np.dtype(np.int32 if narrow else np.int64)
    columns = (outer.astype(wide, copy=False), inner.astype(wide, copy=False))
    if _ascends(inner):
        pos, crd, distributed = distributed_over(columns, numbers, sizes)
    else:  # over the columns first, and then from each of these over the rows
        entries = distributed_over(columns[::-1], numbers, sizes[::-1])
        pos, crd, distributed = turned(*entries, sizes)
    made: Any = sp.csr_array((distributed, crd, pos), shape=sizes)
    made.has_sorted_indices = True
    made.sum_duplicates()
    added = made.data.astype(values.dtype, copy=False)
    dtype = index_type(shape, made.nnz, index_dtype)
    arrays = (made.indptr.astype(dtype, copy=False), made.indices.astype(dtype, copy=False))
    levels = (LevelArrays(), LevelArrays(*arrays))
    return TensorData(format, shape, levels, added, sorted=True, unique=True, fill=fill)


def distributed_over(
    columns: tuple[Array, Array], values: Array, sizes: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Positions, coordinates and values of entries below each coordinate of the first column."""
    from scipy.sparse import _sparsetools

    outer, inner = columns
    pos, crd = np.empty(sizes[0] + 1, outer.dtype), np.empty_like(inner)
    found = np.empty_like(values)
    _sparsetools.coo_tocsr(*sizes, len(values), outer, inner, values, pos, crd, found)
    return pos, crd, found


def turned(
    pos: Array, crd: Array, values: Array, sizes: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Return the transposed matrix of one that has sizes[1] rows, its entries in order."""
    from scipy.sparse import _sparsetools

    across, inner = np.empty(sizes[0] + 1, pos.dtype), np.empty_like(crd)
    found = np.empty_like(values)
    _sparsetools.csr_tocsc(sizes[1], sizes[0], pos, crd, values, across, inner, found)
    return across, inner, found
