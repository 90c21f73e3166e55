"""Tensors in files: texts (FROSTT .tns, TACO's .ttx, Matrix Market .mtx), and the kinds of files
in the table of `containers`; each also compressed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import DTypeLike

from taco_py.data.storage.borrow import as_dtype, from_coordinates
from taco_py.data.storage.check import check_shape
from taco_py.data.storage.containers.container import Container
from taco_py.data.storage.containers.containers import (
    ENDINGS,
    container_named,
    container_that_starts,
)
from taco_py.data.storage.pack import pack_coo, unpack
from taco_py.data.storage.room import room
from taco_py.data.storage.sources import COMPRESSIONS, Source, as_path, source_of, suffix
from taco_py.data.storage.tensor_data import Array, TensorData, dense_data
from taco_py.data.storage.text_files.mtx import Matrix, mtx_bytes, read_mtx
from taco_py.data.storage.text_files.text import TableReader
from taco_py.data.storage.text_files.tns import read_tns, tns_text
from taco_py.language.diagnostics.errors import (
    FileFormatError,
    FormatError,
    InternalError,
    MissingExtraError,
    NumberOverflowError,
    TacoError,
)
from taco_py.language.fill import Fill, as_number, fill_of
from taco_py.language.formats import COO, CSF, CSR, Format, format_named
from taco_py.language.notation.half_types import number_kind

TEXTS = (".tns", ".ttx", ".mtx")
SUFFIXES = f"{', '.join((*TEXTS, *ENDINGS))}, each also with .gz, .bz2, .xz or .zst"


def read(
    path: Any,
    format: Format | str | None = None,
    shape: Sequence[int] | int | None = None,
    dtype: DTypeLike | None = None,
    reader: TableReader | None = None,
    key: str | None = None,
) -> TensorData:
    """Read the tensor in a file, and check its structure.

    path    of the file, or an open file of text or bytes
    format  a Format or its letters; by default CSF for .tns, dense for arrays in .mtx,
            `matrix_format` for other matrices in .mtx, and elsewhere the format of the file
    shape   where the file has none, or to enlarge it; by default the largest coordinates plus one
    dtype   of the values, which it must hold exactly, up to rounding to float32; by default float64
            for .tns, and that of the file elsewhere
    reader  a faster reader of long tables of numbers, if any
    key     of the tensor in a file of several

    Duplicates are summed, except in a coordinate list (COO), which has the entries of a text in
    their order. Raises FileNotFoundError, FileFormatError naming the file and the line,
    StructureError for an .npz whose arrays contradict each other, or OutOfMemoryError.
    """
    wanted_dtype = None if dtype is None else as_dtype(dtype, "dtype")
    sizes = None if shape is None else check_shape(shape)
    with room(f"the tensor in {str(path)!r}"), named_faults(path):
        data, name = read_named(path, format, sizes, reader, key)
        if wanted_dtype is None:
            return data
        values = converted(data.values, wanted_dtype, name)
        return replace(data, values=values, fill=converted_fill(data, wanted_dtype, name))


@contextmanager
def named_faults(path: Any) -> Iterator[None]:
    """Raise FileFormatError with a file's name for any error of a reader about its content.

    Errors of the system, as for a missing or unreadable file, are unchanged.
    """
    name = str(path if isinstance(path, str | os.PathLike) else getattr(path, "name", ""))
    try:
        yield
    except (MemoryError, MissingExtraError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if isinstance(error, TacoError) and not isinstance(error, InternalError):
            if name not in str(error):
                error.add_note(f"in {name}")
            raise
        raise FileFormatError(
            f"{name or 'the file'}: Expected a tensor, found a file that is damaged, or of another "
            f"kind ({type(error).__name__}: {error})",
            hint="fetch the file again, or write it with tp.write",
        ) from error


def read_named(
    path: Any,
    format: Format | str | None,
    shape: tuple[int, ...] | None,
    reader: TableReader | None,
    key: str | None,
) -> tuple[TensorData, str]:
    """Return the tensor in a file, and the file's name in messages."""
    container = file = None
    if not hasattr(path, "read") or isinstance(path, os.PathLike):  # a library opens the file
        file = as_path(path)
        container = container_named(file.name)
    if container is not None and file is not None:
        check_key(container, key, str(file))
        data, name = container.read(file, str(file), key or ""), str(file)
        return stored_as_asked(data, format, shape, name), name
    source = source_of(path)
    container = container_of(source)
    check_key(container, key, source.name)
    if container is None:
        return data_from(source, format, shape, reader), source.name
    data = container.read(BytesIO(source.content), source.name, key or "")
    return stored_as_asked(data, format, shape, source.name), source.name


