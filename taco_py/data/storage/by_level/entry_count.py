"""How many entries a stored tensor has, whatever its format stores beside them.

[[1, 0], [2, 3]]   3 entries   ds: 3 values   db: 3   dd, dm: 4   dh: tables of 2 and 4 places
"""

from __future__ import annotations

import numpy as np

from taco_py.data.storage.by_level.level_tree import fills_up, is_usual, list_levels
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.fill import Fill, differs
from taco_py.language.formats import LevelKind


def entry_count(data: TensorData) -> int:
    """Count the entries: as many as `unpack(data, drop_fill=True)` lists.

    Coordinates that are stored count, whatever their values, a duplicate again. Where the format
    `fills_up`, and where it is dense, what has the fill value is no entry.
    """
    form = data.format
    if form.is_dense:
        return _others(data.values, data.fill)
    last = form.levels[-1].kind
    if last.last:
        return data.nnz
    if last is LevelKind.HASHED:
        return int(np.count_nonzero(np.asarray(data.levels[-1].crd) >= 0))
    if is_usual(form):
        return _others(data.values, data.fill) if fills_up(form) else data.nnz
    _, places = list_levels(data, form.order)
    return _others(data.values[places], data.fill) if fills_up(form) else len(places)


def _others(values: Array, fill: Fill) -> int:
    """Count how many values are not the fill value."""
    return int(np.count_nonzero(differs(values, fill) if fill else values))
