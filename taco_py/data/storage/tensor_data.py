"""Arrays of a stored tensor: pos and crd of each level, and the values.

This module has no compiler and no operators. Its objects borrow the user's arrays, which are never
written to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.fill import Fill, converted
from taco_py.language.formats import Format

Array = NDArray[Any]


def ordered(format: Format) -> Format:
    """Return the same format with every level ordered.

    Data have a flag for their order, so that formats that differ only in it have the same storage.
    """
    if all(level.ordered for level in format.levels):
        return format
    return Format(tuple(replace(level, ordered=True) for level in format.levels), format.mode_order)


@dataclass(frozen=True, slots=True)
class LevelArrays:
    """`pos` and `crd` of one level; None where it lacks them: dense has neither, singleton no
    pos."""

    pos: Array | None = None
    crd: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TensorData:
    """A tensor of `shape` stored in `format`.

    levels  one LevelArrays a level of the format
    values  one value a position of the last level; for an all-dense format the n-D array itself in
            the tensor's own mode order (any strides), otherwise a contiguous vector
    sorted, unique   known properties of the coordinates: True, False, or None for unknown.
            `sorted`: coordinates ascend below every parent (lexicographically for COO).
            `unique`: no coordinate tuple occurs twice.
    fill    the value of the elements that are not stored, as text (`language.fill`): "" for 0. For
            an all-dense format, the value that conversions to other formats leave out
    """

    format: Format
    shape: tuple[int, ...]
    levels: tuple[LevelArrays, ...]
    values: Array
    sorted: bool | None = None
    unique: bool | None = None
    fill: Fill = ""

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def nnz(self) -> int:
        """Return the number of stored values; of a pattern the number of coordinates."""
        crd = self.levels[-1].crd if self.levels else None
        if crd is not None and self.format.levels[-1].kind.last:
            return int(crd.size)
        return int(self.values.size)


def dense_data(array: Array, format: Format, fill: Fill = "") -> TensorData:
    """Return the TensorData of an n-D array with any strides, in an all-dense format."""
    levels = (LevelArrays(),) * format.order
    return TensorData(format, array.shape, levels, array, sorted=True, unique=True, fill=fill)


def with_index_dtype(data: TensorData, index_dtype: str) -> TensorData:
    """Return `data` with index arrays of another integer type, copied only if necessary.

    The caller ensures that they fit.
    """
    dtype = np.dtype(index_dtype)
    kinds = [level.kind for level in data.format.levels]
    sizes = data.format.stored(data.shape)
    levels = tuple(
        LevelArrays(crd=in_other_words(level.crd, dtype, size))
        if kind.bits and level.crd is not None
        else LevelArrays(
            None if level.pos is None else level.pos.astype(dtype, copy=False),
            None if level.crd is None else level.crd.astype(dtype, copy=False),
        )
        for kind, level, size in zip(kinds, data.levels, sizes, strict=True)
    )
    return replace(data, levels=levels)


def in_other_words(words: Array, dtype: np.dtype[Any], size: int) -> Array:
    """Return the bits of a bitmap level in words of another type; each parent has full words."""
    if words.dtype == dtype or not size:
        return words.astype(dtype, copy=False)
    row, target_row = row_of_bits(size, words.dtype), row_of_bits(size, dtype)
    marks = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(-1, row)[:, :size]
    filled = np.zeros((len(marks), target_row), np.uint8)
    filled[:, :size] = marks
    return np.packbits(filled.reshape(-1), bitorder="little").view(dtype)


def row_of_bits(size: int, dtype: np.dtype[Any]) -> int:
    """Return the number of bits of each parent of a bitmap level, rounded up to full words."""
    bits = 8 * dtype.itemsize
    return -(-size // bits) * bits


def on_host(data: TensorData) -> TensorData:
    """Return the tensor on the host for reading; constant arrays of a device are copied once."""
    return data if is_on_host(data) else mapped(data, np.asarray)


def fetched(data: TensorData) -> TensorData:
    """Return the tensor on the host; arrays copied from a device are not shared."""
    return data if is_on_host(data) else mapped(data, lambda array: array.to_host())


def is_on_host(data: TensorData) -> bool:
    """Tell whether no array of the tensor is in the memory of a device."""
    return all(isinstance(array, np.ndarray) for array in arrays_of(data))


def mapped(data: TensorData, change: Callable[[Any], Any]) -> TensorData:
    """Apply a function to each array of a tensor."""
    levels = tuple(
        LevelArrays(*(None if a is None else change(a) for a in (level.pos, level.crd)))
        for level in data.levels
    )
    return replace(data, levels=levels, values=change(data.values))


def arrays_of(data: TensorData) -> list[Array]:
    """Return all arrays of a stored tensor."""
    arrays = [data.values]
    for level in data.levels:
        arrays += [a for a in (level.pos, level.crd) if a is not None]
    return arrays


def converted_to(dtype: np.dtype[Any], data: TensorData) -> TensorData:
    """Return the tensor with its values in another dtype."""
    return with_values(data, data.values.astype(dtype, copy=False))


def with_values(data: TensorData, values: Array) -> TensorData:
    """Return the tensor with these values at the same positions, and its fill value in their
    dtype."""
    fill = converted(data.fill, data.dtype, values.dtype)
    return replace(data, values=values, fill=fill)


def stores_all(data: TensorData) -> TensorData:
    """Return a dense tensor without its fill value, which has no meaning for stored elements."""
    return replace(data, fill="") if data.fill and data.format.is_dense else data


def number_of(dtype: str, size: int) -> Array:
    """Return a size as a 0-d array of this type, wrapped or rounded to it."""
    return np.array(size).astype(dtype)


def row_major(data: TensorData) -> TensorData:
    """Return a dense tensor with row-major values, copied only if necessary."""
    return replace(data, values=np.asarray(data.values, order="C"))
