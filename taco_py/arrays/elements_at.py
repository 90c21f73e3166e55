"""Subscripts of Tensors, as NumPy's: integers, slices, None, Ellipsis, masks, arrays of integers.

    T[2:5]       a range of the outermost level          contiguous arrays (`outer_range`)
    T[:, ::2]    entries whose coordinates are in the range, renumbered
    T[[3, 1]]    each entry once for each position that selects it

Selected elements that are not stored have the fill value; a sparse tensor has sparse results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arrays.outer_range import outer_part, outer_range
from taco_py.arrays.shapes import expand_dims, like
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.pack import canonical, to_dense, unpack
from taco_py.data.storage.tensor_data import Array, TensorData, dense_data
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, PositionError
from taco_py.language.fill import as_number
from taco_py.language.formats import Format

Part = int | slice | None | Array
Shape = tuple[int, ...]


def subscript(T: Tensor, key: Any) -> Any:  # noqa: N803
    """Take elements of a Tensor. Returns a Tensor, or a number where no mode is left.

    Raises PositionError for more subscripts than modes, masks of another shape and positions
    outside, DimensionError for arrays that do not stretch to each other, OperandTypeError for other
    subscripts.
    """
    data, shape = T.data, T.data.shape
    if _is_truth(key):
        one_part = expand_dims(T, 0)
        return one_part if key else subscript(one_part, slice(0, 0))
    if type(key) is slice and shape and not data.format.is_dense:
        start, stop, step = key.indices(shape[0])
        if step == 1 and data.format.mode_order[0] == 0:
            range_data = outer_range(data, start, max(start, stop))
            if range_data is not None:
                return Tensor(range_data)
    parts = _parts(key, shape)
    if data.format.is_dense:
        if any(isinstance(part, np.ndarray) for part in parts):
            _stretched([part for part in parts if isinstance(part, int | np.ndarray)])
        values = data.values[tuple(parts)]
        if not np.ndim(values) and not any(isinstance(part, np.ndarray) for part in parts):
            return values[()]
        return Tensor(dense_data(values, Format.parse("d" * values.ndim), data.fill))
    return _select(T.examined(), parts)


# ---------------------------------------------------------------- kinds of subscripts


def _is_truth(key: Any) -> bool:
    """Tell whether a subscript is a mask of order 0, which adds a mode."""
    if isinstance(key, bool | np.bool_):
        return True
    return isinstance(key, Tensor | np.ndarray) and not key.shape and key.dtype == np.bool_


def _parts(key: Any, shape: Shape) -> list[Part]:
    """Return one integer, slice or array for each mode, None for new ones; positions from 0."""
    subscripts = list(key) if isinstance(key, tuple) else [key]
    subscripts = [part for item in subscripts for part in _plain(item)]
    used = sum(part is not None and part is not Ellipsis for part in subscripts)
    if used > len(shape) or sum(part is Ellipsis for part in subscripts) > 1:
        raise PositionError(
            f"Expected at most {len(shape)} subscripts and one … of a tensor of shape {shape}, "
            f"found {used}",
            hint="one integer, slice or array stands for a mode; a mask for as many as it has",
        )
    full_slices = [slice(None)] * (len(shape) - used)
    if Ellipsis in [part for part in subscripts if not isinstance(part, np.ndarray)]:
        at = next(n for n, part in enumerate(subscripts) if part is Ellipsis)
        subscripts[at : at + 1] = full_slices
    else:
        subscripts += full_slices
    sizes = iter(shape)
    return [None if part is None else _bounded(part, next(sizes)) for part in subscripts]


def _plain(part: Any) -> Iterator[Any]:
    """Yield a subscript as one of NumPy's kinds; a mask as one array for each of its modes."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        yield part
    elif isinstance(part, int | np.integer) and not isinstance(part, bool):
        yield int(part)
    elif isinstance(part, Tensor):
        yield from _of_tensor(part)
    elif is_scipy_sparse(part):
        yield from _of_tensor(Tensor.from_scipy(part))
    else:
        array = np.asarray(part)
        if array.size == 0 and not isinstance(part, np.ndarray):
            array = array.astype(np.int64)
        if array.dtype.kind == "b" and array.ndim:
            yield from _of_mask(np.nonzero(array), array.shape)
        elif array.dtype.kind in "iu":
            yield array if array.ndim else int(array)
        else:
            raise PositionError(
                f"Expected integers, slices, None, …, masks or arrays of integers as subscripts, "
                f"found {part!r:.60}",
                hint="as in T[2:5, [0, 3]] or T[T > 0]",
            )