def container_of(source: Source) -> Container | None:
    """Return the kind of a file by its ending or its first bytes; None for a text."""
    low = source.name.lower()
    plain = next((low.removesuffix(end) for end in COMPRESSIONS if low.endswith(end)), low)
    container = container_named(plain)
    if container is not None or source.suffix in TEXTS:
        return container
    return container_that_starts(source.content)


def check_key(container: Container | None, key: Any, name: str) -> None:
    """Raise FileFormatError for a key of a file that holds one tensor."""
    if key is not None and (container is None or not container.keyed or not isinstance(key, str)):
        raise FileFormatError(
            f"{name}: Expected no key, for such a file holds one tensor, found {key!r}"
            if isinstance(key, str)
            else f"{name}: Expected the key of a tensor as a text, found {key!r}",
            hint='HDF5 files (.h5, .h5ad) hold several, as in key="layers/counts"',
        )


def stored_as_asked(
    data: TensorData, format: Format | str | None, shape: tuple[int, ...] | None, name: str
) -> TensorData:
    """Convert the tensor of a file to a requested format and shape."""
    target_shape = enlarged(shape, data.shape, name)
    target_format = choose_format(format, data.format, name)
    if target_format == data.format and target_shape == data.shape:
        return data
    return pack_coo(*unpack(data, drop_fill=True), target_shape, target_format, fill=data.fill)


def data_from(
    source: Source,
    format: Format | str | None,
    shape: tuple[int, ...] | None,
    reader: TableReader | None,
) -> TensorData:
    """Return the tensor in the text of a source."""
    content, name = source.content, source.name
    match source.suffix:
        case ".tns" | ".ttx":
            coords, values, stored_shape, fill = read_tns(content, name, shape, reader)
            target_format = choose_format(format, CSF(len(stored_shape)), name)
            return pack_entries(coords, values, stored_shape, target_format, fill)
        case ".mtx":
            return data_from_mtx(read_mtx(content, name, reader), name, format, shape)
        case other:
            raise FileFormatError(
                f"Expected a file name that ends in one of {SUFFIXES}, found {other!r} in {name!r}",
                hint="rename the file if it has one of these formats",
            )


MANY_ROWS = 1 << 20
"""The number of rows that a matrix may have in any case: their pointers take 4 MB."""

ROWS_AN_ENTRY = 64
"""The largest number of rows per entry for which a matrix with more rows is stored by rows."""


def matrix_format(shape: tuple[int, ...], entries: int) -> Format:
    """Return CSR, or COO for more than 2^20 rows and over 64 rows an entry.

    >>> matrix_format((10**12, 3), 1) == COO(2)
    True
    """
    by_rows = shape[0] <= max(MANY_ROWS, ROWS_AN_ENTRY * entries)
    return CSR if by_rows else COO(2)


def converted(values: Array, dtype: np.dtype[Any], name: str) -> Array:
    """Convert the values to another dtype: rounded to a float's digits, otherwise exactly.

    Raises FileFormatError for a number that the dtype cannot hold, as 1.5 or 300 in int8.
    """
    with np.errstate(invalid="ignore", over="ignore"), catch_warnings():
        simplefilter("ignore", np.exceptions.ComplexWarning)
        result = values.astype(dtype, copy=False)
    if number_kind(dtype) in "fc" and np.can_cast(values.dtype, dtype, "same_kind"):
        return result
    differs = np.flatnonzero(result != values)
    if differs.size:
        raise FileFormatError(
            f"{name}: Expected values that {dtype} holds exactly, found "
            f"{values.reshape(-1)[differs[0]]}",
            hint="read them in their own dtype, and convert them with .astype() where they may be "
            "cut",
        )
    return result


