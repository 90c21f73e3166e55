"""Steps that are no kernels, carried out on stored tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import assert_never

import numpy as np

from taco_py.convert import recopied
from taco_py.convert.diagonal import diagonal
from taco_py.convert.locate import located
from taco_py.diagnostics.errors import InternalError
from taco_py.formats import COO, CSC, CSR, Format, dense
from taco_py.interop.numpy_arrays import from_numpy
from taco_py.interop.scipy_arrays import coordinate_order
from taco_py.kernels import KERNELS
from taco_py.plan.ir.nodes import (
    Cast,
    Fuse,
    Gather,
    Locate,
    Reformat,
    Squeeze,
    TakeDiagonal,
    TakeSize,
    TakeValues,
    Transformation,
    Unfuse,
)
from taco_py.storage.blocks import blocks_stored, pack_blocks
from taco_py.storage.pack import canonical, is_sorted, is_unique, pack_coo, unpack
from taco_py.storage.tensor_data import Array, TensorData, with_index_dtype
from taco_py.storage.tensor_data import ordered as ordered_format


def unfused(step: Unfuse, data: TensorData, tensors: Mapping[str, TensorData]) -> TensorData:
    """A view with the modes of the step's target."""
    return from_numpy(data.values.reshape([tensors[name].shape[mode] for name, mode in step.sizes]))


def transformed(step: Transformation, data: TensorData) -> TensorData:
    """What a step makes of its source without a kernel."""
    match step:
        case Reformat(_, _, format, _, index_dtype):
            made = recopied(data, format)
            return with_index_dtype(made, index_dtype) if index_dtype == "int64" else made
        case TakeDiagonal(_, _, labels):
            return diagonal(data, labels)
        case Squeeze(_, _, axes):
            return squeeze(data, axes)
        case Locate():
            return located(data)
        case TakeValues(distinct=distinct):
            return values_of(in_order(data, ordered=False, unique=True) if distinct else data)
        case TakeSize(_, _, mode, dtype):
            return from_numpy(number_of(dtype, data.shape[mode]))
        case Fuse(_, _, groups):
            return from_numpy(fuse(data.values, groups))
        case Unfuse() | Gather():
            raise InternalError(f"Expected what else {step.target} is of, found its values alone")
        case Cast(_, _, format, dtype):
            return cast(data, format, dtype)
        case _:
            assert_never(step)


def gathered(step: Gather, data: TensorData, pattern: TensorData) -> TensorData:
    """The blocks of an array where `pattern` has entries, in memory that is recycled."""
    form = ordered_format(step.format)
    blocks = blocks_stored(data.values, form, pattern, step.modes)
    made = replace(pack_blocks(data.values, form, blocks, KERNELS.pool.empty), format=step.format)
    return with_index_dtype(made, "int64") if step.index_dtype == "int64" else made


def number_of(dtype: str, size: int) -> Array:
    """A size as a number of this type, without modes; as it wraps there, or is rounded."""
    return np.array(size).astype(dtype)


def values_of(data: TensorData) -> TensorData:
    """The values of all entries, without their coordinates."""
    count = data.nnz if data.levels[-1].pos is None else int(data.levels[-1].pos[-1])
    return from_numpy(data.values.reshape(-1)[:count])


def squeeze(data: TensorData, axes: tuple[int, ...]) -> TensorData:
    """Without the modes `axes`, which have size 1."""
    if data.format.is_dense:
        return from_numpy(data.values.squeeze(axes))
    coords, values = unpack(data)
    kept = [c for axis, c in enumerate(coords) if axis not in axes]
    shape = tuple(n for axis, n in enumerate(data.shape) if axis not in axes)
    form = COO(len(shape)) if shape else dense(0)
    return pack_coo(kept, values, shape, form)


def fuse(array: Array, groups: Sequence[Sequence[int]]) -> Array:
    """With the axes of each group as one; a view where they lie one behind the other."""
    shape = tuple(prod(array.shape[axis] for axis in group) for group in groups)
    return array.transpose([axis for group in groups for axis in group]).reshape(shape)


def cast(data: TensorData, form: Format, dtype: str) -> TensorData:
    """A dense tensor with its values in another dtype, without gaps as `form` orders them."""
    order = form.mode_order
    stored = data.values.transpose(order).astype(dtype, order="C")
    return replace(data, values=stored.transpose(np.argsort(order)))


def in_order(data: TensorData, ordered: bool, unique: bool) -> TensorData:
    """`data`, or a sorted copy without duplicates where that is asked for and does not hold.

    What is found out about the coordinates is known of the tensor that is returned.
    """
    unknown = data.sorted is None or (data.sorted and data.unique is None)
    if unknown and ordered_format(data.format) in (CSR, CSC):
        level = data.levels[-1]
        assert level.pos is not None and level.crd is not None
        is_ordered, is_distinct = coordinate_order(level.pos, level.crd)
        known = data.unique if is_distinct is None else is_distinct
        data = replace(data, sorted=is_ordered, unique=known)
    return data if satisfies(data, ordered, unique) else canonical(data)


def satisfies(data: TensorData, ordered: bool, unique: bool) -> bool:
    """Whether the coordinates are as asked, looking at them where nobody has."""
    is_ordered = data.sorted if data.sorted is not None else not ordered or is_sorted(data)
    is_distinct = data.unique if data.unique is not None else not unique or is_unique(data)
    return (is_ordered or not ordered) and (is_distinct or not unique)
