"""Sizes, counts and index types of a stored tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from taco_py.data.storage.borrow import as_dtype
from taco_py.data.storage.by_level.level_tree import counts_of
from taco_py.data.storage.room import free_bytes
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.storage.tensor_data import with_index_dtype as in_index_dtype
from taco_py.language.diagnostics.errors import AddressError, IndexOverflowError, OperandTypeError
from taco_py.language.diagnostics.memory_errors import bytes_text
from taco_py.language.formats import Format

INT32_MAX = 2**31 - 1
MAX_POSITIONS = 2**62


def chains(format: Format) -> Iterator[tuple[int, int]]:
    """Yield runs of levels that share positions.

    A run is one dense level, or a compressed level and the singletons below it.

    >>> list(chains(Format.parse("duq")))
    [(0, 1), (1, 3)]
    """
    start = 0
    while start < format.order:
        stop = start + 1
        while stop < format.order and format.levels[stop].chained:
            stop += 1
        yield start, stop
        start = stop


def level_sizes(shape: tuple[int, ...], format: Format) -> tuple[int, ...]:
    """Return the size of each level's mode."""
    return format.stored(shape)


def level_counts(data: TensorData) -> list[int]:
    """Return the number of positions above each level, and last the number of values."""
    return counts_of(data)


def position_count(sizes: Sequence[int]) -> int:
    """Return the product of sizes. Raises AddressError where no array can be that long."""
    count = prod(sizes)
    if count > MAX_POSITIONS:
        raise AddressError(
            "Expected fewer than 2^62 positions in dense levels, found "
            f"{' * '.join(map(str, sizes))}, {bytes_text(count)} for a byte each",
            hint='store these modes compressed ("s")',
            wanted=count,
            free=free_bytes(),
        )
    return count


def index_type(shape: tuple[int, ...], nnz: int, requested: DTypeLike | None) -> np.dtype[Any]:
    """Return the dtype of pos and crd: the requested one, by default the smallest that fits."""
    largest = max((nnz, *shape))
    smallest: DTypeLike = np.int32 if largest <= INT32_MAX else np.int64
    dtype = as_dtype(smallest if requested is None else requested, "index_dtype")
    if dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise OperandTypeError(
            f"Expected an index dtype of int32 or int64, found {dtype}",
            hint="pass index_dtype=np.int64",
        )
    if largest > np.iinfo(dtype).max:
        raise IndexOverflowError(
            f"Expected sizes and a number of entries that {dtype} holds, found {largest}",
            hint="pass index_dtype=np.int64" if dtype.itemsize < 8 else "no index can be larger",
        )
    return dtype


def with_index_dtype(data: TensorData, index_dtype: DTypeLike) -> TensorData:
    """Return the same tensor with pos and crd of this type; itself where they already have it.

    Raises IndexOverflowError where int32 cannot hold a size or the number of values.
    """
    dtype = index_type(data.shape, 0 if data.format.is_dense else data.nnz, index_dtype)
    if data.format.is_dense or index_dtype_of(data) == dtype:
        return data
    return in_index_dtype(data, dtype.name)


def index_dtype_of(data: TensorData) -> np.dtype[Any]:
    """Return the dtype of the tensor's index arrays; of dense tensors the default one."""
    for arrays in data.levels:
        indices = arrays.pos if arrays.crd is None else arrays.crd
        if indices is not None:
            return indices.dtype
    return index_type(data.shape, data.nnz, None)


def coordinate_lists(coords: Array | Sequence[Array]) -> tuple[Array, ...]:
    """Return the coordinates of each mode as an int32 or int64 array."""
    modes = coords.T if isinstance(coords, np.ndarray) else coords
    index_types = (np.dtype(np.int32), np.dtype(np.int64))
    return tuple(mode if mode.dtype in index_types else mode.astype(np.int64) for mode in modes)
