"""Creation functions of the array API standard.

They make sparse arrays where that is possible: `zeros` and `eye` store elements that are not 0,
`ones` and `full` store nothing but a fill value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.layouts import meshgrid as grids
from taco_py.arrays.shapes import of_dense, zeros_in
from taco_py.arrays.subscripts_of_modes import triangle
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.tensor_data import dense_data
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.diagnostics.errors import DimensionError, OperandError
from taco_py.language.fill import fill_of
from taco_py.language.formats import CSF, Format

Shape = Sequence[int] | int


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Make a Tensor of anything, in this dtype; numbers and lists become dense.

    copy  True to copy always, False to raise OperandError where a copy is needed
    """
    _require_host(device)
    if isinstance(obj, bool | int | float | complex | list | tuple):
        if copy is False:
            raise _copied(obj)
        return of_dense(np.asarray(_plain(obj), dtype))
    tensor = obj if isinstance(obj, Tensor) else Tensor(as_data(obj))
    if dtype is not None and tensor.dtype != dtype:
        if copy is False:
            raise _copied(obj)
        return tensor.astype(dtype)
    return tensor.copy() if copy else tensor


def _copied(obj: Any) -> OperandError:
    return OperandError(
        f"Expected what can be used without a copy, found {type(obj).__name__}", hint="copy=None"
    )


def _plain(obj: Any) -> Any:
    """Return nested lists in which Tensors of order 0 are numbers."""
    if isinstance(obj, list | tuple):
        return [_plain(item) for item in obj]
    return obj.to_numpy() if isinstance(obj, Tensor) and not obj.shape else obj


def _require_host(device: Any) -> None:
    if device not in (None, "cpu"):
        raise OperandError(
            f'Expected the device "cpu", found {device!r}',
            hint="tp.device(T) moves a tensor to a GPU",
        )


def _sizes(shape: Shape) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if any(not isinstance(size, int | np.integer) or size < 0 for size in sizes):
        raise DimensionError(f"Expected sizes as a shape, found {shape!r}", hint="as in (2, 3)")
    return tuple(int(size) for size in sizes)


def full(shape: Shape, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of one number, which stores nothing: the number is its fill value."""
    _require_host(device)
    sizes = _sizes(shape)
    fill_number = fill_value.to_numpy() if isinstance(fill_value, Tensor) else fill_value
    number = np.asarray(fill_number, dtype)
    if not sizes:
        return Tensor(dense_data(number, Format.parse("")))
    none = [np.zeros(0, np.int64)] * len(sizes)
    fill = fill_of(number[()], number.dtype)
    return Tensor(pack_coo(none, np.zeros(0, number.dtype), sizes, CSF(len(sizes)), None, fill))


def zeros(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of zeros, which stores nothing."""
    return full(shape, 0, dtype=dtype or np.float64, device=device)


def ones(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of ones, which stores nothing."""
    return full(shape, 1, dtype=dtype or np.float64, device=device)


def empty(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of zeros, which stores nothing."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of one number in the shape of another."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of zeros in the shape and format of another."""
    _require_host(device)
    return Tensor(zeros_in(x.shape, np.dtype(dtype or x.dtype), x.format))


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of ones in the shape of another."""
    return full(x.shape, 1, dtype=dtype or x.dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Make a tensor of zeros in the shape and format of another."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Make a matrix of ones on the diagonal number k; only these are stored."""
    _require_host(device)
    columns = n_rows if n_cols is None else n_cols
    rows = np.arange(max(0, -k), max(0, -k, min(n_rows, columns - k)))
    values = np.ones(len(rows), dtype or np.float64)
    return Tensor(pack_coo([rows, rows + k], values, (n_rows, columns), CSF(2)))


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Make a dense vector of numbers with equal steps."""
    _require_host(device)
    first, end = (0, start) if stop is None else (start, stop)
    numbers: Any = np.arange(first, end, step, dtype=dtype)
    return of_dense(numbers)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """Make a dense vector of `num` numbers between two."""
    _require_host(device)
    return of_dense(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Make one tensor from each vector; each varies along a mode of its own."""
    return grids(*arrays, indexing=indexing)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Keep the elements on and below the diagonal number k of each matrix."""
    return triangle(x, k, upper=False)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Keep the elements on and above the diagonal number k of each matrix."""
    return triangle(x, k, upper=True)
