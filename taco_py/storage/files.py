"""Tensors in files: FROSTT .tns, Matrix Market .mtx, scipy's .npz, each also compressed."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import DTypeLike

from taco_py.diagnostics.errors import (
    FileFormatError,
    FormatError,
    NumberOverflowError,
    TacoError,
)
from taco_py.fill import Fill, as_number, fill_of
from taco_py.formats import COO, CSC, CSF, CSR, Format, named
from taco_py.notation.half_types import number_kind
from taco_py.storage.borrow import as_dtype, from_compressed, from_coordinates
from taco_py.storage.check import check, check_shape
from taco_py.storage.mtx import Matrix, mtx_text, read_mtx
from taco_py.storage.pack import pack_coo, unpack
from taco_py.storage.room import room
from taco_py.storage.sources import COMPRESSIONS, Source, as_path, source_of, suffix
from taco_py.storage.tensor_data import Array, TensorData, dense_data
from taco_py.storage.text import TableReader
from taco_py.storage.tns import read_tns, tns_text

KNOWN = ".tns, .ttx, .mtx, .npz, each also with .gz, .bz2, .xz or .zst"


def read(
    path: Any,
    format: Format | str | None = None,
    shape: Sequence[int] | int | None = None,
    dtype: DTypeLike | None = None,
    reader: TableReader | None = None,
) -> TensorData:
    """Read the tensor in a file, and check its structure.

    path    of the file, or an open file of text or bytes
    format  a Format or its letters; where not given, CSF for .tns, dense for arrays in .mtx,
            `matrix_format` for the other matrices there, and for .npz the format it was saved in
    shape   where the file does not say, or to enlarge it; else the largest coordinates
    dtype   of the values, which must be numbers that it holds, but for rounding to float32; where
            not given, float64 for .tns, and as the file says elsewhere
    reader  of long tables of numbers, where there is one that is faster

    Duplicates are summed, but for those of a coordinate list (COO), which has the entries of a text
    in their order. Raises FileNotFoundError, FileFormatError naming the file and the line,
    StructureError for an .npz whose arrays contradict each other, or OutOfMemoryError.
    """
    wanted_dtype = None if dtype is None else as_dtype(dtype, "dtype")
    sizes = None if shape is None else check_shape(shape)
    with room(f"the tensor in {str(path)!r}"):
        source = source_of(path)
        data = data_from(source, format, sizes, reader)
        if wanted_dtype is None:
            return data
        values = converted(data.values, wanted_dtype, source.name)
        return replace(data, values=values, fill=converted_fill(data, wanted_dtype, source.name))


def data_from(
    source: Source,
    format: Format | str | None,
    shape: tuple[int, ...] | None,
    reader: TableReader | None,
) -> TensorData:
    """The tensor in the text or the archive of a source."""
    content, name = source.content, source.name
    match source.suffix:
        case ".tns" | ".ttx":
            coords, values, found, fill = read_tns(content, name, shape, reader)
            wanted = chosen(format, CSF(len(found)), name)
            return listed(coords, values, found, wanted, fill)
        case ".mtx":
            return data_from_mtx(read_mtx(content, name, reader), name, format, shape)
        case ".npz":
            return data_from_npz(content, name, format, shape)
        case other:
            raise FileFormatError(
                f"Expected a file name that ends in one of {KNOWN}, found {other!r} in {name!r}",
                hint="rename the file if it has one of these formats",
            )


MANY = 1 << 20
"""Rows that a matrix may have whatever it stores: their pointers take 4 MB."""

ROWS_AN_ENTRY = 64
"""The most rows an entry for which a matrix of more rows is stored by rows."""


def matrix_format(shape: tuple[int, ...], entries: int) -> Format:
    """CSR, which takes room for each row; COO where more than 2^20 rows are over 64 an entry.

    >>> matrix_format((10**12, 3), 1) == COO(2)
    True
    """
    by_rows = shape[0] <= max(MANY, ROWS_AN_ENTRY * entries)
    return CSR if by_rows else COO(2)


def converted(values: Array, dtype: np.dtype[Any], name: str) -> Array:
    """The values in another dtype: rounded to a float's digits, otherwise exactly.

    Raises FileFormatError for a number that the dtype does not hold, as 1.5 or 300 in int8.
    """
    with np.errstate(invalid="ignore", over="ignore"), catch_warnings():
        simplefilter("ignore", np.exceptions.ComplexWarning)
        found = values.astype(dtype, copy=False)
    if number_kind(dtype) in "fc" and np.can_cast(values.dtype, dtype, "same_kind"):
        return found
    differs = np.flatnonzero(found != values)
    if differs.size:
        raise FileFormatError(
            f"{name}: Expected values that {dtype} holds exactly, found "
            f"{values.reshape(-1)[differs[0]]}",
            hint="read them in their own dtype, and convert them with .astype() where they may be "
            "cut",
        )
    return found


def converted_fill(data: TensorData, dtype: np.dtype[Any], name: str) -> Fill:
    """The fill value in another dtype. Raises FileFormatError where that does not hold it."""
    try:
        return fill_of(as_number(data.fill, data.dtype), dtype)
    except NumberOverflowError as error:
        raise FileFormatError(f"{name}: {error.message}", hint=error.hint) from None


def write(data: TensorData, path: str | Path) -> None:
    """Store a tensor in a .tns or .mtx file, compressed where the name ends in .gz,
    .bz2, .xz or .zst.

    Values are written with as many digits as it takes to read the same numbers back, and a fill
    value other than 0 as a comment. Raises
    FormatError where the file format cannot hold the tensor, FileFormatError for another file name.
    """
    path = as_path(path)
    check_suffix(path)
    text = mtx_text(data) if suffix(path) == ".mtx" else tns_text(data)
    content = text.encode()
    way = COMPRESSIONS.get(path.suffix.lower())
    path.write_bytes(content if way is None else way.compress(content))


def check_suffix(path: Path) -> None:
    """Raise FileFormatError for the name of a file that `write` does not know how to write."""
    if suffix(path) not in (".tns", ".ttx", ".mtx"):
        raise FileFormatError(
            f"Expected a file name that ends in .tns or .mtx (and then .gz, .bz2, .xz or .zst), "
            f"found {suffix(path)!r} in {str(path)!r}",
            hint="scipy.sparse.save_npz writes .npz files",
        )


def chosen(format: Format | str | None, default: Format, name: str) -> Format:
    """The format asked for, or the file's own."""
    if format is None:
        return default
    wanted = format if isinstance(format, Format) else named(format, default.order)
    if wanted.order != default.order:
        raise FormatError(
            f"Expected a format of {default.order} levels for {name}, found {str(wanted)!r} of "
            f"{wanted.order}",
            hint="write one level letter a mode",
        )
    return wanted


