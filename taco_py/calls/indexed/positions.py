"""The positions that subscripts mean, as arrays over their indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taco_py.calls.indexed.domains import Sizes
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import DimensionError, OperandTypeError
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.nodes import Access, Subscript
from taco_py.language.notation.printer import to_text


def positions(
    subscript: Subscript, indices: Sequence[str], sizes: Sizes, tensors: Mapping[str, TensorData]
) -> Array:
    """Return an array of 64-bit integers that broadcasts over `indices`, of size 1 where it has not
    one.

    2*i + p[j] over i, j   ->   shape (sizes["i"], sizes["j"])
    """
    total: Array = np.full((1,) * len(indices), subscript.constant, np.int64)
    for name, factor in subscript.indices:
        values = np.arange(sizes[name], dtype=np.int64)
        total = total + factor * align_to_indices(values, (name,), indices)
    for access, factor in subscript.gathered:
        gathered_positions = gathered(access, indices, sizes, tensors)
        total = total + (gathered_positions if factor == 1 else factor * gathered_positions)
    return total


def align_to_indices(array: Array, axis_names: Sequence[str], indices: Sequence[str]) -> Array:
    """Return an array with the axes `axis_names` as one with an axis for each of `indices`."""
    order = [axis_names.index(name) for name in indices if name in axis_names]
    missing = tuple(axis for axis, name in enumerate(indices) if name not in axis_names)
    return np.expand_dims(array.transpose(order), missing)


def gathered(
    access: Access, indices: Sequence[str], sizes: Sizes, tensors: Mapping[str, TensorData]
) -> Array:
    """Return the integers that an operand holds at its subscripts.

    Raises OperandTypeError unless it is a dense array of integers, DimensionError where what its
    own subscripts gather lies outside of it.
    """
    data = tensors[access.tensor]
    if data.dtype.kind not in "iu" or not data.format.is_dense:
        storage = data.dtype if data.format.is_dense else f"the format {data.format}"
        raise OperandTypeError(
            f"Expected a dense array of integers for {access.tensor}, found {storage}",
            access.span,
            "positions are integers, as np.argsort and .indices have them",
        )
    modes = access.modes
    grids = [positions(mode, indices, sizes, tensors) for mode in modes]
    for place, (mode, grid) in enumerate(zip(modes, grids, strict=True)):
        if mode.gathered:
            size = data.shape[place]
            check_inside(grid, size, access, place, tensors)
    if not grids:
        return data.values.astype(np.int64).reshape((1,) * len(indices))
    if data.dtype == np.uint64 and data.values.size and int(data.values.max()) >= 2**63:
        raise DimensionError(
            f"Expected positions of at most 63 bits in {access.tensor}, found "
            f"{int(data.values.max())}",
            access.span,
            "no operand has such a position",
        )
    plain = tuple(mode.index for mode in modes)
    if None not in plain and len({*plain}) == len(plain):
        ranges = tuple(slice(0, sizes[name]) for name in plain if name)
        return align_to_indices(
            data.values[ranges], [name for name in plain if name], indices
        ).astype(np.int64, copy=False)
    return data.values[tuple(grids)].astype(np.int64, copy=False)


def check_inside(
    grid: Array,
    size: int,
    access: Access,
    place: int,
    tensors: Mapping[str, TensorData],
    span: Span | None = None,
) -> None:
    """Raise DimensionError for the first position that is not from 0 to size - 1.

    The message names the operand that holds it, where in that, and its value.
    """
    if not grid.size or (int(grid.min()) >= 0 and int(grid.max()) < size):
        return
    wrong = np.argwhere((grid < 0) | (grid >= size))[0]
    position = int(grid[tuple(wrong)])
    raise DimensionError(
        f"Expected positions from 0 to {size - 1} in mode {place} of {access.tensor}, found "
        f"{_source(access.modes[place], tuple(access.indices), wrong, position, tensors)} in "
        f"{to_text(access)}",
        span or access.span,
        f'border="fill" reads 0 outside of {access.tensor}',
    )


def _source(
    mode: Subscript,
    indices: tuple[str, ...],
    wrong: Array,
    position: int,
    tensors: Mapping[str, TensorData],
) -> str:
    """Describe the element of the operand that a position comes from: `p[3] = 7`."""
    where = {name: int(at) for name, at in zip(indices, wrong, strict=False)}
    for access, _ in mode.gathered[:1]:
        plain = [subscript.index for subscript in access.modes]
        if all(name is not None and name in where for name in plain):
            at = tuple(where[name] for name in plain if name)
            value = tensors[access.tensor].values[at]
            element = f"{access.tensor}[{','.join(map(str, at))}] = {int(value)}"
            return element if int(value) == position else f"{position}, for {element},"
    return str(position)


def is_inside(grid: Array, size: int) -> Any:
    """Tell whether positions are from 0 to size - 1, as an array of booleans."""
    return (grid >= 0) & (grid < size)
