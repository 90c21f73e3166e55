"""Frames of polars: coordinate lists if they have a column named value, else dense matrices."""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.partners.partner import Partner, pick
from taco_py.data.storage.containers.columns import (
    from_columns,
    lists_coordinates,
    require_real,
    to_columns,
)
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.extras import library

KINDS = ("DataFrame", "LazyFrame")


def read(obj: Any) -> TensorData | None:
    """Return a coordinate list in the frame's own columns; None for a dense frame or series."""
    if type(obj).__name__ == "LazyFrame":
        return read(obj.collect())
    if type(obj).__name__ != "DataFrame":
        return None
    are_integers = [dtype.is_integer() for dtype in obj.dtypes]
    if not lists_coordinates(obj.columns, are_integers):
        return None
    columns = {name: obj.get_column(name).to_numpy() for name in obj.columns}
    tensor: TensorData = from_columns(columns, None, "a polars DataFrame")
    return tensor


def write(data: TensorData, kind: str) -> Any:
    """Return a frame with a column a mode and one of values; it does not store the shape."""
    polars = library("polars", "polars")
    target = pick(kind or KINDS[0], KINDS, "polars")
    require_real(data.dtype, "a table of polars")
    frame = polars.DataFrame(to_columns(data, "polars"))
    return frame if target == "DataFrame" else frame.lazy()


PARTNER = Partner("polars", ("polars",), "polars", KINDS, read, write)
