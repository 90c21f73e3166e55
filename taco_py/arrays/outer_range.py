"""A range of the outermost level of a stored tensor: contiguous parts of its arrays.

    T[2:5] of CSR    pos[2:6] - pos[2], crd[pos[2]:pos[5]], values[pos[2]:pos[5]]

The arrays of coordinates and values are shared; only arrays of positions are new.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from taco_py.data.storage.by_level.level_tree import is_usual
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.formats import Format


def outer_range(data: TensorData, start: int, stop: int) -> TensorData | None:
    """Take the coordinates from start up to stop of the outermost mode.

    data  a tensor that is not all dense

    Returns None where coordinates are not sorted, or the levels of the format are not usual.
    """
    format, mode = data.format, data.format.mode_order[0]
    if not is_usual(format):
        return None
    shape = list(data.shape)
    shape[mode] = stop - start
    levels: list[LevelArrays] = []
    low, high = 0, 1
    for depth, (level, arrays) in enumerate(zip(format.levels, data.levels, strict=True)):
        pos, crd = arrays.pos, arrays.crd
        if level.full:
            size = data.shape[format.mode_order[depth]]
            low, high = (start, stop) if depth == 0 else (low * size, high * size)
            levels.append(arrays)
            continue
        if pos is not None:
            pos = pos[low : high + 1]
            low, high = int(pos[0]), int(pos[-1])
        assert crd is not None
        if depth == 0:
            if not data.sorted:
                return None
            end = high
            low = bisect_left(crd, start, low, end)
            high = bisect_left(crd, stop, low, end)
            crd = crd[low:high] - crd.dtype.type(start)
            pos = np.array([0, high - low], arrays.pos.dtype if arrays.pos is not None else None)
        else:
            crd = crd[low:high]
            pos = pos - pos[0] if pos is not None else None
        levels.append(LevelArrays(pos, crd))
    values = data.values[low:high]
    return TensorData(
        format, tuple(shape), tuple(levels), values, data.sorted, data.unique, data.fill
    )


def outer_part(data: TensorData, place: int) -> TensorData | None:
    """Take one coordinate of the outermost mode, which the result lacks.

    Returns None where the outermost level is not dense or the rest is no sparse tensor.
    """
    format = data.format
    if len(format.levels) < 2 or not format.levels[0].full:
        return None
    part = outer_range(data, place, place + 1)
    if part is None:
        return None
    mode = format.mode_order[0]
    order = tuple(other_mode - (other_mode > mode) for other_mode in format.mode_order[1:])
    rest = Format(format.levels[1:], order)
    shape = data.shape[:mode] + data.shape[mode + 1 :]
    if rest.is_dense:
        return None
    return TensorData(
        rest,
        shape,
        part.levels[1:],
        part.values,
        part.sorted,
        part.unique,
        part.fill,
    )
