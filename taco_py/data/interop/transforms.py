"""Stored tensors made of others without a kernel: what the steps of a plan that are no kernels do.

These functions take plain data and formats, so that a later process does the same without a plan.
What takes long to import is imported where it is needed.
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
    """Return `convert.locate.located`."""
    from taco_py.data.convert.locate import located

    return located(data)


def size_of(data: TensorData, mode: int, dtype: str) -> TensorData:
    """Return the size of a mode as a number."""
    return from_numpy(number_of(dtype, data.shape[mode]))


def fused(data: TensorData, groups: Sequence[Sequence[int]]) -> TensorData:
    """Return a dense tensor with the modes of each group as one."""
    return dense_of(fuse(data.values, groups))


def reformatted(data: TensorData, format: Format, index_dtype: str | None) -> TensorData:
    """Return a copy in another format, with index arrays of 64 bits where these are asked for."""
    from taco_py.data.convert import recopied

    made = recopied(data, format)
    return with_index_dtype(made, index_dtype) if index_dtype == "int64" else made


def gathered(
    data: TensorData,
    pattern: TensorData,
    format: Format,
    modes: tuple[int, ...],
    index_dtype: str | None,
) -> TensorData:
    """Return the blocks of an array where `pattern` has entries, in memory that is recycled."""
    from taco_py.data.storage.blocks import blocks_stored, pack_blocks

    form = ordered_format(format)
    blocks = blocks_stored(data.values, form, pattern, modes)
    made = replace(pack_blocks(data.values, form, blocks, KERNELS.pool.empty), format=format)
    return with_index_dtype(made, "int64") if index_dtype == "int64" else made


def values_of(data: TensorData, distinct: bool) -> TensorData:
    """Return the values of all entries, those of duplicates added up where they have to be
    distinct."""
    if distinct:
        from taco_py.data.interop.in_order import in_order

        data = in_order(data, ordered=False, unique=True)
    count = data.nnz if data.levels[-1].pos is None else int(data.levels[-1].pos[-1])
    return dense_of(data.values.reshape(-1)[:count])


def squeeze(data: TensorData, axes: tuple[int, ...]) -> TensorData:
    """Without the modes `axes`, which have size 1."""
    if data.format.is_dense:
        return dense_of(data.values.squeeze(axes))
    from taco_py.data.storage.pack import pack_coo, unpack

    coords, values = unpack(data)
    kept = [c for axis, c in enumerate(coords) if axis not in axes]
    shape = tuple(n for axis, n in enumerate(data.shape) if axis not in axes)
    form = COO(len(shape)) if shape else dense(0)
    return pack_coo(kept, values, shape, form, fill=data.fill)


def fuse(array: Array, groups: Sequence[Sequence[int]]) -> Array:
    """With the axes of each group as one; a view where they lie one behind the other."""
    shape = tuple(prod(array.shape[axis] for axis in group) for group in groups)
    return array.transpose([axis for group in groups for axis in group]).reshape(shape)


def cast(data: TensorData, form: Format, dtype: str) -> TensorData:
    """Return a dense tensor with its values in another dtype, without gaps as `form` orders
    them."""
    order = form.mode_order
    stored = data.values.transpose(order)
    if stored.dtype == np.float16 and dtype == "float32":
        stored = in_type(np.ascontiguousarray(stored), dtype)
    else:
        stored = stored.astype(dtype, order="C")
    return with_values(data, stored.transpose(np.argsort(order)))