@dataclass(frozen=True, slots=True, eq=False)
class _OfMask:
    """The coordinates along one mode where a mask is true, and the size of that mode."""

    places: Array
    size: int


def _of_mask(places: Sequence[Array], shape: Shape) -> Iterator[_OfMask]:
    """Yield one array for each mode of a mask."""
    for column, size in zip(places, shape, strict=True):
        yield _OfMask(column, size)


def _of_tensor(part: Tensor) -> Iterator[Any]:
    if part.dtype.kind != "b":
        yield to_dense(part.data)
        return
    data = canonical(part.data)
    if data.format.is_dense or data.fill:
        yield from _of_mask(np.nonzero(to_dense(data)), data.shape)
        return
    columns, values = unpack(data)
    columns = tuple(column[values] for column in columns)
    order = np.lexsort(columns[::-1])
    yield from _of_mask([column[order].astype(np.int64) for column in columns], data.shape)


def _bounded(part: int | slice | Array | _OfMask, size: int) -> Part:
    """Return a subscript of a mode of this size, counted from 0. Raises PositionError."""
    if isinstance(part, slice):
        return part
    if isinstance(part, _OfMask):
        if part.size != size:
            raise PositionError(
                f"Expected a mask whose modes have the sizes of the tensor's, found {part.size} "
                f"for {size}",
                hint="a mask stands for as many modes as it has",
            )
        return part.places
    if isinstance(part, int):
        low = high = part
    else:
        low, high = (int(part.min()), int(part.max())) if part.size else (0, -1)
    if low < -size or high >= size:
        raise PositionError(
            f"Expected positions from {-size} to {size - 1} of a mode of size {size}, found "
            f"{low if low < -size else high}",
            hint="a negative one counts from the end",
        )
    if isinstance(part, int):
        return part % size
    places = part.astype(np.int64)  # a narrow type has not all sums with sizes
    return np.where(places < 0, places + size, places)


# ---------------------------------------------------------------- of sparse tensors


def _select(data: TensorData, parts: Sequence[Part]) -> Any:
    """Return the selected elements of a tensor with sparse levels."""
    if any(isinstance(part, np.ndarray) for part in parts):
        return _gathered(data, parts)
    data, parts = _narrowed(data, parts)
    if all(isinstance(part, slice) and part == slice(None) for part in parts):
        return Tensor(data)
    columns, values = unpack(data)
    selected, coordinates, shape = _windowed(columns, values, data.shape, parts)
    if not shape:
        number = as_number(data.fill, data.dtype)
        return selected.sum(dtype=selected.dtype) if len(selected) else number
    return like(data, coordinates, selected, shape)


def _narrowed(data: TensorData, parts: Sequence[Part]) -> tuple[TensorData, Sequence[Part]]:
    """Select a range of the outermost level; return it with the parts that remain to be taken."""
    mode = data.format.mode_order[0]
    places = [place for place, part in enumerate(parts) if part is not None]
    place = places[mode]
    part = parts[place]
    if isinstance(part, int):
        start, stop = part, part + 1
        one = outer_part(data, part)
        if one is not None:
            return one, [*parts[:place], *parts[place + 1 :]]
    elif isinstance(part, slice) and part.indices(data.shape[mode])[2] == 1:
        start, stop, _ = part.indices(data.shape[mode])
        stop = max(start, stop)
    else:
        return data, parts
    range_data = outer_range(data, start, stop)
    if range_data is None:
        return data, parts
    left: Part = 0 if isinstance(part, int) else slice(None)
    return range_data, [*parts[:place], left, *parts[place + 1 :]]


