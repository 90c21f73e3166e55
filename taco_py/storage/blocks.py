"""A dense array into any format: what is not zero is found, and what is stored taken, by blocks.

Below the last level that stores coordinates are dense ones, or none. Each position above them is
that of a block of the array (of one element where there are none), which is stored as a whole if an
element of it is not zero. So blocks alone have coordinates, and values are copied a block at a
time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from taco_py.formats import Format
from taco_py.storage.coordinates import unravel
from taco_py.storage.nonzero import are_nonzero
from taco_py.storage.pack import pack_levels
from taco_py.storage.sizes import index_type
from taco_py.storage.tensor_data import Array, LevelArrays, TensorData

Empty = Callable[[tuple[int, ...], DTypeLike], Array]


def pack_array(array: Array, format: Format, empty: Empty = np.empty) -> TensorData:
    """The tensor of an n-D array, in its own mode order and any strides; `format` not all dense.

    -0.0 is zero, nan is not. In a block that is stored each element stays as it is. Where all
    blocks are, and lie in the order of the levels, the values are the array's own memory.

    empty  makes the array of the values, as `numpy.empty` does

    Raises FormatError where the format cannot hold the pattern.

    >>> data = pack_array(np.array([[0, 0], [5, 0], [0, 6]]), Format.parse("sd"))
    >>> data.levels[0].crd, data.values
    (array([1, 2], dtype=int32), array([5, 0, 0, 6]))
    """
    depth = format.depth
    turned = array.transpose(format.mode_order)
    outer, inner = turned.shape[:depth], turned.shape[depth:]
    blocks = np.ascontiguousarray(turned.reshape(prod(outer), prod(inner)))
    stored = np.flatnonzero(are_nonzero(blocks))
    values = blocks
    if len(stored) < len(blocks):
        values = empty((len(stored), blocks.shape[1]), blocks.dtype)
        blocks.take(stored, axis=0, out=values, mode="clip")  # for "raise" takes a buffer
    dtype = index_type(array.shape, len(stored), None)
    levels, _, _ = pack_levels(unravel(stored, outer), array.shape, format, dtype)
    levels += [LevelArrays()] * len(inner)
    return TensorData(
        format, array.shape, tuple(levels), values.reshape(-1), sorted=True, unique=True
    )
