"""Other shapes and orders of modes: computed on coordinates, without a kernel.

reshape          coordinates → places in row-major order → coordinates of the new shape
transpose        the format's order of modes changes, arrays are shared
expand, squeeze  coordinates of modes of size 1 are added or removed
concatenate      coordinates are offset by the sizes of earlier tensors
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import listed_axes, places_of
from taco_py.data.storage.coordinates import unravel
from taco_py.data.storage.pack import pack_coo, unpack
from taco_py.data.storage.tensor_data import Array, TensorData, dense_data, ordered
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.diagnostics.errors import (
    DimensionError,
    FormatError,
    OperandError,
)
from taco_py.language.fill import as_number, converted
from taco_py.language.formats import CSF, LETTERS, Format

Shape = tuple[int, ...]
VAST = 2**16
"""Number of positions of dense levels that is never too large."""


def like(data: TensorData, columns: Sequence[Array], values: Array, shape: Shape) -> Tensor:
    """Store entries in a format like that of `data`.

    The format is the same where the order is and dense levels are outermost, else compressed
    fibres. A pattern's entries get stored values.
    """
    if not shape:
        number = values.sum(dtype=values.dtype) if len(values) else as_number(data.fill, data.dtype)
        return Tensor(dense_data(np.asarray(number, data.dtype), Format.parse("")))
    form = ordered(data.format)
    other = form.order != len(shape) or form.is_dense
    if form.order and form.levels[-1].kind.shared:
        form = Format((*form.levels[:-1], LETTERS["s"]), form.mode_order)
    if other or _holds_one(form) or _is_vast(form, shape, len(values)):
        form = CSF(len(shape))
    return Tensor(pack_coo(columns, values, shape, form, fill=data.fill))


def of_dense(array: Array) -> Tensor:
    """Make a Tensor around a dense array."""
    return Tensor(dense_data(array, _dense(array.ndim)))


def zeros_in(shape: Shape, dtype: Any, format: Format) -> TensorData:
    """Make a tensor of zeros in a format, with nothing stored where it has sparse levels."""
    none = [np.zeros(0, np.int64)] * len(shape)
    return pack_coo(none, np.zeros(0, dtype), shape, format)


def _holds_one(format: Format) -> bool:
    """Tell whether a level can hold only one coordinate below each of another level."""
    pairs = zip(format.levels, format.levels[1:], strict=False)
    return any(below.branchless and level.unique for level, below in pairs)


def _is_vast(format: Format, shape: Shape, count: int) -> bool:
    """Tell whether dense levels would have many more positions than there are entries."""
    sizes = [
        shape[m] for m, level in zip(format.mode_order, format.levels, strict=True) if level.full
    ]
    return bool(sizes) and prod(sizes) > max(VAST, 16 * count)


def reshape(T: Tensor, shape: Any, *more: int) -> Tensor:  # noqa: N803
    """Give the elements another shape, in row-major order; one size may be -1.

    Raises DimensionError where the numbers of elements differ.
    """
    new_shape = _sizes((shape, *more) if more else shape, T.shape)
    data = T.data
    if data.format.is_dense:
        dense = Format.parse("d" * len(new_shape))
        return Tensor(dense_data(data.values.reshape(new_shape), dense, data.fill))
    columns, values = unpack(data)
    return like(data, _renumbered(columns, data.shape, new_shape), values, new_shape)


def _renumbered(columns: Sequence[Array], shape: Shape, new_shape: Shape) -> Sequence[Array]:
    """Return the coordinates of the same places in another shape with as many elements."""
    if prod(shape) >= 2**63:
        raise DimensionError(
            f"Expected fewer than 2**63 elements to reshape, found a tensor of shape {shape}",
            hint="renumber the coordinates of .to_coo() yourself",
        )
    places = np.zeros(len(columns[0]), np.int64) if columns else np.zeros(1, np.int64)
    for column, size in zip(columns, shape, strict=True):
        places *= size
        places += column
    return unravel(places, new_shape) if new_shape else []


def _sizes(shape: Any, old: Shape) -> Shape:
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if any(not isinstance(size, int | np.integer) or size < -1 for size in sizes):
        raise DimensionError(f"Expected sizes as a shape, found {shape!r}", hint="as in (2, -1)")
    count, known_count = prod(old), prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known_count:
        sizes = tuple(count // known_count if size == -1 else int(size) for size in sizes)
    if prod(sizes) != count or -1 in sizes:
        raise DimensionError(
            f"Expected a shape of {count} elements, as {old} has, found {shape}",
            hint="write -1 for the one size that follows from the others",
        )
    return tuple(map(int, sizes))


def permute(T: Tensor, axes: Sequence[int] | None = None) -> Tensor:  # noqa: N803
    """Reorder the modes; reversed where `axes` is None. Arrays are shared.

    Raises DimensionError where `axes` does not name each mode once.
    """
    order = len(T.shape)
    permutation = tuple(range(order))[::-1] if axes is None else tuple(axes)
    places = tuple(axis + order if axis < 0 else axis for axis in permutation)
    if sorted(places) != list(range(order)):
        raise DimensionError(
            f"Expected each of {order} modes once as axes, found {permutation}",
            hint=f"as in {tuple(range(order))[::-1]}",
        )
    data = T.data
    shape = tuple(data.shape[axis] for axis in places)
    if data.format.is_dense:
        return Tensor(dense_data(data.values.transpose(places), _dense(order), data.fill))
    new = Format(data.format.levels, tuple(places.index(mode) for mode in data.format.mode_order))
    return Tensor(replace(data, format=new, shape=shape))


def _dense(order: int) -> Format:
    return Format.parse("d" * order)


def expand_dims(T: Any, axis: Any) -> Tensor:  # noqa: N803
    """Add modes of size 1 at these places of the result; a number is a tensor of order 0."""
    data = as_data(T)
    axes = listed_axes(axis)
    order = len(data.shape) + len(axes)
    places = places_of(axes, order)
    sizes = iter(data.shape)
    shape = tuple(1 if place in places else next(sizes) for place in range(order))
    return _with_ones(data, shape, [p for p in range(order) if p not in places])


def squeeze(T: Tensor, axis: Any = None) -> Tensor:  # noqa: N803
    """Leave out modes of size 1: all, or those in `axis`. Raises DimensionError for others."""
    order = len(T.shape)
    ones = [mode for mode, size in enumerate(T.shape) if size == 1]
    axes = ones if axis is None else places_of(axis, order)
    if not {*axes} <= {*ones}:
        raise DimensionError(
            f"Expected modes of size 1 to leave out, found axis={axis} of shape {T.shape}",
            hint=f"modes of size 1: {ones}",
        )
    kept_modes = [mode for mode in range(order) if mode not in axes]
    return _with_ones(T.data, tuple(T.shape[mode] for mode in kept_modes), kept_modes)


def _with_ones(data: TensorData, shape: Shape, places: Sequence[int]) -> Tensor:
    """Return the same elements with modes of size 1 added or left out.

    places  the places of the modes of `data` in the result, or the modes of `data` that it has
    """
    if data.format.is_dense:
        values = data.values.reshape(shape)
        return Tensor(dense_data(values, _dense(len(shape)), data.fill))
    columns, values = unpack(data)
    if len(shape) < len(data.shape):
        return like(data, [columns[place] for place in places], values, shape)
    column_at = dict(zip(places, columns, strict=True))
    none = np.zeros(len(values), np.int64)
    return like(data, [column_at.get(place, none) for place in range(len(shape))], values, shape)


# ---------------------------------------------------------------- several tensors


def concatenate(tensors: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Put tensors one behind another along a mode; as vectors where axis is None.

    Raises OperandError without tensors, DimensionError where other sizes differ, FormatError where
    fill values of sparse tensors differ.
    """
    parts = [part if isinstance(part, Tensor) else Tensor(as_data(part)) for part in tensors]
    if not parts:
        raise OperandError("Expected one or more tensors, found none", hint="as in [T, U]")
    if axis is None:
        return concatenate([reshape(part, (-1,)) for part in parts], 0)
    order = parts[0].ndim
    if order == 0:
        raise DimensionError(
            "Expected tensors of order 1 or more, found a scalar", hint="tp.stack takes scalars"
        )
    place = axis + order if axis < 0 else axis
    rests = {part.shape[:place] + part.shape[place + 1 :] for part in parts}
    if not 0 <= place < order or len(rests) != 1 or any(part.ndim != order for part in parts):
        raise DimensionError(
            f"Expected shapes that are equal but for mode {axis}, found "
            f"{', '.join(str(part.shape) for part in parts)}",
            hint="axis= names the mode along which they may differ",
        )
    dtype = np.result_type(*(part.dtype for part in parts))
    sparse = [part.data for part in parts if not part.format.is_dense]
    if not sparse:
        arrays = [part.to_numpy().astype(dtype, copy=False) for part in parts]
        return Tensor(dense_data(np.concatenate(arrays, place), _dense(order)))
    return _concatenate_entries([part.data for part in parts], sparse, place, dtype)


