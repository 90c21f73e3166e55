"""Rows of CSR matrices, or columns of CSC, that a subscript names, copied one after the other.

    A[p[i],j]    row p[i] of A becomes row i; so do A[2*i,j] and A[9-i,j]

Where the other mode is an index by itself, rows are copied as they are: no coordinate is computed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taco_py.calls.indexed.domains import Sizes
from taco_py.calls.indexed.positions import check_inside, is_inside, positions
from taco_py.data.storage.room import room
from taco_py.data.storage.sizes import index_type
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, ordered
from taco_py.language.formats import CSC, CSR
from taco_py.language.notation.half_types import is_half
from taco_py.language.notation.nodes import Access


def picked_rows(
    access: Access,
    data: TensorData,
    sizes: Sizes,
    tensors: Mapping[str, TensorData],
    fills: bool,
) -> TensorData | None:
    """Return the operand of an access that picks rows, None for other accesses and formats.

    fills  whether rows outside of the operand are empty, and no error

    Raises DimensionError for a row outside, OutOfMemoryError.
    """
    if ordered(data.format) not in (CSR, CSC) or len(access.indices) != 2:
        return None
    outer, inner = data.format.mode_order
    mode, column_index = access.modes[outer], access.modes[inner].index
    if len(mode.names) != 1 or column_index in (None, *mode.names):
        return None
    if sizes[column_index or ""] != data.shape[inner]:
        return None
    (index,) = mode.names
    rows, count = positions(mode, (index,), sizes, tensors), data.shape[outer]
    if not fills:
        shaped = rows.reshape([-1 if name == index else 1 for name in access.indices])
        check_inside(shaped, count, access, outer, tensors)
    return _rows(data, rows, tuple(sizes[name] for name in access.indices))


def _rows(data: TensorData, rows: Array, shape: tuple[int, ...]) -> TensorData:
    """Return the rows of these numbers; those outside are empty."""
    from scipy.sparse import _sparsetools

    last = data.levels[-1]
    pos, crd = last.pos, last.crd
    assert pos is not None and crd is not None
    inside = is_inside(rows, len(pos) - 1)
    if not inside.all():
        pos = np.append(pos, pos[-1])
        rows = np.where(inside, rows, len(pos) - 2)
    lengths = np.diff(pos).take(rows)
    total = int(lengths.sum(dtype=np.int64))
    with room("rows that are gathered", total * (crd.itemsize + data.dtype.itemsize)):
        starts = np.zeros(len(rows) + 1, index_type(shape, total, None))
        np.cumsum(lengths, out=starts[1:])
        crds, values = np.empty(total, pos.dtype), np.empty(total, data.dtype)
        arrays = (rows.astype(pos.dtype), pos, crd.astype(pos.dtype, copy=False))
        source, target = data.values, values
        if is_half(data.dtype):  # which SciPy's loops do not know, and copies of bits suffice
            source, target = source.view(np.uint16), target.view(np.uint16)
        _sparsetools.csr_row_index(len(rows), *arrays, source, crds, target)
    levels = (LevelArrays(), LevelArrays(starts, crds.astype(starts.dtype, copy=False)))
    return TensorData(data.format, shape, levels, values, data.sorted, data.unique, data.fill)
