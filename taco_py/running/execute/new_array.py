"""A new array for a dense result whose modes are not stored in their own order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from codegen.runtime.memory.free_memory import ShortageError
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array


def new_array(shape: tuple[int, ...], order: Sequence[int], dtype: str, covered: bool) -> Array:
    """Return zeros, or uninitialised elements if the kernel overwrites all, in the order of levels.

    Raises ShortageError where that is more than is free, or more than can be addressed.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    if size > np.iinfo(np.intp).max:
        raise ShortageError(size, KERNELS.pool.free())
    stored = tuple(shape[mode] for mode in order)
    make = KERNELS.pool.empty if covered else KERNELS.pool.zeros
    array: Array = make(stored, dtype)
    turned = tuple(order) != tuple(range(len(order)))
    return array.transpose(np.argsort(order)) if turned else array
