"""CSR of a symmetric matrix into SYM, its lower triangle, and back by joining rows and columns.

row i of the matrix  =  row i of the triangle, then column i of it below the diagonal
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taco_py.data.convert.convert import convert
from taco_py.data.convert.order_entries import ascends_strictly
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.formats import CSC, CSR, SYM, RemappedFormat


def is_symmetric_format(format: RemappedFormat) -> bool:
    """Tell whether the format is SYM."""
    return format == SYM


def triangle_of_rows(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix in CSR, sorted and without duplicates, in SYM.

    Returns None where its rows differ from its columns; another check finds the wrong entry.
    """
    if data.shape[0] != data.shape[1] or not _is_within(data.levels[1], data.shape[1]):
        return None
    turned = convert(data, CSC)
    rows, columns = data.levels[1], turned.levels[1]
    assert rows.pos is not None and rows.crd is not None
    assert columns.pos is not None and columns.crd is not None
    same = np.array_equal(rows.pos, columns.pos) and np.array_equal(rows.crd, columns.crd)
    if not same or not np.array_equal(data.values, turned.values):
        return None
    lower = np.flatnonzero(rows.crd <= _rows_of(rows.pos, rows.crd))
    pos = np.searchsorted(lower, rows.pos).astype(rows.pos.dtype)
    nothing = LevelArrays()
    levels = (nothing, LevelArrays(pos, rows.crd[lower]), nothing, nothing, nothing)
    return replace(
        data, format=format.inner, shape=format.stored_shape(data.shape), levels=levels,
        values=data.values[lower], sorted=True, unique=True,
    )  # fmt: skip


def rows_of_triangle(
    stored: TensorData, format: RemappedFormat, shape: tuple[int, ...], drop_fill: bool
) -> TensorData | None:
    """Store a matrix of SYM in CSR.

    Returns None where it is no lower triangle with ascending columns, or positions need wider
    types.
    """
    level = stored.levels[1]
    pos, crd = level.pos, level.crd
    assert pos is not None and crd is not None
    if stored.fill or not _is_within(level, shape[1]):
        return None
    row = _rows_of(pos, crd)
    if 2 * len(crd) > np.iinfo(pos.dtype).max or (crd > row).any():
        return None
    below = np.flatnonzero(crd < row)
    strict = LevelArrays(np.searchsorted(below, pos).astype(pos.dtype), crd[below])
    matrix = TensorData(CSR, shape, (LevelArrays(), strict), stored.values[below], True, True)
    turned = convert(matrix, CSC)
    columns = turned.levels[1]
    assert columns.pos is not None and columns.crd is not None
    lengths, column_lengths = np.diff(pos), np.diff(columns.pos)
    to_pos = np.zeros_like(pos)
    np.cumsum(lengths + column_lengths, out=to_pos[1:])
    to_crd = np.empty(int(to_pos[-1]), crd.dtype)
    values = np.empty(len(to_crd), stored.dtype)
    for starts, counts, place, coordinates, numbers in (
        (to_pos[:-1], lengths, pos, crd, stored.values),
        (to_pos[:-1] + lengths, column_lengths, columns.pos, columns.crd, turned.values),
    ):
        to = np.arange(len(coordinates)) + np.repeat(starts - place[:-1], counts)
        to_crd[to], values[to] = coordinates, numbers
    if not ascends_strictly(to_pos, to_crd):
        return None
    levels = (LevelArrays(), LevelArrays(to_pos, to_crd))
    return TensorData(CSR, shape, levels, values, True, True)


def _rows_of(pos: Array, crd: Array) -> Array:
    """Return the row of each entry."""
    rows: Array = np.repeat(np.arange(len(pos) - 1, dtype=crd.dtype), np.diff(pos))
    return rows


def _is_within(level: LevelArrays, columns: int) -> bool:
    """Tell whether positions ascend from 0 to the number of entries, and columns are in range."""
    pos, crd = level.pos, level.crd
    assert pos is not None and crd is not None
    ascend = pos[0] == 0 and pos[-1] == len(crd) and not (pos[1:] < pos[:-1]).any()
    return bool(ascend and crd.min(initial=0) >= 0 and crd.max(initial=-1) < columns)
