"""Dense arrays into any format: blocks with nonzeros are found, and their values copied.

Below the last level that stores coordinates are dense levels, or none. Each position above them is
a block of the array (one element where there are none), which is stored in full if one of its
elements is not zero. So only blocks have coordinates, and values are copied a block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from taco_py.data.storage.coordinates import unravel
from taco_py.data.storage.nonzero import are_nonzero
from taco_py.data.storage.pack import expand, pack_levels
from taco_py.data.storage.sizes import index_type
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.fill import Fill, differs
from taco_py.language.formats import Format

FEW = 4
"""The number of elements per entry up to which an array is searched first. [0.4 ns an element, 5 an
entry]"""
Empty = Callable[[tuple[int, ...], DTypeLike], Array]


def pack_array(array: Array, format: Format, fill: Fill = "") -> TensorData:
    """Return the tensor of an n-D array with any strides, in a `format` that is not all dense.

    Elements with the fill value, usually 0, are not stored; -0.0 is zero, nan is not
    (`fill.differs`). All elements of a stored block are stored. Where all blocks are stored, in the
    order of the levels, the values share the array's memory.

    Raises FormatError where the format cannot hold the pattern.

    >>> data = pack_array(np.array([[0, 0], [5, 0], [0, 6]]), Format.parse("sd"))
    >>> data.levels[0].crd, data.values
    (array([1, 2], dtype=int32), array([5, 0, 0, 6]))
    """
    blocks = _in_blocks(array, format)
    if not fill:
        return pack_blocks(array, format, np.flatnonzero(are_nonzero(blocks)))
    packed = pack_blocks(array, format, np.flatnonzero(differs(blocks, fill).any(axis=1)))
    return replace(packed, fill=fill)


def pack_blocks(array: Array, format: Format, stored: Array, empty: Empty = np.empty) -> TensorData:
    """Pack the blocks at the places `stored`, which ascend, as `pack_array` does.

    empty  allocates the array of the values, as `numpy.empty` does

    >>> pack_blocks(np.array([[0, 0], [5, 0], [0, 6]]), Format.parse("sd"), np.array([0, 2])).values
    array([0, 0, 0, 6])
    """
    values = blocks = _in_blocks(array, format)
    if len(stored) < len(blocks):
        values = empty((len(stored), blocks.shape[1]), blocks.dtype)
        blocks.take(stored, axis=0, out=values, mode="clip")  # "raise" would use a buffer
    sizes = format.stored(array.shape)
    dtype = index_type(array.shape, len(stored), None)
    levels, _, _ = pack_levels(unravel(stored, sizes[: format.depth]), array.shape, format, dtype)
    levels += [LevelArrays()] * (format.order - format.depth)
    return TensorData(
        format, array.shape, tuple(levels), values.reshape(-1), sorted=True, unique=True
    )


def blocks_with_entries(data: TensorData, modes: Sequence[int]) -> Array:
    """Return the sorted places of blocks with an entry; `modes` identify the block, outermost
    first.

    >>> diagonal = pack_array(np.diag([7.0, 0.0, 9.0]), Format.parse("ss"))
    >>> blocks_with_entries(diagonal, (1,)), blocks_with_entries(diagonal, (0, 1))
    (array([0, 2]), array([0, 8]))
    """
    levels = [data.format.mode_order.index(mode) for mode in modes]
    columns = dict(zip(sorted(levels), expand(data, levels), strict=True))
    has_entry = np.zeros(prod(data.shape[mode] for mode in modes), dtype=np.bool_)
    places: Array = np.zeros(1, dtype=np.intp)
    for level, mode in zip(levels, modes, strict=True):
        places = places * data.shape[mode] + columns[level]
    has_entry[places] = True
    return np.flatnonzero(has_entry)


def blocks_stored(array: Array, format: Format, data: TensorData, modes: Sequence[int]) -> Array:
    """Return `blocks_with_entries` of an array that is zero outside of them.

    Small arrays are searched instead of the entries; the result is used where no block is zero.
    """
    if array.size <= FEW * data.nnz:
        nonzero = np.flatnonzero(are_nonzero(_in_blocks(array, format)))
        if len(nonzero) == prod(array.shape[mode] for mode in format.mode_order[: format.depth]):
            return nonzero
    return blocks_with_entries(data, modes)


def _in_blocks(array: Array, format: Format) -> Array:
    """Return the array in the order of the levels, a row for each block."""
    sizes = format.stored(array.shape)
    turned = array.transpose(format.mode_order)
    rows = turned.reshape(prod(sizes[: format.depth]), prod(sizes[format.depth :]))
    return np.ascontiguousarray(rows)