def _concatenate_entries(
    parts: Sequence[TensorData], sparse: Sequence[TensorData], place: int, dtype: np.dtype[Any]
) -> Tensor:
    """Return entries of several tensors, each behind the earlier ones along one mode."""
    fills = {converted(part.fill, part.dtype, dtype) for part in sparse}
    if len(fills) != 1:
        fill_values = ", ".join(str(as_number(part.fill, part.dtype)) for part in sparse)
        raise FormatError(
            f"Expected sparse tensors of one fill value, found {fill_values}",
            hint="tp.tensor(T.to_dense(), fill_value=…).to_format(…) stores another one",
        )
    (fill,) = fills
    start, columns, values = 0, [], []
    for part in parts:
        dense = part.format.is_dense
        coords, numbers = unpack(replace(part, fill=fill) if dense else part, drop_fill=dense)
        shifted = [c.astype(np.int64) + (start if m == place else 0) for m, c in enumerate(coords)]
        columns.append(shifted)
        values.append(numbers.astype(dtype, copy=False))
        start += part.shape[place]
    shape = (*parts[0].shape[:place], start, *parts[0].shape[place + 1 :])
    source = replace(sparse[0], fill=fill)
    all_columns = [np.concatenate(mode_columns) for mode_columns in zip(*columns, strict=True)]
    return like(source, all_columns, np.concatenate(values), shape)
