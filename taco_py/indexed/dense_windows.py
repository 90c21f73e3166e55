"""Dense operands with subscripts, as arrays over indices: views where strides can say it.

x[i+k]       a view with the strides (s, s)
A[2*i,j+1]   a view of each second row, without the first column
A[p[i],j]    a copy of the rows that p names
x[i-1]       with border="fill" a view of a copy of x with zeros around
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from taco_py.diagnostics.errors import InternalError
from taco_py.indexed.domains import Sizes, bounds
from taco_py.indexed.positions import along, check_inside, is_inside, positions
from taco_py.notation.nodes import Access, Subscript
from taco_py.storage.room import room
from taco_py.storage.tensor_data import Array, TensorData

Tensors = Mapping[str, TensorData]


def dense_window(
    access: Access, array: Array, sizes: Sizes, tensors: Tensors, fills: bool
) -> tuple[Array, str]:
    """The elements of `array` at the subscripts of an access, an axis for each index of it, and
    how they were got, in words.

    fills  whether 0 is read outside of the array; where not, affine subscripts are known to stay
           inside, and what is gathered is checked

    Raises DimensionError for a position outside, OutOfMemoryError.
    """
    modes, shape = access.modes, tuple(sizes[index] for index in access.indices)
    if 0 in shape:
        return np.zeros(shape, array.dtype), "empty"
    if any(mode.gathered for mode in modes):
        return _taken(access, array, sizes, tensors, fills)
    if _stays_inside(modes, array.shape, sizes):
        return strided(array, modes, access.indices, sizes), "a view"
    if not fills:
        raise InternalError(f"Expected {access} inside of {array.shape}, found it outside")
    pads = _pads(modes, array.shape, sizes)
    padded = prod(n + before + after for n, (before, after) in zip(array.shape, pads, strict=True))
    if padded > max(array.size, prod(shape)):
        return _filled(access, array, sizes, tensors), f"a copy of {prod(shape)} elements"
    with room(f"{access.tensor} with zeros around it", padded * array.itemsize):
        around = np.pad(array, pads)
    moved = tuple(
        Subscript(mode.indices, (), mode.constant + before)
        for mode, (before, _) in zip(modes, pads, strict=True)
    )
    how = f"a view of a copy of {padded} elements, zeros outside of {access.tensor}"
    return strided(around, moved, access.indices, sizes), how


def strided(
    array: Array, modes: Sequence[Subscript], indices: Sequence[str], sizes: Sizes
) -> Array:
    """A view over `indices` of an array at affine subscripts, which stay inside of it."""
    steps = dict.fromkeys(indices, 0)
    for mode, stride in zip(modes, array.strides, strict=True):
        for name, factor in mode.indices:
            steps[name] += factor * stride
    first = array[tuple(slice(mode.constant, mode.constant + 1) for mode in modes)]
    shape = tuple(sizes[name] for name in indices)
    return as_strided(first, shape, tuple(steps.values()), writeable=False)


def _stays_inside(modes: Sequence[Subscript], shape: Sequence[int], sizes: Sizes) -> bool:
    for mode, size in zip(modes, shape, strict=True):
        low, high = bounds(mode, sizes)
        if low < 0 or high >= size:
            return False
    return True


def _pads(modes: Sequence[Subscript], shape: Sequence[int], sizes: Sizes) -> list[tuple[int, int]]:
    """How many zeros each mode needs before and behind it."""
    ends = [bounds(mode, sizes) for mode in modes]
    return [
        (max(0, -low), max(0, high - size + 1))
        for (low, high), size in zip(ends, shape, strict=True)
    ]


def _filled(access: Access, array: Array, sizes: Sizes, tensors: Tensors) -> Array:
    """The elements by a position for each mode of each, 0 outside."""
    grids = [positions(mode, access.indices, sizes, tensors) for mode in access.modes]
    shape = tuple(sizes[index] for index in access.indices)
    inside = np.broadcast_to(np.True_, shape)
    for grid, size in zip(grids, array.shape, strict=True):
        inside = inside & is_inside(grid, size)
    if 0 in array.shape:
        return np.zeros(shape, array.dtype)
    with room(f"what is gathered from {access.tensor}", prod(shape) * array.itemsize):
        clipped = (grid.clip(0, size - 1) for grid, size in zip(grids, array.shape, strict=True))
        found = array[tuple(clipped)]
        return np.asarray(np.where(inside, found, array.dtype.type(0)))


def _taken(
    access: Access, array: Array, sizes: Sizes, tensors: Tensors, fills: bool
) -> tuple[Array, str]:
    """The elements at positions that operands hold."""
    modes, shape = access.modes, tuple(sizes[index] for index in access.indices)
    how = f"a copy of {prod(shape)} elements, gathered"
    if fills:
        return _filled(access, array, sizes, tensors), f"{how}, 0 outside of {access.tensor}"
    places = [place for place, mode in enumerate(modes) if mode.gathered]
    grids = {p: positions(modes[p], access.indices, sizes, tensors) for p in places}
    for place, grid in grids.items():
        check_inside(grid, array.shape[place], access, place, tensors)
    (first, *others) = places
    inner = modes[first].names
    rest = [mode for place, mode in enumerate(modes) if place != first]
    with room(f"what is gathered from {access.tensor}", prod(shape) * array.itemsize):
        if others or any(name in inner for mode in rest for name in mode.names):
            every = (positions(mode, access.indices, sizes, tensors) for mode in modes)
            return np.broadcast_to(array[tuple(every)], shape), how
        left = [name for name in access.indices if name not in inner]
        lines = np.moveaxis(array, first, 0)
        whole = strided(
            lines, (Subscript((("", 1),)), *rest), ("", *left), {**sizes, "": len(lines)}
        )
        kept = [axis for axis, name in enumerate(access.indices) if name in inner]
        flat = grids[first].reshape([shape[axis] for axis in kept])
        own = [access.indices[axis] for axis in kept] + left
        return along(whole.take(flat, axis=0), own, access.indices), how
