"""CSR of a symmetric matrix into SYM: its lower triangle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taco_py.convert.convert import convert
from taco_py.formats import CSC, RemappedFormat
from taco_py.storage.tensor_data import LevelArrays, TensorData


def triangle_of_rows(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix in CSR, sorted and without duplicates, in SYM.

    Returns None where its rows are not its columns.
    """
    if data.shape[0] != data.shape[1]:
        return None
    turned = convert(data, CSC)
    rows, columns = data.levels[1], turned.levels[1]
    assert rows.pos is not None and rows.crd is not None
    assert columns.pos is not None and columns.crd is not None
    same = np.array_equal(rows.pos, columns.pos) and np.array_equal(rows.crd, columns.crd)
    if not same or not np.array_equal(data.values, turned.values):
        return None
    row = np.repeat(np.arange(data.shape[0], dtype=rows.crd.dtype), np.diff(rows.pos))
    kept = np.flatnonzero(rows.crd <= row)
    pos = np.searchsorted(kept, rows.pos).astype(rows.pos.dtype)
    nothing = LevelArrays()
    levels = (nothing, LevelArrays(pos, rows.crd[kept]), nothing, nothing, nothing)
    return replace(
        data, format=format.inner, shape=format.stored_shape(data.shape), levels=levels,
        values=data.values[kept], sorted=True, unique=True,
    )  # fmt: skip
