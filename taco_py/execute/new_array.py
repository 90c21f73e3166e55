"""A new array for a dense result whose modes are not stored in their own order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from taco_py.diagnostics.errors import IndexOverflowError
from taco_py.kernels import KERNELS
from taco_py.storage.tensor_data import Array


def new_array(shape: tuple[int, ...], order: Sequence[int], dtype: str, covered: bool) -> Array:
    """Zeros, or any values where the kernel overwrites all, laid out in the order of the levels.

    Raises IndexOverflowError or MemoryError.
    """
    if prod(shape) * np.dtype(dtype).itemsize > np.iinfo(np.intp).max:
        raise IndexOverflowError(
            f"Expected a dense result that can be addressed, found one of shape {shape}",
            hint="ask for a sparse result by format=",
        )
    stored = tuple(shape[mode] for mode in order)
    make = KERNELS.pool.empty if covered else KERNELS.pool.zeros
    array: Array = make(stored, dtype)
    turned = tuple(order) != tuple(range(len(order)))
    return array.transpose(np.argsort(order)) if turned else array
