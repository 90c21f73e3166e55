"""Tensors whose entries can be located by their coordinates, without a search and without zeros."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taco_py.data.storage.pack import is_sorted, is_unique, pack_coo, unpack
from taco_py.data.storage.sizes import index_dtype_of
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.formats import Format, dense


def located(data: TensorData) -> TensorData:
    """Append a mode of size 1: dense levels, and below each element its entries.

        x = [0 7 0 5]  →  pos = [0 0 1 1 2], crd = [0 0], values = [7 5]

    Duplicates are summed; a stored zero stays an entry.
    """
    form = located_format(len(data.shape))
    shape, dtype = (*data.shape, 1), index_dtype_of(data)
    alone = data.format.order == 1 and data.format.levels[0].kind.listed
    if not (alone and is_sorted(data) and is_unique(data)):
        coords, values = unpack(data)
        unit = np.zeros(len(values), dtype)
        return pack_coo((*coords, unit), values, shape, form, dtype, data.fill)
    pos, level = np.zeros(data.shape[0] + 1, dtype), data.levels[0]
    assert level.pos is not None and level.crd is not None
    stored = slice(int(level.pos[0]), int(level.pos[1]))
    pos[1:][level.crd[stored]] = 1
    np.cumsum(pos, out=pos)
    levels = (LevelArrays(), LevelArrays(pos, np.zeros(int(pos[-1]), dtype)))
    return TensorData(form, shape, levels, data.values[stored], True, True, data.fill)


def located_format(order: int) -> Format:
    """Return the format of `located`: `ds` for a vector, `dds` for a matrix …"""
    below = Format.parse("s").levels
    return replace(dense(order + 1), levels=(*dense(order).levels, *below))