def data_from_mtx(
    matrix: Matrix, name: str, format: Format | str | None, shape: tuple[int, ...] | None
) -> TensorData:
    """A Matrix Market file's matrix: sparse for coordinates, dense for arrays."""
    found = enlarged(shape, matrix.shape, name)
    if matrix.array is None:
        usual = matrix_format(found, len(matrix.values))
        wanted = chosen(format, usual, name)
        return listed(matrix.coords, matrix.values, found, wanted, matrix.fill)
    dense = Format.parse("dd")
    data = dense_data(matrix.array, dense, matrix.fill)
    wanted = chosen(format, dense, name)
    if wanted == dense and found == matrix.shape:
        return data
    return pack_coo(*unpack(data, drop_fill=True), found, wanted, fill=matrix.fill)


def listed(
    coords: Sequence[Array], values: Array, shape: tuple[int, ...], format: Format, fill: Fill
) -> TensorData:
    """The tensor of a file's entries: as a coordinate list in their order, duplicates included."""
    if format == COO(len(shape)):
        return replace(from_coordinates(coords, values, shape), fill=fill)
    return pack_coo(coords, values, shape, format, fill=fill)


def enlarged(asked: tuple[int, ...] | None, found: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The shape asked for, which must hold the file's own."""
    if asked is None:
        return found
    if len(asked) != len(found) or any(a < f for a, f in zip(asked, found, strict=True)):
        raise FileFormatError(
            f"{name}: Expected a shape that holds the file's {found}, found {asked}",
            hint="shape= may enlarge a tensor, not cut it",
        )
    return asked


def data_from_npz(
    content: bytes, name: str, format: Format | str | None, shape: tuple[int, ...] | None
) -> TensorData:
    """A matrix saved by scipy.sparse.save_npz."""
    import scipy.sparse as sp

    try:
        stored: Any = sp.load_npz(BytesIO(content))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(
            f"{name}: Expected a file written by scipy.sparse.save_npz, found one that scipy "
            f"cannot read ({error})",
            hint="fetch the file again, or save it with scipy.sparse.save_npz",
        ) from error
    data = saved_data(stored, name)
    found = enlarged(shape, data.shape, name)
    wanted = chosen(format, data.format, name)
    if wanted == data.format and found == data.shape:
        return data
    return pack_coo(*unpack(data), found, wanted)


def saved_data(stored: Any, name: str) -> TensorData:
    """A loaded scipy matrix as checked TensorData: CSR and CSC as they are, the rest as COO."""
    try:
        if stored.format in ("csr", "csc") and stored.ndim == 2:
            format = CSR if stored.format == "csr" else CSC
            data = from_compressed(stored.indptr, stored.indices, stored.data, stored.shape, format)
        else:
            plain = stored.tocoo()
            data = from_coordinates(plain.coords, plain.data, plain.shape)
        check(data)
    except TacoError as error:
        raise type(error)(f"{name}: {error.message}", hint=error.hint) from error
    return data
