"""Coordinates into CSR or CSC by counting sorts: by the inner level, then by the outer one.

Files list matrices column by column, so their rows come out in order if entries are distributed
over these one after another, without the first sort. Duplicates stay in their order of appearance.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
from numpy.typing import DTypeLike

from taco_py.fill import Fill
from taco_py.formats import Format
from taco_py.notation.half_types import computed_dtype
from taco_py.storage.sizes import index_type, level_sizes
from taco_py.storage.tensor_data import Array, LevelArrays, TensorData

FEW = 1 << 12  # entries that are as fast sorted
SPARSE = 4  # rows an entry beyond which distributing entries over them takes longer than a sort


def is_distributable(outer: Array, inner: Array, sizes: tuple[int, ...]) -> bool:
    """Whether entries do not ascend in the outer level, and rows and columns are not many."""
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
    entries: Any = sp.coo_array((numbers, (outer, inner)), shape=sizes)
    entries.has_canonical_format = True  # so that scipy distributes them, and no more
    made = entries.tocsr() if _ascends(inner) else entries.tocsc().tocsr()
    made.has_sorted_indices = True
    made.sum_duplicates()
    added = made.data.astype(values.dtype, copy=False)
    dtype = index_type(shape, made.nnz, index_dtype)
    arrays = (made.indptr.astype(dtype, copy=False), made.indices.astype(dtype, copy=False))
    levels = (LevelArrays(), LevelArrays(*arrays))
    return TensorData(format, shape, levels, added, sorted=True, unique=True, fill=fill)
