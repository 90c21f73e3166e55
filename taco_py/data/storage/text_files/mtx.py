"""Matrix Market .mtx text (Boisvert, Pozo and Remington 1996).

%%MatrixMarket matrix coordinate real general      array | coordinate;
% comments                                         real | integer | complex | pattern;
3 3 2                                              general | symmetric | skew-symmetric |
                                                   hermitian
1 1 5.0
3 2 -1e-3

A comment `% fill_value -inf` sets the value of elements without an entry. It is an extension of
this package: other readers take them as 0.
"""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import scipy.sparse as sp

from codegen.records import dataclass
from taco_py.data.storage.pack import unpack
from taco_py.data.storage.plain import Row
from taco_py.data.storage.table import read_entries, read_values
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.storage.text_files.text import TableReader, Text, quoted
from taco_py.data.storage.text_files.tns import fill_comment, fill_read, fill_word, header_line
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.fill import Fill
from taco_py.language.notation.half_types import computed_dtype

CHOICES = (
    ("matrix",),
    ("coordinate", "array"),
    ("real", "double", "integer", "unsigned-integer", "complex", "pattern"),
    ("general", "symmetric", "skew-symmetric", "hermitian"),
)
WORDS = {"pattern": 0, "complex": 2}  # words of a value; one of the other fields
LIMITS = {"integer": (-(2**63), 2**63 - 1), "unsigned-integer": (0, 2**64 - 1)}


@dataclass(frozen=True, slots=True)
class Matrix:
    """A file's matrix with symmetry expanded: `array`, or `coords` and `values`.

    fill  the value of all other elements
    """

    shape: tuple[int, int]
    coords: tuple[Array, ...]
    values: Array
    array: Array | None = None
    fill: Fill = ""


@dataclass(frozen=True, slots=True)
class Banner:
    """The first line's last three words."""

    layout: str
    field: str
    symmetry: str

    def row(self, shape: tuple[int, ...]) -> Row:
        """Return the layout of a line of the table, whose coordinates are at most the sizes of
        `shape`."""
        words = WORDS.get(self.field, 1)
        if self.field in LIMITS:
            return Row(len(shape), words, True, shape, LIMITS[self.field])
        return Row(len(shape), words, False, shape)


def read_mtx(content: bytes, name: str, reader: TableReader | None = None) -> Matrix:
    """Return the matrix of a Matrix Market text; integers are int64, patterns are ones of float64.

    Raises FileFormatError naming the line with a malformed banner, sizes, coordinate or value, or
    the line where the file has fewer or more entries than announced.
    """
    text = Text(content, 1, name, reader=reader)
    banner = read_banner(text)
    comments, text = text.split_comments()
    is_array = banner.layout == "array"
    sizes = header_line(text, 2 if is_array else 3)
    shape = (sizes[0], sizes[1])
    require_square(banner, shape, text)
    body = text.after(1)
    if is_array:
        matrix = read_array(banner, shape, body)
    else:
        matrix = read_coordinates(banner, shape, sizes[2], body)
    return replace(matrix, fill=fill_read(fill_word(comments), matrix.values.dtype, name))


def read_banner(text: Text) -> Banner:
    """Parse the first line."""
    line = text.first()
    words = line.decode("latin-1").lower().split()
    if not words or words[0] not in ("%%matrixmarket", "%matrixmarket"):
        raise text.fault(1, f"Expected %%MatrixMarket, found {quoted(line)}")
    if len(words) < 5:
        raise text.fault(1, f"Expected five words, found {len(words)}: {quoted(line)}")
    for word, choices in zip(words[1:5], CHOICES, strict=True):
        if word not in choices:
            raise text.fault(1, f"Expected one of {', '.join(choices)}, found {word!r}")
    banner = Banner(words[2], words[3], words[4])
    if banner.layout == "array" and banner.field == "pattern":
        raise text.fault(1, "Expected values in an array file, found field 'pattern'")
    return banner


