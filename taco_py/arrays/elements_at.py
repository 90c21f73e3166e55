"""Subscripts of Tensors, as NumPy's: integers, slices, None, Ellipsis, masks, arrays of integers.

    T[2:5]       a range of the outermost level          contiguous arrays (`outer_range`)
    T[:, ::2]    entries whose coordinates are in the range, renumbered
    T[[3, 1]]    each entry once for each position that asks for its coordinates

What is asked for and not stored has the fill value; results are sparse as the tensor is.
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
        whole = expand_dims(T, 0)
        return whole if key else subscript(whole, slice(0, 0))
    if type(key) is slice and shape and not data.format.is_dense:
        start, stop, step = key.indices(shape[0])
        if step == 1 and data.format.mode_order[0] == 0:
            found = outer_range(data, start, max(start, stop))
            if found is not None:
                return Tensor(found)
    parts = _parts(key, shape)
    if data.format.is_dense:
        if any(isinstance(each, np.ndarray) for each in parts):
            _stretched([each for each in parts if isinstance(each, int | np.ndarray)])
        values = data.values[tuple(parts)]
        if not np.ndim(values) and not any(isinstance(each, np.ndarray) for each in parts):
            return values[()]
        return Tensor(dense_data(values, Format.parse("d" * values.ndim), data.fill))
    return _taken(T.examined(), parts)


# ---------------------------------------------------------------- what is asked for


def _is_truth(key: Any) -> bool:
    """Tell whether a subscript is a mask of order 0, which adds a mode with all or nothing."""
    if isinstance(key, bool | np.bool_):
        return True
    return isinstance(key, Tensor | np.ndarray) and not key.shape and key.dtype == np.bool_


def _parts(key: Any, shape: Shape) -> list[Part]:
    """Return one integer, slice or array for each mode, None for new ones; positions from 0."""
    given = list(key) if isinstance(key, tuple) else [key]
    given = [part for each in given for part in _plain(each)]
    used = sum(each is not None and each is not Ellipsis for each in given)
    if used > len(shape) or sum(each is Ellipsis for each in given) > 1:
        raise PositionError(
            f"Expected at most {len(shape)} subscripts and one … of a tensor of shape {shape}, "
            f"found {used}",
            hint="one integer, slice or array stands for a mode; a mask for as many as it has",
        )
    whole = [slice(None)] * (len(shape) - used)
    if Ellipsis in [each for each in given if not isinstance(each, np.ndarray)]:
        at = next(n for n, each in enumerate(given) if each is Ellipsis)
        given[at : at + 1] = whole
    else:
        given += whole
    sizes = iter(shape)
    return [None if each is None else _bounded(each, next(sizes)) for each in given]


def _plain(part: Any) -> Iterator[Any]:
    """Yield a subscript as NumPy's kinds: a mask as one array for each of its modes."""
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


def _taken(data: TensorData, parts: Sequence[Part]) -> Any:
    """Return the elements that are asked for of a tensor that is not all dense."""
    if any(isinstance(part, np.ndarray) for part in parts):
        return _gathered(data, parts)
    data, parts = _narrowed(data, parts)
    if all(isinstance(part, slice) and part == slice(None) for part in parts):
        return Tensor(data)
    columns, values = unpack(data)
    kept, moved, shape = _windowed(columns, values, data.shape, parts)
    if not shape:
        number = as_number(data.fill, data.dtype)
        return kept.sum(dtype=kept.dtype) if len(kept) else number
    return like(data, moved, kept, shape)


def _narrowed(data: TensorData, parts: Sequence[Part]) -> tuple[TensorData, Sequence[Part]]:
    """Return only the range of the outermost level that is asked for, and what is asked for of
    it."""
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
    found = outer_range(data, start, stop)
    if found is None:
        return data, parts
    left: Part = 0 if isinstance(part, int) else slice(None)
    return found, [*parts[:place], left, *parts[place + 1 :]]


def _windowed(
    columns: Sequence[Array], values: Array, shape: Shape, parts: Sequence[Part]
) -> tuple[Array, list[Array], Shape]:
    """Return entries within integers and slices: values, coordinates and the shape of the
    result."""
    kept: Array | None = None
    found: list[Array | None] = []
    sizes: list[int] = []
    modes = iter(zip(columns, shape, strict=True))
    for part in parts:
        if part is None:
            found.append(None)
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
                found.append(column)
                continue
            moved = column.astype(np.int64) - span.start
            places = moved // span.step
            inside = (places >= 0) & (places < len(span)) & (moved == places * span.step)
            found.append(places)
        kept = inside if kept is None else kept & inside
    chosen = slice(None) if kept is None else np.flatnonzero(kept)
    values = values[chosen]
    none = np.zeros(len(values), np.int64)
    return values, [none if c is None else c[chosen] for c in found], tuple(sizes)


def _gathered(data: TensorData, parts: Sequence[Part]) -> Any:
    """Return elements at arrays of positions, beside slices; integers are positions then.

    As in NumPy their modes come where the arrays stand, first where something is between them.
    """
    exact = [place for place, part in enumerate(parts) if isinstance(part, int | np.ndarray)]
    arrays = _stretched([parts[place] for place in exact])
    count = arrays[0].size
    plain = [slice(None) if place in exact else part for place, part in enumerate(parts)]
    values, columns, shape = _windowed(*unpack(data), data.shape, plain)
    asked = [shape[place] for place in exact]
    if prod(asked) >= 2**63:
        raise DimensionError(
            f"Expected arrays of positions for modes of fewer than 2**63 elements, found {asked}",
            hint="take elements of one mode after another",
        )
    wanted = np.ravel_multi_index([each.reshape(-1) for each in arrays], asked) if count else None
    entries, positions = _joined(columns, values, exact, asked, wanted)
    found = arrays[0].shape
    new = list(np.unravel_index(positions, found)) if found else []
    rest = [place for place in range(len(parts)) if place not in exact]
    first = exact[0] if exact == list(range(exact[0], exact[-1] + 1)) else 0
    before = [place for place in rest if place < first]
    after = [place for place in rest if place >= first]
    taken = [[columns[place][entries] for place in places] for places in (before, after)]
    sizes = [tuple(shape[place] for place in places) for places in (before, after)]
    whole = sizes[0] + found + sizes[1]
    return like(data, [*taken[0], *new, *taken[1]], values[entries], whole)


def _joined(
    columns: Sequence[Array], values: Array, exact: Sequence[int], asked: Sequence[int], wanted: Any
) -> tuple[Array, Array]:
    """Return pairs of an entry and a position that asks for its coordinates."""
    if wanted is None or not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys = np.ravel_multi_index([columns[place] for place in exact], asked)
    order = np.argsort(wanted, kind="stable")
    sorted_keys = wanted[order]
    low = np.searchsorted(sorted_keys, keys, "left")
    counts = np.searchsorted(sorted_keys, keys, "right") - low
    entries = np.repeat(np.arange(len(keys)), counts)
    begins = np.cumsum(counts) - counts
    within = np.arange(len(entries)) - np.repeat(begins, counts)
    return entries, order[np.repeat(low, counts) + within]


def _stretched(parts: Sequence[Any]) -> list[Array]:
    """Return arrays of positions in one shape. Raises DimensionError."""
    try:
        return [np.asarray(each) for each in np.broadcast_arrays(*parts)]
    except ValueError:
        told = " and ".join(str(np.shape(each)) for each in parts)
        raise PositionError(
            f"Expected arrays of positions whose shapes stretch to each other, found {told}",
            hint="np.ix_ makes arrays that ask for each row with each column",
        ) from None
