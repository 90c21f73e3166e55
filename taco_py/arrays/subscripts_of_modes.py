"""Parts of a tensor along one mode: a range, positions, repeated and moved coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.arrays.elements_at import subscript
from taco_py.arrays.elementwise import broadcast
from taco_py.arrays.numpy_surface.axes import place_of
from taco_py.arrays.shapes import (
    expand_dims,
    like,
    of_dense,
    reshape,
)
from taco_py.data.storage.pack import canonical, unpack
from taco_py.data.storage.room import room
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, FormatError


def part_of(T: Tensor, place: int, part: Any) -> Tensor:  # noqa: N803
    """Take a range or an array of positions of one mode."""
    part_tensor: Tensor = subscript(T, (*[slice(None)] * place, part))
    return part_tensor


def take_along_axis(T: Tensor, indices: Any, axis: int | None = -1) -> Any:  # noqa: N803
    """Take at each place the element at the position along a mode that `indices` has there."""
    if axis is None:
        return take_along_axis(reshape(T, -1), reshape(indices, -1), 0)
    place = place_of(axis, T.ndim)
    positions = indices.to_numpy() if isinstance(indices, Tensor) else np.asarray(indices)
    if positions.ndim != T.ndim:
        raise DimensionError(
            f"Expected positions of order {T.ndim} as the tensor has, found order {positions.ndim}",
            hint="np.expand_dims adds modes of size 1",
        )
    sizes = [n for mode, n in enumerate(T.shape) if mode != place]
    rests = [n for mode, n in enumerate(positions.shape) if mode != place]
    stretched = broadcast([tuple(sizes), tuple(rests)])
    if stretched != tuple(sizes):
        T = broadcast_to(T, (*stretched[:place], T.shape[place], *stretched[place:]))  # noqa: N806
    shape = (*stretched[:place], positions.shape[place], *stretched[place:])
    grids: list[Any] = list(np.ogrid[tuple(slice(n) for n in shape)])
    grids[place] = np.broadcast_to(positions, shape)
    return subscript(T, tuple(grids))


def as_tensor(result: Any) -> Tensor:
    """Return a Tensor; a number becomes one of order 0."""
    return result if isinstance(result, Tensor) else of_dense(np.asarray(result))


def repeat(T: Tensor, repeats: Any, axis: int | None = None) -> Tensor:  # noqa: N803
    """Repeat each element along a mode, by one number or by one for each position."""
    if axis is None:
        return repeat(reshape(T, -1), repeats, 0)
    place = place_of(axis, T.ndim)
    times = repeats.to_numpy() if isinstance(repeats, Tensor) else np.asarray(repeats)
    size = T.shape[place]
    wrong = times.dtype.kind not in "iu" or times.ndim > 1 or (times < 0).any()
    wrong = wrong or (times > np.iinfo(np.int64).max).any()
    if wrong or (times.ndim and len(times) not in (1, size)):
        raise DimensionError(
            f"Expected a number of repetitions, or one for each of {size} positions, found "
            f"{repeats!r:.60}",
            hint="as in repeat(T, 2, axis=0)",
        )
    times = times.astype(np.int64)  # NumPy repeats by no unsigned numbers of 64 bits
    if T.format.is_dense:
        return of_dense(np.repeat(T.to_numpy(), times, place))
    columns, values = unpack(canonical(T.data))
    coordinates = columns[place].astype(np.int64)
    if times.size == 1:
        factor = int(times.reshape(-1)[0])
        starts, counts, new_size = coordinates * factor, np.full(len(values), factor), size * factor
    else:
        ends = np.cumsum(times, dtype=np.int64)
        starts, counts = (ends - times)[coordinates], times[coordinates]
        new_size = int(ends[-1]) if len(ends) else 0
    total = int(counts.sum())
    with room(f"{total} repeated entries", total * (values.itemsize + 8 * T.ndim)):
        entries = np.repeat(np.arange(len(values)), counts)
        offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        new_columns = [column[entries] for column in columns]
        new_columns[place] = starts[entries] + offsets
        shape = (*T.shape[:place], new_size, *T.shape[place + 1 :])
        return like(T.data, new_columns, values[entries], shape)


def broadcast_to(T: Tensor, shape: Any) -> Tensor:  # noqa: N803
    """Stretch modes of size 1 to a shape. Raises DimensionError where it does not fit."""
    new_shape = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if broadcast([T.shape, new_shape]) != new_shape:
        raise DimensionError(
            f"Expected a shape that {T.shape} stretches to, found {new_shape}",
            hint="sizes are equal or 1, compared from the last mode on",
        )
    if T.format.is_dense:
        return of_dense(np.array(np.broadcast_to(T.to_numpy(), new_shape)))
    missing = len(new_shape) - T.ndim
    stretched = expand_dims(T, tuple(range(missing))) if missing else T
    for place, (have, size) in enumerate(zip(stretched.shape, new_shape, strict=True)):
        if have != size:
            stretched = repeat(stretched, size, place)
    return stretched


def broadcast_arrays(*tensors: Tensor) -> list[Tensor]:
    """Stretch tensors to one shape."""
    shape = broadcast([tensor.shape for tensor in tensors])
    return [broadcast_to(tensor, shape) for tensor in tensors]


def triangle(T: Tensor, k: int, upper: bool) -> Tensor:  # noqa: N803
    """Keep the elements on and above the diagonal number k of each matrix, or on and below it.

    Raises DimensionError for vectors, FormatError where the fill value is not 0.
    """
    if T.ndim < 2:
        raise DimensionError(
            f"Expected a tensor of order 2 or more, found one of order {T.ndim}",
            hint="T[:, None] makes a matrix of a vector",
        )
    if T.format.is_dense:
        return of_dense((np.triu if upper else np.tril)(T.to_numpy(), k))
    if T.data.fill:
        raise FormatError(
            f"Expected zeros where nothing is stored, found the fill value {T.fill_value}",
            hint="call .to_dense() of it if the result fits into memory",
        )
    columns, values = unpack(canonical(T.data))
    beyond = columns[-1].astype(np.int64) - columns[-2]
    in_triangle = np.flatnonzero(beyond >= k if upper else beyond <= k)
    return like(T.data, [column[in_triangle] for column in columns], values[in_triangle], T.shape)


def diagonal(T: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:  # noqa: N803
    """Take the diagonal of two modes as the last mode of the result."""
    places = [place_of(axis, T.ndim) for axis in (axis1, axis2)]
    if places[0] == places[1]:
        raise DimensionError(
            f"Expected two modes of a diagonal, found {axis1} and {axis2}", hint="axis1=0, axis2=1"
        )
    offset = int(offset)
    if T.format.is_dense:
        return of_dense(np.array(np.diagonal(T.to_numpy(), offset, *places)))
    columns, values = unpack(canonical(T.data))
    rows, cols = (columns[place].astype(np.int64) for place in places)
    on_diagonal = np.flatnonzero(cols - rows == offset)
    rest = [mode for mode in range(T.ndim) if mode not in places]
    coordinates = (rows + min(offset, 0))[on_diagonal]
    m, n = (T.shape[place] for place in places)
    size = max(0, min(m + min(offset, 0), n - max(offset, 0)))
    new_columns = [columns[mode][on_diagonal] for mode in rest] + [coordinates]
    return like(T.data, new_columns, values[on_diagonal], (*(T.shape[mode] for mode in rest), size))
