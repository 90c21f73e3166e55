"""What a program is called with, checked: sizes, and arrays that it may change in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taco_py.arguments.operands import as_number, format_number, is_number
from taco_py.arguments.option_checks import integer
from taco_py.compiler.affine.nodes import LARGEST_SIZE
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import (
    DimensionError,
    OperandError,
    OperandTypeError,
    OutputError,
)
from taco_py.language.notation.checks import unique

Array = NDArray[Any]


def as_size(name: str, value: Any) -> int:
    """Return the size `name`. Raises OperandTypeError, DimensionError."""
    size = integer(value)
    if size is None:
        raise OperandTypeError(
            f"Expected an integer for the size {name}, found {value!r}",
            hint=f"the program uses {name} in a range",
        )
    if not 0 <= size <= LARGEST_SIZE:
        raise DimensionError(
            f"Expected a size from 0 to 2^31 for {name}, found {format_number(size)}",
            hint=f"subtract it where it is to count backwards, as in i - {name}",
        )
    return size


def as_arrays(objects: Mapping[str, Any], targets: frozenset[str]) -> dict[str, Array]:
    """Return every operand as an array that a kernel can use; a Python number takes the dtype of
    those that it meets.

    Raises:
        OperandTypeError, OutputError: what is no array, or none that can be written.
        NumberOverflowError: a number that the dtype has not.
    """
    numbers = {name for name, obj in objects.items() if is_number(obj)}
    arrays = {
        name: _array(name, obj, name in targets)
        for name, obj in objects.items()
        if name not in numbers or name in targets
    }
    common = [array.dtype for array in arrays.values()]
    for name in sorted(numbers - targets):
        value = objects[name]
        arrays[name] = as_number(value, np.result_type(*common, value), name)
    return {name: arrays[name] for name in objects}


DENSE_ALONE = "programs run on dense arrays: pass .toarray() or .to_numpy(), or use evaluate"


def _array(name: str, value: Any, changes: bool) -> Array:
    if changes and not isinstance(value, np.ndarray):
        raise OperandTypeError(
            f"Expected a NumPy array for {name}, which the program changes in place, found "
            f"{type(value).__name__}",
            hint=f"pass {name}=np.array(…) and look into it afterwards",
        )
    if is_scipy_sparse(value) or isinstance(value, Tensor):
        raise OperandTypeError(
            f"Expected a NumPy array for {name}, found {type(value).__name__}",
            hint=DENSE_ALONE,
        )
    if isinstance(value, np.ma.MaskedArray):
        raise OperandTypeError(
            f"Expected an array without a mask for {name}, found a numpy.ma.MaskedArray",
            hint=f"say what masked elements are worth: pass {name}.filled(0), or {name}.data",
        )
    try:
        array = np.asarray(value)
    except Exception as error:  # of another library, which may raise anything
        is_list = isinstance(value, list | tuple)
        raise OperandTypeError(
            f"Expected what NumPy makes an array of for {name}, found {type(value).__name__}: "
            f"{error}",
            hint="rows of lists are all of one length" if is_list else DENSE_ALONE,
        ) from None
    if array.dtype.kind not in "iufc" or array.dtype.name not in _DTYPES:
        raise OperandTypeError(
            f"Expected numbers in {name}, found dtype {array.dtype}",
            hint="convert it to a NumPy dtype of integers, or real or complex numbers",
        )
    if changes and not array.flags.writeable:
        raise OutputError(
            f"Expected an array that can be written for {name}, found a read-only one"
        )
    plain = array.dtype.isnative and array.flags.aligned
    plain = plain and all(stride % array.itemsize == 0 for stride in array.strides)
    if not plain and changes:
        raise OutputError(
            f"Expected aligned elements of native byte order in {name}, found others",
            hint="make a copy: np.array(…, dtype=dtype.newbyteorder('='))",
        )
    return array if plain else np.array(array, array.dtype.newbyteorder("="))


_DTYPES = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
     "float64", "complex64", "complex128")
)  # fmt: skip


def check_apart(arrays: Mapping[str, Array], targets: frozenset[str]) -> None:
    """Raise where a changed array shares memory with another one, or with itself."""
    for name in unique(operand for operand in arrays if operand in targets):
        array = arrays[name]
        if _meets_itself(array):
            raise OutputError(
                f"Expected different places for the elements of {name}, found a broadcast array or "
                "windows that overlap",
                hint=f"pass {name}={name}.copy()",
            )
        for other, its in arrays.items():
            if other != name and _share(array, its):
                raise OperandError(
                    f"Expected {name}, which the program changes, apart from the other operands, "
                    f"found it overlaps {other}",
                    hint=f"pass {other}={other}.copy(), or use one name for both in the program",
                )


def _meets_itself(array: Array) -> bool:
    """Tell whether two elements may be at one place: where a mode's step lies within the modes
    below."""
    pairs = zip(map(abs, array.strides), array.shape, strict=True)
    reach = array.itemsize
    for step, size in sorted(pair for pair in pairs if pair[1] > 1):
        if step < reach:
            return array.size > 0
        reach += step * (size - 1)
    return False


def _share(array: Array, other: Array) -> bool:
    """Tell whether two arrays have an element in common, as far as that can be found out soon."""
    if not np.may_share_memory(array, other):
        return False
    try:
        return np.shares_memory(array, other, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
