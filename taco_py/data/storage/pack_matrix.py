"""Coordinates into CSR or CSC by counting sorts: by the inner level, then by the outer one.

Files list matrices column by column, so that distributing their entries over rows sorts them
without the first sort. Duplicates stay in their order of appearance.
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

FEW = 1 << 12  # number of entries up to which sorting is as fast
SPARSE = 4  # rows per entry above which distributing is slower than sorting


def is_distributable(outer: Array, inner: Array, sizes: tuple[int, ...]) -> bool:
    """Tell whether entries are unsorted in the outer level, and rows and columns are not too
    many."""
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

    outer, inner  the coordinates of the entries in the two levels
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
    matrix: Any = sp.csr_array((distributed, crd, pos), shape=sizes)
    matrix.has_sorted_indices = True
    matrix.sum_duplicates()
    sums = matrix.data.astype(values.dtype, copy=False)
    dtype = index_type(shape, matrix.nnz, index_dtype)
    arrays = (matrix.indptr.astype(dtype, copy=False), matrix.indices.astype(dtype, copy=False))
    levels = (LevelArrays(), LevelArrays(*arrays))
    return TensorData(format, shape, levels, sums, sorted=True, unique=True, fill=fill)


def distributed_over(
    columns: tuple[Array, Array], values: Array, sizes: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Return pos, crd and values of entries distributed over the first column's coordinates."""
    from scipy.sparse import _sparsetools

    outer, inner = columns
    pos, crd = np.empty(sizes[0] + 1, outer.dtype), np.empty_like(inner)
    distributed = np.empty_like(values)
    _sparsetools.coo_tocsr(*sizes, len(values), outer, inner, values, pos, crd, distributed)
    return pos, crd, distributed


def turned(
    pos: Array, crd: Array, values: Array, sizes: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Transpose a matrix with sizes[1] rows; its entries come out sorted."""
    from scipy.sparse import _sparsetools

    transposed_pos, inner = np.empty(sizes[0] + 1, pos.dtype), np.empty_like(crd)
    transposed = np.empty_like(values)
    _sparsetools.csr_tocsc(sizes[1], sizes[0], pos, crd, values, transposed_pos, inner, transposed)
    return transposed_pos, inner, transposed
