"""Parquet files of coordinates: columns i, j … and value, as in `columns`.

The shape is in the metadata of the schema; without it sizes are the largest coordinates plus one.
"""

from __future__ import annotations

from taco_py.data.storage.check import check
from taco_py.data.storage.containers.columns import (
    NOTE,
    VALUE,
    from_columns,
    lists_coordinates,
    note_read,
    note_text,
    require_real,
    to_columns,
)
from taco_py.data.storage.containers.container import Container, File
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.language.diagnostics.extras import library


def read(file: File, name: str, key: str = "") -> TensorData:
    """Return the coordinate list in a file. Raises FileFormatError for other columns."""
    parquet = library("pyarrow.parquet", "pyarrow")
    try:
        table = parquet.read_table(file)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"{name}: Expected a Parquet file, found one that Arrow cannot read ({error})",
            hint="fetch the file again",
        ) from error
    names = table.column_names
    types = library("pyarrow.types", "pyarrow")
    if not lists_coordinates(names, [types.is_integer(field.type) for field in table.schema]):
        raise FileFormatError(
            f"{name}: Expected columns of coordinates in whole numbers and one named {VALUE!r}, "
            f"found {', '.join(map(repr, names))}",
            hint="rename the columns",
        )
    empty = next((column for column in names if table[column].null_count), None)
    if empty is not None:
        raise FileFormatError(
            f"{name}: Expected a number in each row of the column {empty!r}, found nulls",
            hint="leave such rows out",
        )
    note = note_read((table.schema.metadata or {}).get(NOTE.encode()), name)
    data: TensorData = from_columns(
        {column: table[column].to_numpy() for column in names}, note, name
    )
    check(data)
    return data


def write(data: TensorData, file: File, key: str = "") -> None:
    """Write a column a mode and one of values."""
    require_real(data.dtype, "a Parquet file")
    arrow, parquet = library("pyarrow", "pyarrow"), library("pyarrow.parquet", "pyarrow")
    table = arrow.table(to_columns(data, "a Parquet file"))
    parquet.write_table(table.replace_schema_metadata({NOTE: note_text(data)}), file)


CONTAINER = Container("a Parquet file", (".parquet", ".pq"), b"PAR1", False, read, write)
