"""Parts of a tensor along one mode: a range, positions, repeated and moved coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.arrays.elements_at import subscript
from taco_py.arrays.elementwise import broadcast
from taco_py.arrays.shapes import (
    concatenate,
    expand_dims,
    like,
    of_dense,
    permute,
    place_of,
    reshape,
)
from taco_py.data.storage.pack import canonical, unpack
from taco_py.data.storage.room import room
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, FormatError


def part_of(T: Tensor, place: int, part: Any) -> Tensor:  # noqa: N803
    """Take a range or an array of positions of one mode."""
    found: Tensor = subscript(T, (*[slice(None)] * place, part))
    return found


def take(T: Tensor, indices: Any, axis: int | None = None) -> Any:  # noqa: N803
    """Take elements at positions along a mode, of all in row-major order without axis."""
    if axis is None:
        return subscript(reshape(T, -1), indices)
    return part_of(T, place_of(axis, T.ndim), indices)


def take_along_axis(T: Tensor, indices: Any, axis: int | None = -1) -> Any:  # noqa: N803
    """Take at each place the element at the position along a mode that `indices` has there."""
    if axis is None:
        return take_along_axis(reshape(T, -1), reshape(indices, -1), 0)
    place = place_of(axis, T.ndim)
    found = indices.to_numpy() if isinstance(indices, Tensor) else np.asarray(indices)
    if found.ndim != T.ndim:
        raise DimensionError(
            f"Expected positions of order {T.ndim} as the tensor has, found order {found.ndim}",
            hint="np.expand_dims adds modes of size 1",
        )
    sizes = [n for mode, n in enumerate(T.shape) if mode != place]
    rests = [n for mode, n in enumerate(found.shape) if mode != place]
    wanted = broadcast([tuple(sizes), tuple(rests)])
    if wanted != tuple(sizes):
        T = broadcast_to(T, (*wanted[:place], T.shape[place], *wanted[place:]))  # noqa: N806
    shape = (*wanted[:place], found.shape[place], *wanted[place:])
    grids: list[Any] = list(np.ogrid[tuple(slice(n) for n in shape)])
    grids[place] = np.broadcast_to(found, shape)
    return subscript(T, tuple(grids))


def flip(T: Tensor, axis: Any = None) -> Tensor:  # noqa: N803
    """Reverse the order along modes, all where axis is None."""
    axes = range(T.ndim) if axis is None else axis if isinstance(axis, Sequence) else [axis]
    places = {place_of(each, T.ndim) for each in axes}
    if not places:
        return T
    back = slice(None, None, -1)
    return as_tensor(
        subscript(T, tuple(back if m in places else slice(None) for m in range(T.ndim)))
    )


def as_tensor(found: Any) -> Tensor:
    """Return a Tensor, of a number one of order 0."""
    return found if isinstance(found, Tensor) else of_dense(np.asarray(found))


def roll(T: Tensor, shift: Any, axis: Any = None) -> Tensor:  # noqa: N803
    """Move elements along modes, those beyond the end to the beginning."""
    if axis is None:
        return reshape(roll(reshape(T, -1), shift, 0), T.shape)
    shifts, axes = (each if isinstance(each, Sequence) else [each] for each in (shift, axis))
    if len(shifts) != len(axes):
        shifts, axes = ([*each] * (len(axes) if len(each) == 1 else 1) for each in (shifts, axes))
    moves = [(int(n), place_of(a, T.ndim)) for n, a in zip(shifts, axes, strict=True)]
    if T.format.is_dense:
        return of_dense(np.roll(T.to_numpy(), *zip(*moves, strict=True)))
    columns, values = unpack(canonical(T.data))
    moved = list(columns)
    for step, place in moves:
        if size := T.shape[place]:
            moved[place] = (moved[place].astype(np.int64) + step % size) % size
    return like(T.data, moved, values, T.shape)


def repeat(T: Tensor, repeats: Any, axis: int | None = None) -> Tensor:  # noqa: N803
    """Repeat each element along a mode, so often as one number or one for each position says."""
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
    along = columns[place].astype(np.int64)
    if times.size == 1:
        often = int(times.reshape(-1)[0])
        starts, counts, whole = along * often, np.full(len(values), often), size * often
    else:
        ends = np.cumsum(times, dtype=np.int64)
        starts, counts = (ends - times)[along], times[along]
        whole = int(ends[-1]) if len(ends) else 0
    total = int(counts.sum())
    with room(f"{total} repeated entries", total * (values.itemsize + 8 * T.ndim)):
        entries = np.repeat(np.arange(len(values)), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        found = [column[entries] for column in columns]
        found[place] = starts[entries] + within
        shape = (*T.shape[:place], whole, *T.shape[place + 1 :])
        return like(T.data, found, values[entries], shape)


def tile(T: Tensor, repetitions: Any) -> Tensor:  # noqa: N803
    """Put copies of a tensor beside one another, so many along each mode."""
    given = repetitions if isinstance(repetitions, Sequence) else (repetitions,)
    order = max(T.ndim, len(given))
    times = (1,) * (order - len(given)) + tuple(given)
    found = expand_dims(T, tuple(range(order - T.ndim))) if order > T.ndim else T
    for place, often in enumerate(times):
        if often != 1:
            copies = [found] * often or [part_of(found, place, slice(0, 0))]
            found = concatenate(copies, place)
    return found


def broadcast_to(T: Tensor, shape: Any) -> Tensor:  # noqa: N803
    """Stretch modes of size 1 to a shape. Raises DimensionError where it does not fit."""
    wanted = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if broadcast([T.shape, wanted]) != wanted:
        raise DimensionError(
            f"Expected a shape that {T.shape} stretches to, found {wanted}",
            hint="sizes are equal or 1, compared from the last mode on",
        )
    if T.format.is_dense:
        return of_dense(np.array(np.broadcast_to(T.to_numpy(), wanted)))
    missing = len(wanted) - T.ndim
    found = expand_dims(T, tuple(range(missing))) if missing else T
    for place, (have, size) in enumerate(zip(found.shape, wanted, strict=True)):
        if have != size:
            found = repeat(found, size, place)
    return found


def broadcast_arrays(*tensors: Tensor) -> list[Tensor]:
    """Stretch tensors to one shape."""
    shape = broadcast([each.shape for each in tensors])
    return [broadcast_to(each, shape) for each in tensors]


def meshgrid(*vectors: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Make a tensor of each vector's elements along one mode of its own, the first two exchanged
    for indexing "xy"."""
    if indexing not in ("xy", "ij"):
        raise DimensionError(
            f'Expected the indexing "xy" or "ij", found {indexing!r}', hint='indexing="ij"'
        )
    order = len(vectors)
    flat = [reshape(each, [-1 if m == n else 1 for m in range(order)])
            for n, each in enumerate(vectors)]  # fmt: skip
    found = broadcast_arrays(*flat) if flat else []
    if indexing == "xy" and order > 1:
        return [permute(each, (1, 0, *range(2, order))) for each in found]
    return found


def triangle(T: Tensor, k: int, upper: bool) -> Tensor:  # noqa: N803
    """Keep the elements on and above the diagonal number k of each matrix, or on and below it.

    Raises DimensionError of vectors, FormatError where the fill value is not 0.
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
    kept = np.flatnonzero(beyond >= k if upper else beyond <= k)
    return like(T.data, [column[kept] for column in columns], values[kept], T.shape)


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
    kept = np.flatnonzero(cols - rows == offset)
    rest = [mode for mode in range(T.ndim) if mode not in places]
    along = (rows + min(offset, 0))[kept]
    m, n = (T.shape[place] for place in places)
    size = max(0, min(m + min(offset, 0), n - max(offset, 0)))
    found = [columns[mode][kept] for mode in rest] + [along]
    return like(T.data, found, values[kept], (*(T.shape[mode] for mode in rest), size))
