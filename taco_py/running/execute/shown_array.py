"""An array for a result with the modes of the kernel that writes it."""

from __future__ import annotations

import numpy as np

from taco_py.data.storage.tensor_data import Array


def with_fewer_modes(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return a view whose modes are runs of neighbouring ones; None where they are in no row.

    (2, 3, 4), of which the first two lie in a row   →   (6, 4)
    """
    if array.shape == shape:
        return array
    strides: list[int] = []
    mode = 0
    for size in shape:
        count, stride = 1, array.itemsize
        while mode < array.ndim and (count < size or array.shape[mode] == 1):
            if array.shape[mode] != 1:
                if count != 1 and stride != array.strides[mode] * array.shape[mode]:
                    return None
                count, stride = count * array.shape[mode], array.strides[mode]
            mode += 1
        if count != size:
            return None
        strides.append(stride)
    if mode < array.ndim:
        return None
    return np.lib.stride_tricks.as_strided(array, shape, strides)
