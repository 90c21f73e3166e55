"""Operands that are 1 where a mode of the result is what a subscript says.

    y[p[i]] += x[i]     P[r,i] is 1 where r = p[i]:   y[r] += sum(i, P[r,i] * x[i])

They are stored by the indices of the subscript, with one coordinate for each: the positions are the
array of coordinates, so that a kernel scatters through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from taco_py.calls.indexed.derived import Selection
from taco_py.calls.indexed.domains import Sizes
from taco_py.calls.indexed.positions import check_inside, is_inside, positions
from taco_py.data.interop.scipy_arrays import to_scipy
from taco_py.data.storage.one_entry_rows import form_of_rows, one_entry_rows
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.sizes import index_type
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, OperandError
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text


def selection(
    definition: Selection,
    target: Access,
    size: int,
    sizes: Sizes,
    tensors: Mapping[str, TensorData],
    fills: bool,
) -> TensorData:
    """Return the operand of a selection.

    size   of the mode of the result
    fills  whether positions outside of the result are left out

    Raises DimensionError for a position outside of the result.
    """
    names = definition.subscript.names
    coordinates = positions(definition.subscript, target.indices, sizes, tensors)
    extents = tuple(sizes[name] for name in names)
    if not fills and 0 not in extents:
        _check_written(coordinates, size, target, definition.mode, tensors)
    axes = [axis for axis, name in enumerate(target.indices) if name in names]
    axis_names = [target.indices[axis] for axis in axes]
    grid = coordinates.reshape([coordinates.shape[axis] for axis in axes])
    grid = np.broadcast_to(grid.transpose([axis_names.index(name) for name in names]), extents)
    flat = grid.reshape(-1)
    inside = is_inside(flat, size)
    count = prod(extents)
    if names and bool(inside.all()):
        crd = flat.astype(index_type((size, *extents), count, None), copy=False)
        return one_entry_rows(crd, (size, *extents), 0, bool)
    columns = [column.reshape(-1)[inside] for column in np.indices(extents)]
    ones = np.ones(count if names else 1, bool)[inside]
    form = form_of_rows(len(names) + 1, 0)
    return pack_coo([flat[inside], *columns], ones, (size, *extents), form)


def as_operand(data: TensorData, scipy: bool) -> Any:
    """Return a selection as a SciPy matrix where other operands are such, else as a Tensor."""
    return to_scipy(data, "csc_array") if scipy and data.format.order == 2 else Tensor(data)


def _check_written(
    grid: Array, size: int, target: Access, place: int, tensors: Mapping[str, TensorData]
) -> None:
    try:
        check_inside(grid, size, target, place, tensors)
    except DimensionError as error:
        hint = f'border="fill" leaves out what lies outside of {target.tensor}'
        raise DimensionError(error.message, error.span, hint) from None


def check_once(
    assignment: Assignment,
    shape: tuple[int, ...],
    sizes: Sizes,
    tensors: Mapping[str, TensorData],
    fills: bool,
) -> None:
    """Raise OperandError where `=` gives an element of the result two values."""
    target = assignment.target
    grids = [positions(mode, target.indices, sizes, tensors) for mode in target.modes]
    if 0 in shape or any(sizes[index] == 0 for index in target.indices):
        return
    extents = tuple(sizes[index] for index in target.indices)
    inside = np.broadcast_to(np.True_, extents)
    place: Array = np.zeros((1,) * len(extents), np.int64)
    for grid, size in zip(grids, shape, strict=True):
        inside = inside & is_inside(grid, size) if fills else inside
        place = place * size + grid
    flat = np.broadcast_to(place, extents)[inside]
    values, counts = np.unique(flat, return_counts=True)
    if (counts > 1).any():
        twice = np.unravel_index(int(values[np.argmax(counts > 1)]), shape)
        raise OperandError(
            f"Expected each element of {target.tensor} once on the left-hand side, found "
            f"{target.tensor}[{','.join(str(int(at)) for at in twice)}] {counts.max()} times in "
            f"{to_text(target)}",
            target.span,
            f"write {target.tensor}[…] += … to add up what meets there",
        )