def converted_fill(data: TensorData, dtype: np.dtype[Any], name: str) -> Fill:
    """Convert the fill value to another dtype. Raises FileFormatError where the dtype cannot hold
    it."""
    try:
        return fill_of(as_number(data.fill, data.dtype), dtype)
    except NumberOverflowError as error:
        raise FileFormatError(f"{name}: {error.message}", hint=error.hint) from None


def write(data: TensorData, path: str | Path, key: str | None = None) -> None:
    """Write a tensor in the file format of a path, compressed for .gz, .bz2, .xz or .zst.

    Values are written with enough digits to read the same numbers back, and a fill value other than
    0 as a comment. Raises FormatError where the file format cannot hold the tensor, FileFormatError
    for another file name.
    """
    path = as_path(path)
    check_suffix(path)
    compression = COMPRESSIONS.get(path.suffix.lower())
    container = container_named(path.name if compression is None else path.stem)
    check_key(container, key, str(path))
    if container is None:
        ending = suffix(path)
        content = mtx_bytes(data) if ending == ".mtx" else tns_text(data, ending == ".ttx").encode()
        path.write_bytes(content if compression is None else compression.compress(content))
    elif compression is None:
        container.write(data, path, key or "")
    else:
        buffer = BytesIO()
        container.write(data, buffer, key or "")
        path.write_bytes(compression.compress(buffer.getvalue()))


def check_suffix(path: Path) -> None:
    """Raise FileFormatError for the name of a file that `write` cannot write."""
    name = path.stem if path.suffix.lower() in COMPRESSIONS else path.name
    if suffix(path) not in TEXTS and container_named(name) is None:
        raise FileFormatError(
            f"Expected a file name that ends in one of {SUFFIXES}, found {suffix(path)!r} in "
            f"{str(path)!r}",
            hint="as in matrix.mtx, tensor.tns or matrix.h5ad",
        )


def choose_format(format: Format | str | None, default: Format, name: str) -> Format:
    """Return the requested format, by default the file's own."""
    if format is None:
        return default
    target = format if isinstance(format, Format) else format_named(format, default.order)
    if target.order != default.order:
        raise FormatError(
            f"Expected a format of {default.order} levels for {name}, found {str(target)!r} of "
            f"{target.order}",
            hint="write one level letter a mode",
        )
    return target


def data_from_mtx(
    matrix: Matrix, name: str, format: Format | str | None, shape: tuple[int, ...] | None
) -> TensorData:
    """Return a Matrix Market file's matrix: sparse for coordinates, dense for arrays."""
    target_shape = enlarged(shape, matrix.shape, name)
    if matrix.array is None:
        usual = matrix_format(target_shape, len(matrix.values))
        target_format = choose_format(format, usual, name)
        return pack_entries(matrix.coords, matrix.values, target_shape, target_format, matrix.fill)
    dense = Format.parse("dd")
    data = dense_data(matrix.array, dense, matrix.fill)
    target_format = choose_format(format, dense, name)
    if target_format == dense and target_shape == matrix.shape:
        return data
    return pack_coo(*unpack(data, drop_fill=True), target_shape, target_format, fill=matrix.fill)


def pack_entries(
    coords: Sequence[Array], values: Array, shape: tuple[int, ...], format: Format, fill: Fill
) -> TensorData:
    """Return the tensor of a file's entries.

    A coordinate list has them in their order, duplicates included.
    """
    if format == COO(len(shape)):
        return replace(from_coordinates(coords, values, shape), fill=fill)
    return pack_coo(coords, values, shape, format, fill=fill)


def enlarged(
    requested: tuple[int, ...] | None, stored_shape: tuple[int, ...], name: str
) -> tuple[int, ...]:
    """Return the requested shape, which must hold the file's own."""
    if requested is None:
        return stored_shape
    if len(requested) != len(stored_shape) or any(
        a < f for a, f in zip(requested, stored_shape, strict=True)
    ):
        raise FileFormatError(
            f"{name}: Expected a shape that holds the file's {stored_shape}, found {requested}",
            hint="shape= may enlarge a tensor, not cut it",
        )
    return requested
