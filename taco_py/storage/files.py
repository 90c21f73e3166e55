"""Tensors in files: FROSTT .tns, Matrix Market .mtx, scipy's .npz, each also compressed as .gz."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from codecs import BOM_UTF8
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
    OperandTypeError,
    TacoError,
)
from taco_py.formats import CSC, CSF, CSR, Format
from taco_py.storage.borrow import as_dtype, from_compressed, from_coordinates
from taco_py.storage.check import check, check_shape
from taco_py.storage.mtx import mtx_text, read_mtx
from taco_py.storage.pack import dense_data, pack_coo, unpack
from taco_py.storage.tensor_data import Array, TensorData
from taco_py.storage.tns import read_tns, tns_text

KNOWN = ".tns, .ttx, .mtx, .npz, each also with .gz"


def read(
    path: str | Path,
    format: Format | str | None = None,
    shape: Sequence[int] | int | None = None,
    dtype: DTypeLike | None = None,
) -> TensorData:
    """The tensor in a file, its structure checked.

    format  a Format or its letters; where not given, CSF for .tns, CSR or dense for .mtx, and for
            .npz
            the format it was saved in
    shape   where the file does not say, or to enlarge it; else the largest coordinates
    dtype   of the values, which must be numbers that it holds, but for rounding to float32; where
            not given, float64 for .tns, and as the file says elsewhere

    Duplicates are summed. Raises FileNotFoundError, FileFormatError naming the file and the line,
    or StructureError for an .npz whose arrays contradict each other.
    """
    path = as_path(path)
    wanted_dtype = None if dtype is None else as_dtype(dtype, "dtype")
    sizes = None if shape is None else check_shape(shape)
    content = contents(path)
    match suffix(path):
        case ".tns" | ".ttx":
            coords, values, found = read_tns(content, str(path), sizes)
            data = pack_coo(coords, values, found, chosen(format, CSF(len(found)), path))
        case ".mtx":
            data = data_from_mtx(content, path, format, sizes)
        case ".npz":
            data = data_from_npz(content, path, format, sizes)
        case other:
            raise FileFormatError(
                f"Expected a file name that ends in one of {KNOWN}, found {other!r} in "
                f"{str(path)!r}",
                hint="rename the file if it has one of these formats",
            )
    if wanted_dtype is None:
        return data
    return replace(data, values=converted(data.values, wanted_dtype, path))


def converted(values: Array, dtype: np.dtype[Any], path: Path) -> Array:
    """The values in another dtype: rounded to a float's digits, otherwise exactly.

    Raises FileFormatError for a number that the dtype does not hold, as 1.5 or 300 in int8.
    """
    with np.errstate(invalid="ignore", over="ignore"), catch_warnings():
        simplefilter("ignore", np.exceptions.ComplexWarning)
        found = values.astype(dtype, copy=False)
    if dtype.kind in "fc" and np.can_cast(values.dtype, dtype, "same_kind"):
        return found
    differs = np.flatnonzero(found != values)
    if differs.size:
        raise FileFormatError(
            f"{path}: Expected values that {dtype} holds exactly, found "
            f"{values.reshape(-1)[differs[0]]}",
            hint="read them in their own dtype, and convert them with .astype() where they may be "
            "cut",
        )
    return found


def as_path(path: Any) -> Path:
    """The user's path. Raises OperandTypeError for what is none."""
    try:
        return Path(path)
    except TypeError:
        raise OperandTypeError(
            f"Expected a path as a string or pathlib.Path, found {type(path).__name__}",
            hint='as in "matrix.mtx"',
        ) from None


def write(data: TensorData, path: str | Path) -> None:
    """Store a tensor in a .tns or .mtx file, compressed where the name ends in .gz.

    Values are written with as many digits as it takes to read the same numbers back. Raises
    FormatError where the file format cannot hold the tensor, FileFormatError for another file name.
    """
    path = as_path(path)
    check_suffix(path)
    text = mtx_text(data) if suffix(path) == ".mtx" else tns_text(data)
    content = text.encode()
    path.write_bytes(gzip.compress(content, 6) if path.suffix == ".gz" else content)


