"""NumPy arrays and numbers as TensorData, without a copy where a kernel can read them in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.storage.borrow import DTYPES, require_dtype
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, TensorData, dense_data
from taco_py.language.diagnostics.errors import NumberOverflowError, OperandTypeError
from taco_py.language.formats import dense

DENSE = tuple(dense(order) for order in range(9))  # built once: every call needs one


def from_numpy(a: Any) -> TensorData:
    """Return an array, NumPy scalar or Python number in the dense format of its order.

    Borrows the array's memory with any strides, except where `copy_reason` gives a reason. An
    `np.matrix` is its 2-D array.

    Raises OperandTypeError for dtypes that kernels do not read (object, str, long double …), for
    masked arrays, and for anything but an array.
    """
    array = a if type(a) is np.ndarray else as_plain_array(a)
    if array.dtype not in DTYPES:
        require_dtype(array.dtype, "an array")
    if copy_reason(array) is not None:
        with room(f"a copy of an array of shape {array.shape}", array.size * array.itemsize):
            array = array.astype(array.dtype.newbyteorder("="), order="K", copy=True)
    format = DENSE[array.ndim] if array.ndim < len(DENSE) else dense(array.ndim)
    return dense_data(array, format)


def dense_of(array: Array) -> TensorData:
    """Return an array, of the host or of a device, as a dense tensor."""
    if isinstance(array, np.ndarray):
        return from_numpy(array)
    return dense_data(array, dense(array.ndim))


def copy_reason(array: Array) -> str | None:
    """Return why a kernel cannot read the array in place, in words for a report; None where it can.

    >>> copy_reason(np.zeros(3, ">f8"))
    'byte-swapped'
    """
    if not array.dtype.isnative:
        return "byte-swapped"
    flags = array.flags
    if not flags.aligned:
        return "misaligned"
    if not flags.c_contiguous and any(step % array.itemsize for step in array.strides):
        return "strides that are no multiple of the element size"
    return None


def as_plain_array(a: Any) -> Array:
    """Return the ndarray of a number or of an instance of a subclass."""
    if isinstance(a, np.ma.MaskedArray):
        raise OperandTypeError(
            "Expected an array without a mask, found a numpy.ma.MaskedArray",
            hint="say what masked elements are worth: pass a.filled(0)",
        )
    if isinstance(a, np.ndarray):
        return a.view(np.ndarray)
    if isinstance(a, np.generic | bool | int | float | complex):
        array = np.asarray(a)
        if isinstance(a, int) and array.dtype.kind == "O":
            raise NumberOverflowError(
                f"Expected an integer that fits 64 bits, found one of {a.bit_length()} bits",
                hint="pass it as a float",
            )
        return array
    raise OperandTypeError(
        f"Expected a NumPy array or a number, found {type(a).__name__}",
        hint="convert it with np.asarray",
    )