def require_square(banner: Banner, shape: tuple[int, int], text: Text) -> None:
    """Raise FileFormatError for a matrix with a symmetry that is not square."""
    if banner.symmetry != "general" and shape[0] != shape[1]:
        raise text.fault(
            text.first_line,
            f"Expected a square matrix for {banner.symmetry}, found {shape[0]} by {shape[1]}",
        )


def require_no_diagonal(on_diagonal: Array, text: Text) -> None:
    """Raise FileFormatError for nonzeros on the diagonal of a skew-symmetric matrix."""
    if on_diagonal.any():
        raise text.fault(
            text.line_of_entry(int(on_diagonal.argmax())),
            "Expected no nonzero on the diagonal of a skew-symmetric matrix, found one",
        )


def read_coordinates(banner: Banner, shape: tuple[int, int], count: int, text: Text) -> Matrix:
    """Return the entries of a coordinate file."""
    row = banner.row(shape)
    rows, columns, values = read_entries(text, row, shape, count, banner.field)
    if banner.symmetry == "skew-symmetric":
        require_no_diagonal((rows == columns) & (values != 0), text)
    if banner.symmetry != "general":
        mirrored = np.flatnonzero(rows != columns)
        rows, columns, values = (
            np.concatenate((rows, columns[mirrored])),
            np.concatenate((columns, rows[mirrored])),
            np.concatenate((values, reflected(banner, values[mirrored]))),
        )
    return Matrix(shape, (rows, columns), values)


def read_array(banner: Banner, shape: tuple[int, int], text: Text) -> Matrix:
    """Return an array file, column by column; with a symmetry it has only the part below the
    diagonal."""
    rows, columns = shape
    skew = 1 if banner.symmetry == "skew-symmetric" else 0
    general = banner.symmetry == "general"
    count = rows * columns if general else max(rows - skew, 0) * (rows - skew + 1) // 2
    values = read_values(text, banner.row(()), count, banner.field)
    if general:
        return Matrix(shape, (), values, values.reshape(columns, rows).T)
    upper = np.triu_indices(rows, skew)  # row-major above the diagonal is column-major below it
    array = np.zeros(shape, dtype=values.dtype)
    array[upper] = reflected(banner, values)
    array[upper[::-1]] = values
    return Matrix(shape, (), values, array)


def reflected(banner: Banner, values: Array) -> Array:
    """Return the values on the other side of the diagonal."""
    match banner.symmetry:
        case "skew-symmetric":
            return -values
        case "hermitian":
            return values.conj()
        case _:
            return values


def mtx_bytes(data: TensorData) -> bytes:
    """Return the matrix as Matrix Market text: array for an all-dense format, else coordinate.

    scipy writes it (Lugowski 2023), each number with the fewest digits that read back equal.
    """
    from scipy.io import mmwrite

    if data.format.order != 2:
        raise FormatError(
            f"Expected a tensor of order 2 for a Matrix Market file, found order "
            f"{data.format.order}",
            hint="FROSTT files (.tns) hold any order",
        )
    kind = data.dtype.kind
    field = {"b": "integer", "i": "integer", "u": "unsigned-integer", "c": "complex"}.get(
        kind, "real"
    )
    stream = BytesIO()
    comment = "".join(fill_comment(data, ""))
    options: Any = {"comment": comment, "field": field, "symmetry": "general"}
    if data.format.is_dense:
        mmwrite(stream, in_plain_type(data.values), **options)
    else:
        coords, values = unpack(data, drop_fill=True)
        parts: Any = (in_plain_type(values), tuple(coords))
        mmwrite(stream, sp.coo_array(parts, shape=data.shape), **options)
    return stream.getvalue()


def in_plain_type(values: Array) -> Array:
    """Convert values to a type that scipy writes exactly: truths as 0 and 1, floats in 64 bits."""
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    wide = {"f": np.float64, "c": np.complex128}.get(computed_dtype(values.dtype).kind)
    return values if wide is None else values.astype(wide, copy=False)
