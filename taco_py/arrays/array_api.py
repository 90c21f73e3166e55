"""The functions of the array API standard that take other arguments than the table's, for Tensors.

What makes arrays makes sparse ones where that is possible: `zeros` and `eye` store what is not 0,
`ones` and `full` nothing, with a fill value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.arrays.elements_at import subscript
from taco_py.arrays.elementwise import broadcast, elementwise
from taco_py.arrays.reductions import reduced
from taco_py.arrays.shapes import expand_dims, reshape, zeros_in
from taco_py.diagnostics.errors import DimensionError
from taco_py.fill import fill_of
from taco_py.formats import CSF, Format
from taco_py.storage.pack import pack_coo
from taco_py.storage.tensor_data import dense_data
from taco_py.values.tensor import Tensor, as_data

Shape = Sequence[int] | int


def asarray(obj: Any, *, dtype: Any = None, copy: bool | None = None, device: Any = None) -> Tensor:
    """Make a Tensor of anything, in the type `dtype`."""
    found = obj if isinstance(obj, Tensor) else Tensor(as_data(_plain(obj)))
    if dtype is not None and found.dtype != dtype:
        return found.astype(dtype)
    return found.copy() if copy else found


def _plain(obj: Any) -> Any:
    """Numbers and nested lists as arrays of NumPy's types; others as they are."""
    return np.asarray(obj) if isinstance(obj, bool | int | float | complex | list | tuple) else obj


def _sizes(shape: Shape) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, Sequence) else (int(shape),)


def full(shape: Shape, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of one number, which stores nothing: the number is its fill value."""
    sizes = _sizes(shape)
    number = np.asarray(fill_value, dtype)
    if not sizes:
        return Tensor(dense_data(number, Format.parse("")))
    none = [np.zeros(0, np.int64)] * len(sizes)
    fill = fill_of(number[()], number.dtype)
    return Tensor(pack_coo(none, np.zeros(0, number.dtype), sizes, CSF(len(sizes)), None, fill))


def zeros(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of zeros, which stores nothing."""
    return full(shape, 0, dtype=dtype or np.float64)


def ones(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of ones, which stores nothing."""
    return full(shape, 1, dtype=dtype or np.float64)


def full_like(x: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of one number in the shape of another."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype)


def zeros_like(x: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of zeros in the shape and format of another."""
    return Tensor(zeros_in(x.shape, dtype or x.dtype, x.format))


def ones_like(x: Tensor, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of ones in the shape of another."""
    return full(x.shape, 1, dtype=dtype or x.dtype)


def eye(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Make a matrix of ones on the diagonal number k, which alone are stored."""
    columns = n_rows if n_cols is None else n_cols
    rows = np.arange(max(0, -k), max(0, -k, min(n_rows, columns - k)))
    values = np.ones(len(rows), dtype or np.float64)
    return Tensor(pack_coo([rows, rows + k], values, (n_rows, columns), CSF(2)))


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Make a dense vector of numbers with equal steps."""
    first, end = (0, start) if stop is None else (start, stop)
    found: Any = np.arange(first, end, step, dtype=dtype)
    return asarray(found)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """Make a dense vector of so many numbers between two."""
    return asarray(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint))


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Convert the elements to another type."""
    return x if not copy and x.dtype == dtype else x.astype(dtype)


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Stretch modes of size 1 to a shape. Raises DimensionError where it does not fit."""
    wanted = tuple(shape)
    if broadcast([x.shape, wanted]) != wanted:
        raise DimensionError(
            f"Expected a shape that {x.shape} stretches to, found {wanted}",
            hint="sizes are equal or 1, compared from the last mode on",
        )
    missing = len(wanted) - len(x.shape)
    found = expand_dims(x, tuple(range(missing))) if missing else x
    key = [
        np.zeros(size, np.int64) if have == 1 and size != 1 else slice(None)
        for have, size in zip(found.shape, wanted, strict=True)
    ]
    for place, part in enumerate(key):
        if not isinstance(part, slice):
            found = subscript(found, (*[slice(None)] * place, part))
    return found


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Stretch tensors to one shape."""
    shape = broadcast([each.shape for each in arrays])
    return [broadcast_to(each, shape) for each in arrays]


def take(x: Tensor, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Take elements at positions along a mode."""
    place = 0 if axis is None else axis % x.ndim
    found: Tensor = subscript(x, (*[slice(None)] * place, indices))
    return found


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Reverse the order along modes, all where axis is None."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    places = {each % x.ndim for each in axes}
    back = slice(None, None, -1)
    return asarray(subscript(x, tuple(back if m in places else slice(None) for m in range(x.ndim))))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Move elements along modes, those beyond the end to the beginning."""
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, axis=0), x.shape)
    shifts, axes = (each if isinstance(each, Sequence) else [each] for each in (shift, axis))
    for step, place in zip(shifts, axes, strict=True):
        size, mode = x.shape[place], place % x.ndim
        if size:
            order = (np.arange(size) - step) % size
            x = take(x, order, axis=mode)
    return x


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Sum products along a mode, of conjugates of the first."""
    first = elementwise("conj", x1) if np.dtype(x1.dtype).kind == "c" else x1
    return reduced("sum", elementwise("multiply", first, x2), axis)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Count the elements that are not 0."""
    return reduced("count", x, axis, keepdims)
