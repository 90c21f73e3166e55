"""The number of entries of a stored tensor, whatever its format stores besides.

[[1, 0], [2, 3]]   3 entries   ds: 3 values   db: 3   dd, dm: 4   dh: tables of 2 and 4 places
"""

from __future__ import annotations

import numpy as np

from taco_py.data.storage.by_level.level_tree import fills_up, is_usual, list_levels
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.fill import Fill, differs
from taco_py.language.formats import LevelKind


def entry_count(data: TensorData) -> int:
    """Count the entries: as many as `unpack(data, drop_fill=True)` returns.

    Stored coordinates count, whatever their values, and so do duplicates. Where the format
    `fills_up` or is dense, elements with the fill value do not count.
    """
    form = data.format
    if form.is_dense:
        return _count_others(data.values, data.fill)
    last = form.levels[-1].kind
    if last.last:
        return data.nnz
    if last is LevelKind.HASHED:
        return int(np.count_nonzero(np.asarray(data.levels[-1].crd) >= 0))
    if is_usual(form):
        return _count_others(data.values, data.fill) if fills_up(form) else data.nnz
    _, places = list_levels(data, form.order)
    return _count_others(data.values[places], data.fill) if fills_up(form) else len(places)


def _count_others(values: Array, fill: Fill) -> int:
    """Count the values that differ from the fill value."""
    return int(np.count_nonzero(differs(values, fill) if fill else values))
