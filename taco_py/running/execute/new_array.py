"""A new array for a dense result whose modes are not stored in their own order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod

import numpy as np

from codegen.runtime.memory.free_memory import ShortageError
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array

MOST_BYTES = sys.maxsize
"""The most bytes that addresses reach."""


def new_array(shape: tuple[int, ...], order: Sequence[int], dtype: str, covered: bool) -> Array:
    """Return zeros, or uninitialised elements if the kernel overwrites all, in the order of levels.

    Raises ShortageError where that is more than is free, or more than can be addressed.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    if size > MOST_BYTES:
        raise ShortageError(size, KERNELS.pool.free())
    make = KERNELS.pool.empty if covered else KERNELS.pool.zeros
    if (*order,) == (*range(len(shape)),):
        array: Array = make(shape, dtype)
        return array
    stored = make(tuple(shape[mode] for mode in order), dtype)
    return stored.transpose(np.argsort(order))
