"""Tables that list coordinates: a column a mode, and a column of values.

i  j  value          read: columns i, j … of integers from 0, in the table's order, and
0  2  5.0            one named value; a table has no sizes, so each is the largest
1  0  6.0            coordinate plus one, unless a note of the table has them
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.data.storage.borrow import from_coordinates, require_dtype
from taco_py.data.storage.check import check_coordinates, check_shape
from taco_py.data.storage.pack import unpack
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import (
    DimensionError,
    FormatError,
    OperandTypeError,
    TacoError,
)
from taco_py.language.fill import as_number, fill_of
from taco_py.language.formats import COO

VALUE = "value"
NAMES = "ijklmnopqrstuvwxyz"
NOTE = "tacopy"
"""The key of a table's note, which has the shape and the fill value."""


def names_of(order: int) -> list[str]:
    """Return the names of the columns of `order` modes.

    >>> names_of(3)
    ['i', 'j', 'k']
    """
    if order <= len(NAMES):
        return list(NAMES[:order])
    return [f"i{mode}" for mode in range(order)]


def lists_coordinates(names: Sequence[str], are_whole: Sequence[bool]) -> bool:
    """Tell whether columns are modes of integers and one column of values, by their names."""
    return (
        len(names) > 1
        and list(names).count(VALUE) == 1
        and all(
            is_integer or name == VALUE for name, is_integer in zip(names, are_whole, strict=True)
        )
    )


def from_columns(columns: Mapping[str, Array], note: Mapping[str, Any] | None, who: str) -> Any:
    """Return the tensor that columns list, a coordinate list in their own arrays.

    Raises OperandTypeError, StructureError or DimensionError for invalid coordinates.
    """
    values = np.asarray(columns[VALUE])
    require_dtype(values.dtype, f"{VALUE} of {who}")
    coords = [np.asarray(column) for name, column in columns.items() if name != VALUE]
    for name, column in zip((n for n in columns if n != VALUE), coords, strict=True):
        if column.dtype.kind not in "iu":
            raise OperandTypeError(
                f"Expected whole numbers in the column {name!r} of {who}, found {column.dtype}",
                hint=f"each column but {VALUE!r} holds the coordinates of a mode, from 0",
            )
    metadata = note or {}
    stored_shape = metadata.get("shape")
    shape = check_shape(stored_shape) if stored_shape is not None else largest(coords)
    try:
        check_coordinates(coords, values, shape)
    except TacoError as error:
        raise type(error)(f"{who}: {error.message}", hint=error.hint) from None
    data = from_coordinates(coords, values, shape)
    return replace(data, fill=fill_of(read_number(metadata.get("fill_value", 0)), data.dtype))


def largest(coords: Sequence[Array]) -> tuple[int, ...]:
    """Return the least sizes that hold the coordinates."""
    return tuple(int(column.max()) + 1 if len(column) else 0 for column in coords)


def to_columns(data: TensorData, who: str) -> dict[str, Array]:
    """Return a column a mode and one of values, sharing the arrays of a coordinate list.

    Raises FormatError for a scalar, which has no columns of modes.
    """
    if not data.format.order:
        raise FormatError(
            f"Expected a tensor of order 1 or more for {who}, found a scalar",
            hint="use T.item()",
        )
    coords, values = unpack(data, drop_fill=True)
    return {**dict(zip(names_of(len(coords)), coords, strict=True)), VALUE: values}


def require_real(dtype: np.dtype[Any], who: str) -> None:
    """Raise OperandTypeError for values of a type that tables of libraries lack."""
    if dtype.kind not in "biuf":
        raise OperandTypeError(
            f"Expected truths, integers or NumPy's floats for {who}, found {dtype}",
            hint="write real and imaginary parts one by one: T.real, T.imag"
            if dtype.kind == "c"
            else 'convert them first: T.astype("float32")',
        )


def note_of(data: TensorData) -> dict[str, Any]:
    """Return the note of a table: the shape, and a fill value other than 0."""
    note: dict[str, Any] = {"shape": list(data.shape)}
    if data.fill:
        number = as_number(data.fill, data.dtype).item()
        note["fill_value"] = str(number) if isinstance(number, complex) else repr(number)
    return note


def read_number(word: Any) -> Any:
    """Parse a fill value of a note."""
    if not isinstance(word, str):
        return word
    if word in ("True", "False"):
        return word == "True"
    try:
        return int(word)
    except ValueError:
        return complex(word) if "j" in word else float(word)


def note_text(data: TensorData) -> bytes:
    """Return the note as text."""
    return json.dumps(note_of(data)).encode()


def note_read(text: bytes | None, who: str) -> dict[str, Any]:
    """Parse a note, empty for no text. Raises FormatError."""
    if not text:
        return {}
    try:
        note = json.loads(text)
        return dict(note)
    except (ValueError, TypeError) as error:
        raise FormatError(
            f"Expected the note {NOTE!r} of {who} to be JSON, found {text[:40]!r}",
            hint="leave it out: sizes are then the largest coordinates",
        ) from error


def with_shape(data: TensorData, shape: Any) -> TensorData:
    """Return a coordinate list with larger sizes, sharing its arrays.

    Raises DimensionError for smaller sizes, or another format.
    """
    target = check_shape(shape)
    if target == data.shape:
        return data
    fits = len(target) == len(data.shape) and all(
        a >= b for a, b in zip(target, data.shape, strict=True)
    )
    if not data.format.is_coo or not fits:
        raise DimensionError(
            f"Expected a shape that is the tensor's own, {data.shape}, or larger where it is read "
            f"from a list of coordinates, found {target}",
            hint="leave shape= out",
        )
    return replace(data, shape=target)


def coordinate_format(data: TensorData) -> TensorData:
    """Return the tensor as a coordinate list."""
    if data.format.is_coo or not data.format.order:
        return data
    coords, values = unpack(data, drop_fill=True)
    tensor = from_coordinates(coords, values, data.shape, data.sorted, data.unique)
    return replace(tensor, format=COO(len(data.shape)), fill=data.fill)
