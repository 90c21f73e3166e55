"""Operands as a compiled kernel takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.arguments.operands import BoundOperand, as_number, is_number
from taco_py.arguments.option_checks import check_apart
from taco_py.data.storage.tensor_data import TensorData, with_index_dtype
from taco_py.language.diagnostics.errors import (
    FormatError,
    IndexOverflowError,
    OperandError,
    OperandTypeError,
)
from taco_py.language.formats import Format
from taco_py.language.problem import TensorType


def conforming(name: str, bound: BoundOperand, type: TensorType, declared: Format) -> BoundOperand:
    """Return an operand as a kernel takes it.

    declared  the format that the kernel was compiled for, as the user knows it

    Raises FormatError or OperandTypeError if it is another, IndexOverflowError if its indices do
    not fit.
    """
    actual = bound.operand.type
    data, form = bound.data, bound.data.format
    if form.is_dense and type.format.is_dense and form.order == type.format.order:
        data = replace(data, format=type.format)  # the same array, whatever its strides
    elif str(form) != str(declared):
        raise FormatError(
            f"Expected {name} in the format {declared} that the kernel was compiled for, "
            f"found {form}",
            hint=f'convert it: tp.tensor({name}, format="{declared}")',
        )
    if actual.dtype != type.element:
        raise OperandTypeError(
            f"Expected {name} of dtype {type.element} that the kernel was compiled for, "
            f"found {actual.dtype}",
            hint=f"{name}.astype({type.element!r}), or compile with "
            f"dtypes={{{name!r}: {actual.dtype!r}}}",
        )
    require_fill(name, actual, type)
    if form.is_dense:
        data = laid_out(data, type)
    elif actual.index_dtype != type.index_dtype:
        data = reindexed(data, name, type.index_dtype)
    return replace(bound, data=data)


def require_fill(name: str, actual: TensorType, expected: TensorType) -> None:
    """Raise FormatError if the elements that an operand does not store have another value."""
    if expected.stored:
        actual = actual.read_as(expected.dtype)
    if actual.fill != expected.fill:
        raise FormatError(
            f"Expected {name} with the fill value {expected.fill_value} that the kernel was "
            f"compiled for, found {actual.fill_value}",
            hint=f"compile for this tensor: tp.compile(…, {name}={name})",
        )


def laid_out(data: TensorData, type: TensorType) -> TensorData:
    """Return a dense operand with a unit stride where the kernel was compiled for one."""
    array = data.values
    order = type.format.mode_order
    if not order or not type.unit_stride or array.strides[order[-1]] == array.itemsize:
        return data
    stored = np.ascontiguousarray(array.transpose(order))
    return replace(data, values=stored.transpose(np.argsort(order)))


def reindexed(data: TensorData, name: str, index_dtype: str) -> TensorData:
    """Return the index arrays in another integer type, copied.

    Raises IndexOverflowError if they do not fit.
    """
    limit = np.iinfo(index_dtype).max
    if max((*data.shape, data.nnz), default=0) > limit:
        raise IndexOverflowError(
            f"Expected indices of {name} that fit {index_dtype}, found a size or number of entries "
            f"beyond {limit}",
            hint='compile with index_dtype="int64"',
        )
    return with_index_dtype(data, index_dtype)


def typed_number(name: str, obj: Any, type: TensorType) -> Any:
    """Return a Python number in the dtype that a kernel was compiled for; other operands as they
    are.

    Raises OperandTypeError where that cannot hold such a number.
    """
    if not is_number(obj):
        return obj
    dtype = np.dtype(type.element)
    common = np.result_type(dtype, obj)
    if common != dtype:
        raise OperandTypeError(
            f"Expected {name} of dtype {dtype} that the kernel was compiled for, found the "
            f"number {obj!r}",
            hint=f"compile with dtypes={{{name!r}: {common.name!r}}}",
        )
    return as_number(obj, dtype, name)


def by_place_and_name(
    names: Sequence[str], operands: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the operands of a kernel's call by name; positional ones in the order of names."""
    if len(operands) > len(names):
        raise OperandError(
            f"Expected {len(names)} operands, found {len(operands)}",
            hint=f"in the order of their first use they are {', '.join(names)}",
        )
    if keywords:
        check_apart(names[: len(operands)], keywords, "by position")
    return {**dict(zip(names, operands, strict=False)), **keywords}
