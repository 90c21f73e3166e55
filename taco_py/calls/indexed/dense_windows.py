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

from codegen.records import dataclass
from taco_py.calls.indexed.domains import Sizes, bounds
from taco_py.calls.indexed.positions import align_to_indices, check_inside, is_inside, positions
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.fill import as_number
from taco_py.language.notation.nodes import Access, Subscript

Tensors = Mapping[str, TensorData]


def dense_window(
    access: Access, data: TensorData, sizes: Sizes, tensors: Tensors, fills: bool
) -> tuple[Array, str]:
    """Return a copy of a dense tensor's elements at subscripts, and a description of it.

    The copy has an axis for each index of the access; no view has these elements.

    fills  whether the fill value is read outside; where not, affine subscripts are known to stay
           inside, and what is gathered is checked

    Raises DimensionError for a position outside, OutOfMemoryError.
    """
    modes, shape = access.modes, tuple(sizes[index] for index in access.indices)
    array, fill = data.values, as_number(data.fill, data.dtype)
    if 0 in shape:
        return np.zeros(shape, array.dtype), "empty"
    if any(mode.gathered for mode in modes):
        return _gather_elements(access, array, sizes, tensors, fill if fills else None)
    if not fills:
        raise InternalError(f"Expected {access} inside of {array.shape}, found it outside")
    pads = _pads(modes, array.shape, sizes)
    padded = prod(n + before + after for n, (before, after) in zip(array.shape, pads, strict=True))
    if padded > max(array.size, prod(shape)):
        return _filled(access, array, sizes, tensors, fill), f"a copy of {prod(shape)} elements"
    with room(f"{access.tensor} with {fill} around it", padded * array.itemsize):
        padded_array = np.pad(array, pads, constant_values=fill)
    shifted = tuple(
        Subscript(mode.indices, (), mode.constant + before)
        for mode, (before, _) in zip(modes, pads, strict=True)
    )
    description = f"a view of a copy of {padded} elements, {fill} outside of {access.tensor}"
    return view_of(shifted, access.indices, sizes).of(padded_array), description


@dataclass(frozen=True, slots=True)
class View:
    """A view of dense operands of one shape.

    corner  the element where all indices are 0
    shape   of the view
    steps   for each of its axes, the multiples of strides that a step takes
    """

    corner: tuple[slice, ...]
    shape: tuple[int, ...]
    steps: tuple[tuple[tuple[int, int], ...], ...]

    def of(self, array: Array) -> Array:
        """Return the view of one operand, which cannot be written to."""
        strides = array.strides
        steps = tuple(sum(factor * strides[mode] for mode, factor in axis) for axis in self.steps)
        return as_strided(array[self.corner], self.shape, steps, writeable=False)


def view_of(modes: Sequence[Subscript], indices: Sequence[str], sizes: Sizes) -> View:
    """Return the view over `indices` at affine subscripts that stay inside of the operand."""
    steps: dict[str, list[tuple[int, int]]] = {name: [] for name in indices}
    for place, mode in enumerate(modes):
        for name, factor in mode.indices:
            steps[name].append((place, factor))
    corner = tuple(slice(mode.constant, mode.constant + 1) for mode in modes)
    return View(corner, tuple(sizes[name] for name in indices), tuple(map(tuple, steps.values())))


def fixed_view(access: Access, shape: Sequence[int], sizes: Sizes) -> View | None:
    """Return the view that an access is of each operand of this shape, None where it is none."""
    modes = access.modes
    if any(mode.gathered for mode in modes) or any(sizes[i] == 0 for i in access.indices):
        return None
    inside = _stays_inside(modes, shape, sizes)
    return view_of(modes, access.indices, sizes) if inside else None


def _stays_inside(modes: Sequence[Subscript], shape: Sequence[int], sizes: Sizes) -> bool:
    for mode, size in zip(modes, shape, strict=True):
        low, high = bounds(mode, sizes)
        if low < 0 or high >= size:
            return False
    return True


def _pads(modes: Sequence[Subscript], shape: Sequence[int], sizes: Sizes) -> list[tuple[int, int]]:
    """Count how many zeros each mode needs before and behind it."""
    ends = [bounds(mode, sizes) for mode in modes]
    return [
        (max(0, -low), max(0, high - size + 1))
        for (low, high), size in zip(ends, shape, strict=True)
    ]


def _filled(
    access: Access, array: Array, sizes: Sizes, tensors: Tensors, fill: np.generic
) -> Array:
    """Return the elements by a position for each mode of each, the fill value outside."""
    grids = [positions(mode, access.indices, sizes, tensors) for mode in access.modes]
    shape = tuple(sizes[index] for index in access.indices)
    inside = np.broadcast_to(np.True_, shape)
    for grid, size in zip(grids, array.shape, strict=True):
        inside = inside & is_inside(grid, size)
    if 0 in array.shape:
        return np.full(shape, fill, array.dtype)
    clipped = (grid.clip(0, size - 1) for grid, size in zip(grids, array.shape, strict=True))
    return np.asarray(np.where(inside, array[tuple(clipped)], fill))


def _gather_elements(
    access: Access, array: Array, sizes: Sizes, tensors: Tensors, fill: np.generic | None
) -> tuple[Array, str]:
    """Return the elements at positions that operands hold.

    fill  what is read outside; None where that is an error
    """
    modes, shape = access.modes, tuple(sizes[index] for index in access.indices)
    description = f"a copy of {prod(shape)} elements, gathered"
    if fill is not None:
        with_border = f"{description}, {fill} outside of {access.tensor}"
        return _filled(access, array, sizes, tensors, fill), with_border
    places = [place for place, mode in enumerate(modes) if mode.gathered]
    grids = {p: positions(modes[p], access.indices, sizes, tensors) for p in places}
    for place, grid in grids.items():
        check_inside(grid, array.shape[place], access, place, tensors)
    (first, *further) = places
    inner = modes[first].names
    rest = [mode for place, mode in enumerate(modes) if place != first]
    if further or any(name in inner for mode in rest for name in mode.names):
        every = (positions(mode, access.indices, sizes, tensors) for mode in modes)
        return np.broadcast_to(array[tuple(every)], shape), description
    left = [name for name in access.indices if name not in inner]
    lines = np.moveaxis(array, first, 0)
    line, line_sizes = Subscript((("", 1),)), {**sizes, "": len(lines)}
    lines_view = view_of((line, *rest), ("", *left), line_sizes).of(lines)
    axes = [axis for axis, name in enumerate(access.indices) if name in inner]
    flat = grids[first].reshape([shape[axis] for axis in axes])
    order = [access.indices[axis] for axis in axes] + left
    return align_to_indices(lines_view.take(flat, axis=0), order, access.indices), description
