"""Tables that list coordinates: a column a mode, and one of values.

i  j  value          read: columns i, j … of whole numbers from 0, in the table's order, and
0  2  5.0            the one named value; a table has no sizes, so each is the largest
1  0  6.0            coordinate and one, unless a note of the table tells them
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
"""The note of a table that tells what its columns do not."""


def names_of(order: int) -> list[str]:
    """Return the names of the columns of so many modes.

    >>> names_of(3)
    ['i', 'j', 'k']
    """
    if order <= len(NAMES):
        return list(NAMES[:order])
    return [f"i{mode}" for mode in range(order)]


def lists_coordinates(names: Sequence[str], are_whole: Sequence[bool]) -> bool:
    """Tell whether columns of these names are modes and values, the others of whole numbers."""
    return (
        len(names) > 1
        and list(names).count(VALUE) == 1
        and all(whole or name == VALUE for name, whole in zip(names, are_whole, strict=True))
    )


def from_columns(columns: Mapping[str, Array], note: Mapping[str, Any] | None, who: str) -> Any:
    """Return the tensor that columns list, a coordinate list in their own arrays.

    Raises OperandTypeError, StructureError or DimensionError for what are no coordinates.
    """
    values = np.asarray(columns[VALUE])
    require_dtype(values.dtype, f"{VALUE} of {who}")
    coords = [np.asarray(each) for name, each in columns.items() if name != VALUE]
    for name, each in zip((n for n in columns if n != VALUE), coords, strict=True):
        if each.dtype.kind not in "iu":
            raise OperandTypeError(
                f"Expected whole numbers in the column {name!r} of {who}, found {each.dtype}",
                hint=f"each column but {VALUE!r} holds the coordinates of a mode, from 0",
            )
    told = note or {}
    listed = told.get("shape")
    shape = check_shape(listed) if listed is not None else largest(coords)
    try:
        check_coordinates(coords, values, shape)
    except TacoError as error:
        raise type(error)(f"{who}: {error.message}", hint=error.hint) from None
    data = from_coordinates(coords, values, shape)
    return replace(data, fill=fill_of(read_number(told.get("fill_value", 0)), data.dtype))


def largest(coords: Sequence[Array]) -> tuple[int, ...]:
    """Return the least sizes that hold the coordinates."""
    return tuple(int(each.max()) + 1 if len(each) else 0 for each in coords)


def to_columns(data: TensorData, who: str) -> dict[str, Array]:
    """Return a column a mode and one of values, in the tensor's own arrays where it is a coordinate
    list.

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
    """What the columns do not tell: the shape, and a fill value other than 0."""
    note: dict[str, Any] = {"shape": list(data.shape)}
    if data.fill:
        number = as_number(data.fill, data.dtype).item()
        note["fill_value"] = str(number) if isinstance(number, complex) else repr(number)
    return note


def read_number(word: Any) -> Any:
    """Return a fill value as it stands in a note."""
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
    """Return a note from its text; none where there is none. Raises FormatError."""
    if not text:
        return {}
    try:
        found = json.loads(text)
        return dict(found)
    except (ValueError, TypeError) as error:
        raise FormatError(
            f"Expected the note {NOTE!r} of {who} to be JSON, found {text[:40]!r}",
            hint="leave it out: sizes are then the largest coordinates",
        ) from error


def with_shape(data: TensorData, shape: Any) -> TensorData:
    """Return a tensor with larger sizes, where that changes none of its arrays: a coordinate list.

    Raises DimensionError for sizes that do not hold it.
    """
    wanted = check_shape(shape)
    if wanted == data.shape:
        return data
    fits = len(wanted) == len(data.shape) and all(
        a >= b for a, b in zip(wanted, data.shape, strict=True)
    )
    if not data.format.is_coo or not fits:
        raise DimensionError(
            f"Expected a shape that is the tensor's own, {data.shape}, or larger where it is read "
            f"from a list of coordinates, found {wanted}",
            hint="leave shape= out",
        )
    return replace(data, shape=wanted)


def coordinate_format(data: TensorData) -> TensorData:
    """Return the tensor as a coordinate list."""
    if data.format.is_coo or not data.format.order:
        return data
    coords, values = unpack(data, drop_fill=True)
    made = from_coordinates(coords, values, data.shape, data.sorted, data.unique)
    return replace(made, format=COO(len(data.shape)), fill=data.fill)
