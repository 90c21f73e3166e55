"""Stored tensors derived from others without a kernel: the steps of a plan that are no kernels.

These functions take plain data and formats, so that a later process runs them without a plan.
Modules that are slow to import are imported inside functions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from taco_py.data.convert.in_type import in_type
from taco_py.data.interop.numpy_arrays import dense_of, from_numpy
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import (
    Array,
    TensorData,
    number_of,
    with_index_dtype,
    with_values,
)
from taco_py.data.storage.tensor_data import ordered as ordered_format
from taco_py.language.formats import COO, Format, dense


def diagonal(data: TensorData, labels: Sequence[Hashable]) -> TensorData:
    """Return the entries at which modes with the same label have the same coordinate."""
    from taco_py.data.convert.diagonal import diagonal

    return diagonal(data, labels)


def located(data: TensorData) -> TensorData:
    """Append a mode of size 1, as `convert.locate.located`."""
    from taco_py.data.convert.locate import located

    return located(data)


def size_of(data: TensorData, mode: int, dtype: str) -> TensorData:
    """Return the size of a mode as a number."""
    return from_numpy(number_of(dtype, data.shape[mode]))


def fused(data: TensorData, groups: Sequence[Sequence[int]]) -> TensorData:
    """Fuse the modes of each group of a dense tensor."""
    return dense_of(fuse(data.values, groups))


def reformatted(data: TensorData, format: Format, index_dtype: str | None) -> TensorData:
    """Return a copy in another format, with 64-bit index arrays if required."""
    from taco_py.data.convert import recopied

    converted = recopied(data, format)
    return with_index_dtype(converted, index_dtype) if index_dtype == "int64" else converted


def gathered(
    data: TensorData,
    pattern: TensorData,
    format: Format,
    modes: tuple[int, ...],
    index_dtype: str | None,
) -> TensorData:
    """Return the blocks of an array where `pattern` has entries, in recycled memory."""
    from taco_py.data.storage.blocks import blocks_stored, pack_blocks

    form = ordered_format(format)
    blocks = blocks_stored(data.values, form, pattern, modes)
    packed = replace(pack_blocks(data.values, form, blocks, KERNELS.pool.empty), format=format)
    return with_index_dtype(packed, "int64") if index_dtype == "int64" else packed


def values_of(data: TensorData, distinct: bool) -> TensorData:
    """Return the values of all entries; sum those of duplicates if `distinct`."""
    if distinct:
        from taco_py.data.interop.in_order import in_order

        data = in_order(data, ordered=False, unique=True)
    count = data.nnz if data.levels[-1].pos is None else int(data.levels[-1].pos[-1])
    return dense_of(data.values.reshape(-1)[:count])


def squeeze(data: TensorData, axes: tuple[int, ...]) -> TensorData:
    """Remove the modes `axes`, which have size 1."""
    if data.format.is_dense:
        return dense_of(data.values.squeeze(axes))
    from taco_py.data.storage.pack import pack_coo, unpack

    coords, values = unpack(data)
    remaining = [c for axis, c in enumerate(coords) if axis not in axes]
    shape = tuple(n for axis, n in enumerate(data.shape) if axis not in axes)
    form = COO(len(shape)) if shape else dense(0)
    return pack_coo(remaining, values, shape, form, fill=data.fill)


def fuse(array: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Fuse the axes of each group; return a view where they are contiguous."""
    shape = tuple(prod(array.shape[axis] for axis in group) for group in groups)
    return array.transpose([axis for group in groups for axis in group]).reshape(shape)


def cast(data: TensorData, form: Format, dtype: str) -> TensorData:
    """Convert a dense tensor to another dtype, contiguous in the order of `form`."""
    order = form.mode_order
    stored = data.values.transpose(order)
    if stored.dtype == np.float16 and dtype == "float32":
        stored = in_type(np.ascontiguousarray(stored), dtype)
    else:
        stored = stored.astype(dtype, order="C")
    return with_values(data, stored.transpose(np.argsort(order)))