def check_suffix(path: Path) -> None:
    """Raise FileFormatError for the name of a file that `write` does not know how to write."""
    if suffix(path) not in (".tns", ".ttx", ".mtx"):
        raise FileFormatError(
            f"Expected a file name that ends in .tns or .mtx (or .tns.gz, .mtx.gz), found "
            f"{suffix(path)!r} in {str(path)!r}",
            hint="scipy.sparse.save_npz writes .npz files",
        )


def suffix(path: Path) -> str:
    """The ending that says what is in the file, in lower case: .gz left out."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


def contents(path: Path) -> bytes:
    """The bytes of a file, uncompressed; FileFormatError where the compressed data are damaged."""
    content = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return content.removeprefix(BOM_UTF8)
    try:
        return gzip.decompress(content).removeprefix(BOM_UTF8)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(
            f"{path}: Expected gzip data up to line {whole_lines(content) + 1}, found them damaged "
            f"or truncated there ({error})",
            hint="fetch the file again",
        ) from error


def whole_lines(content: bytes) -> int:
    """The number of line ends in as much of damaged gzip data as can be read."""
    stream, lines = zlib.decompressobj(wbits=31), 0
    try:
        for start in range(0, len(content), 4096):
            lines += stream.decompress(content[start : start + 4096]).count(b"\n")
    except zlib.error:
        return lines  # damaged from here on: this is the answer, not a fault
    return lines


def chosen(format: Format | str | None, default: Format, path: Path) -> Format:
    """The format asked for, or the file's own."""
    if format is None:
        return default
    wanted = format if isinstance(format, Format) else Format.parse(format)
    if wanted.order != default.order:
        raise FormatError(
            f"Expected a format of {default.order} levels for {path}, found {str(wanted)!r} of "
            f"{wanted.order}",
            hint="write one level letter a mode",
        )
    return wanted


def data_from_mtx(
    content: bytes, path: Path, format: Format | str | None, shape: tuple[int, ...] | None
) -> TensorData:
    """A Matrix Market file's matrix: CSR for coordinates, dense for arrays, unless told."""
    matrix = read_mtx(content, str(path))
    found = enlarged(shape, matrix.shape, path)
    if matrix.array is None:
        return pack_coo(matrix.coords, matrix.values, found, chosen(format, CSR, path))
    dense = Format.parse("dd")
    data = dense_data(matrix.array, dense)
    wanted = chosen(format, dense, path)
    if wanted == dense and found == matrix.shape:
        return data
    return pack_coo(*unpack(data, drop_zeros=True), found, wanted)


def enlarged(asked: tuple[int, ...] | None, found: tuple[int, ...], path: Path) -> tuple[int, ...]:
    """The shape asked for, which must hold the file's own."""
    if asked is None:
        return found
    if len(asked) != len(found) or any(a < f for a, f in zip(asked, found, strict=True)):
        raise FileFormatError(
            f"{path}: Expected a shape that holds the file's {found}, found {asked}",
            hint="shape= may enlarge a tensor, not cut it",
        )
    return asked


def data_from_npz(
    content: bytes, path: Path, format: Format | str | None, shape: tuple[int, ...] | None
) -> TensorData:
    """A matrix saved by scipy.sparse.save_npz."""
    import scipy.sparse as sp

    try:
        stored: Any = sp.load_npz(BytesIO(content))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(
            f"{path}: Expected a file written by scipy.sparse.save_npz, found one that scipy "
            f"cannot read ({error})",
            hint="fetch the file again, or save it with scipy.sparse.save_npz",
        ) from error
    data = saved_data(stored, path)
    found = enlarged(shape, data.shape, path)
    wanted = chosen(format, data.format, path)
    if wanted == data.format and found == data.shape:
        return data
    return pack_coo(*unpack(data), found, wanted)


def saved_data(stored: Any, path: Path) -> TensorData:
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
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from error
    return data