def _windowed(
    columns: Sequence[Array], values: Array, shape: Shape, parts: Sequence[Part]
) -> tuple[Array, list[Array], Shape]:
    """Return values, coordinates and shape of the entries that integers and slices select."""
    mask: Array | None = None
    coordinates: list[Array | None] = []
    sizes: list[int] = []
    modes = iter(zip(columns, shape, strict=True))
    for part in parts:
        if part is None:
            coordinates.append(None)
            sizes.append(1)
            continue
        column, size = next(modes)
        if isinstance(part, int):
            inside = column == part
        else:
            assert isinstance(part, slice)
            span = range(*part.indices(size))
            sizes.append(len(span))
            if span == range(size):
                coordinates.append(column)
                continue
            offsets = column.astype(np.int64) - span.start
            places = offsets // span.step
            inside = (places >= 0) & (places < len(span)) & (offsets == places * span.step)
            coordinates.append(places)
        mask = inside if mask is None else mask & inside
    selection = slice(None) if mask is None else np.flatnonzero(mask)
    values = values[selection]
    none = np.zeros(len(values), np.int64)
    return values, [none if c is None else c[selection] for c in coordinates], tuple(sizes)


def _gathered(data: TensorData, parts: Sequence[Part]) -> Any:
    """Return elements at arrays of positions beside slices; integers count as positions here.

    As in NumPy, their modes replace adjacent arrays, and come first where arrays are not adjacent.
    """
    exact = [place for place, part in enumerate(parts) if isinstance(part, int | np.ndarray)]
    arrays = _stretched([parts[place] for place in exact])
    count = arrays[0].size
    plain = [slice(None) if place in exact else part for place, part in enumerate(parts)]
    values, columns, shape = _windowed(*unpack(data), data.shape, plain)
    exact_sizes = [shape[place] for place in exact]
    if prod(exact_sizes) >= 2**63:
        raise DimensionError(
            f"Expected arrays of positions for modes of fewer than 2**63 elements, "
            f"found {exact_sizes}",
            hint="take elements of one mode after another",
        )
    flat = [array.reshape(-1) for array in arrays]
    targets = np.ravel_multi_index(flat, exact_sizes) if count else None
    entries, positions = _match_entries(columns, values, exact, exact_sizes, targets)
    shape_of_arrays = arrays[0].shape
    new = list(np.unravel_index(positions, shape_of_arrays)) if shape_of_arrays else []
    rest = [place for place in range(len(parts)) if place not in exact]
    first = exact[0] if exact == list(range(exact[0], exact[-1] + 1)) else 0
    before = [place for place in rest if place < first]
    after = [place for place in rest if place >= first]
    kept_columns = [[columns[place][entries] for place in places] for places in (before, after)]
    sizes = [tuple(shape[place] for place in places) for places in (before, after)]
    result_shape = sizes[0] + shape_of_arrays + sizes[1]
    return like(data, [*kept_columns[0], *new, *kept_columns[1]], values[entries], result_shape)


def _match_entries(
    columns: Sequence[Array],
    values: Array,
    exact: Sequence[int],
    sizes: Sequence[int],
    targets: Any,
) -> tuple[Array, Array]:
    """Return pairs of an entry and a position that selects its coordinates."""
    if targets is None or not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys = np.ravel_multi_index([columns[place] for place in exact], sizes)
    order = np.argsort(targets, kind="stable")
    sorted_keys = targets[order]
    low = np.searchsorted(sorted_keys, keys, "left")
    counts = np.searchsorted(sorted_keys, keys, "right") - low
    entries = np.repeat(np.arange(len(keys)), counts)
    begins = np.cumsum(counts) - counts
    offsets = np.arange(len(entries)) - np.repeat(begins, counts)
    return entries, order[np.repeat(low, counts) + offsets]


def _stretched(parts: Sequence[Any]) -> list[Array]:
    """Stretch arrays of positions to one shape. Raises PositionError."""
    try:
        return [np.asarray(array) for array in np.broadcast_arrays(*parts)]
    except ValueError:
        shapes = " and ".join(str(np.shape(part)) for part in parts)
        raise PositionError(
            f"Expected arrays of positions whose shapes stretch to each other, found {shapes}",
            hint="np.ix_ makes arrays that ask for each row with each column",
        ) from None
