"""Coordinates and values from users: one array a mode, or a table in either orientation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from taco_py.data.interop.numpy_arrays import as_plain_array
from taco_py.data.storage.borrow import as_dtype, require_dtype
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.errors import (
    DimensionError,
    NumberOverflowError,
    OperandError,
    OperandTypeError,
)
from taco_py.language.notation.half_types import number_kind

BOTH_WAYS = (
    "axis=0 where coords[k] holds the coordinates of mode k, axis=1 where coords[e] are those of "
    "entry e; or one array a mode, as in (rows, columns)"
)


def one_of(coords: Any, indices: Any) -> Any:
    """Return the coordinates, passed under one of two names. Raises OperandTypeError for both."""
    if coords is not None and indices is not None:
        raise OperandTypeError(
            "Expected the coordinates once, found coords= and indices=",
            hint="these are two names of one argument: leave one of them out",
        )
    return coords if indices is None else indices


def require_given(coords: Any, values: Any, shape: Any) -> None:
    """Raise OperandTypeError for missing coordinates or values, DimensionError for a missing
    shape."""
    arguments = {"coords": coords, "values": values, "shape": shape}
    missing = [name for name, value in arguments.items() if value is None]
    if missing:
        kind = DimensionError if missing == ["shape"] else OperandTypeError
        raise kind(
            f"Expected coords, values and shape, found no {' and no '.join(missing)}",
            hint="as in Tensor.from_coo((rows, columns), values, (2, 3))",
        )


def coordinate_columns(coords: Any, order: int, entries: int, axis: int | None) -> list[Array]:
    """Split `coords` into one array a mode.

    coords   a tuple of arrays or a list of NumPy arrays, one a mode; or a table of shape
             (order, entries) or (entries, order)
    axis     the table's axis that runs over the modes; None where the shape determines it

    Raises OperandError for a table of wrong or ambiguous shape, and OperandTypeError.
    """
    if axis is not None and (isinstance(axis, bool) or axis not in (0, 1)):
        raise OperandError(f"Expected axis=0 or axis=1, found axis={axis!r}", hint=BOTH_WAYS)
    is_list_of_arrays = isinstance(coords, list) and any(
        isinstance(array, np.ndarray) for array in coords
    )
    try:
        if axis is None and (is_list_of_arrays or isinstance(coords, tuple)):
            return [np.atleast_1d(np.asarray(array)) for array in coords]
        table = np.asarray(coords)
    except (ValueError, TypeError) as error:
        raise OperandTypeError(
            "Expected coordinates as one array a mode or as a table, found something NumPy cannot "
            f"convert: {error}",
            hint="nested lists need rows of equal length",
        ) from error
    if table.size == 0 and (table.ndim < 2 or order == 0):
        return [np.zeros(entries if order == 0 else 0, dtype=np.int64) for _ in range(order)]
    if table.ndim == 1 and order == 1:
        return [table]
    return list(np.moveaxis(table, modes_axis(table, order, entries, axis), 0))


def modes_axis(table: Array, order: int, entries: int, axis: int | None) -> int:
    """Return the axis of a table of coordinates that runs over the modes. Raises OperandError."""
    if table.ndim != 2:
        raise OperandError(
            f"Expected coordinates as a table of two axes or one array a mode, found shape "
            f"{table.shape}",
            hint=BOTH_WAYS,
        )
    fitting = [candidate for candidate in (0, 1) if table.shape[candidate] == order]
    if axis is not None:
        fitting = [candidate for candidate in fitting if candidate == axis]
    if len(fitting) == 2 and order > 1 and table.shape == (entries, entries):
        raise OperandError(
            f"Expected coordinates that can be read in one way, found a table of shape "
            f"{table.shape}, which is (order, entries) as well as (entries, order)",
            hint=BOTH_WAYS,
        )
    matching = [candidate for candidate in fitting if table.shape[1 - candidate] == entries]
    if not fitting:
        expected = {None: f"({order}, {entries}) or ({entries}, {order})",
                  0: f"({order}, {entries})", 1: f"({entries}, {order})"}[axis]  # fmt: skip
        raise OperandError(
            f"Expected coordinates of {entries} entries of a tensor of order {order}, of shape "
            f"{expected}, found shape {table.shape}",
            hint=BOTH_WAYS,
        )
    return (matching or fitting)[0]


def numbers(values: ArrayLike, dtype: DTypeLike | None) -> Array:
    """Convert values to an array of a supported dtype, as NumPy does. Raises OperandTypeError."""
    if isinstance(values, np.ma.MaskedArray):
        values = as_plain_array(values)
    target = None if dtype is None else as_dtype(dtype, "dtype")
    try:
        array = np.asarray(values, dtype=target)
    except OverflowError as error:
        raise NumberOverflowError(
            f"Expected numbers that {target} can hold, found a larger one: {error}",
            hint="choose a wider dtype",
        ) from error
    except (ValueError, TypeError) as error:
        raise OperandTypeError(
            f"Expected numbers, found something NumPy cannot convert: {error}",
            hint="nested lists need rows of equal length",
        ) from error
    require_dtype(array.dtype, "values")
    return array


def exact_numbers(values: ArrayLike, dtype: DTypeLike | None) -> Array:
    """Convert values to a dtype that holds each: floats may be rounded, nothing truncated.

    Raises OperandTypeError naming the first number that the dtype cannot hold.
    """
    if dtype is None:
        return numbers(values, None)
    target = as_dtype(dtype, "dtype")
    source = values if isinstance(values, np.ndarray) else np.asarray(numbers(values, None))
    source = numbers(source, None)
    if np.can_cast(source.dtype, target, "same_kind") and number_kind(target) in "fc":
        return source.astype(target, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        real = source.real if source.dtype.kind == "c" and target.kind != "c" else source
        array = real.astype(target)
    wrong = np.flatnonzero(np.ravel(array != source))
    if wrong.size:
        raise NumberOverflowError(
            f"Expected numbers that {target} holds exactly, found {np.ravel(source)[wrong[0]]} at "
            f"entry {wrong[0]}",
            hint="convert the values with .astype() where they may be cut",
        )
    return array
