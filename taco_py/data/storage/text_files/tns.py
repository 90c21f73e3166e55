"""FROSTT's .tns text: one entry a line, coordinates from 1, then the value (Smith et al. 2017).

Comments start with # or %. A shape is read in all customary forms: a comment `# shape 3 4 5`; a
line with the order and a line with the sizes (HiParTI); `# extended FROSTT format`, a line "order
nnz" and a line with the sizes (MLIR); `%%MatrixMarket tensor coordinate real general` and a line
with the sizes and nnz (TACO's .ttx). Without one, each size is the largest coordinate.

A comment `# fill_value -inf` sets the value of elements without an entry. It is an extension of
this package: other readers take them as 0.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.data.storage.check import MOST
from taco_py.data.storage.pack import unpack
from taco_py.data.storage.table import read_table
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.storage.text_files.text import BLANKS_HINT, EXACT, TableReader, Text, quoted
from taco_py.language.diagnostics.errors import FileFormatError, FormatError
from taco_py.language.fill import Fill, fill_of
from taco_py.language.notation.half_types import computed_dtype

TTX_BANNER = "%%MatrixMarket tensor coordinate real general"
FILL_COMMENT = re.compile(rb"[#%]+\s*fill_value\s*[:=]?\s*(\S+)")
SHAPE_COMMENT = re.compile(rb"[#%]+\s*shape\s*[:=]?\s*[\[(]?([\d\s,x]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Header:
    """The lines above the entries.

    nnz   None where the file does not announce it
    fill  the word for the value of all other elements, "" for 0
    """

    shape: tuple[int, ...] | None
    nnz: int | None
    entries: Text
    fill: str


def read_tns(
    content: bytes,
    name: str,
    shape: tuple[int, ...] | None = None,
    reader: TableReader | None = None,
) -> tuple[tuple[Array, ...], NDArray[np.float64], tuple[int, ...], Fill]:
    """Return coordinates (from 0, one array a mode), values, shape and fill value of a .tns text.

    shape   overrides the file's own
    Raises FileFormatError naming the line that has too few or too many numbers, a malformed number,
    or a coordinate that is no integer or out of range; or the last line of a file with fewer
    entries than announced.
    """
    header = read_header(Text(content, 1, name, reader=reader))
    known_shape = shape if shape is not None else header.shape
    words = next(header.entries.entries(), None)
    if words is None and known_shape is None:
        raise FileFormatError(
            f"{name}: Expected at least one entry, found none",
            hint="say the sizes of an empty tensor: shape=, or -d= on the command line",
        )
    columns = (
        len(words[1]) if words is not None and known_shape is None else len(known_shape or ()) + 1
    )
    if columns < 2:
        raise header.entries.fault(
            header.entries.first_line,
            "Expected coordinates and a value for each entry, found a tensor without modes",
            "shape= needs one size or more",
        )
    table = read_table(header.entries, columns)
    if header.nnz is not None and header.nnz != len(table):
        raise header.entries.fault(
            header.entries.last_line(),
            f"Expected {header.nnz} entries as the header says, found {len(table)} up to here",
            "the file may be truncated"
            if len(table) < header.nnz
            else "the header counts fewer than there are",
        )
    coords = coordinates(table[:, :-1], known_shape, header.entries)
    sizes = known_shape or tuple(int(column.max()) + 1 for column in coords)
    values = np.ascontiguousarray(table[:, -1])
    return coords, values, sizes, fill_read(header.fill, values.dtype, name)


def coordinates(
    table: NDArray[np.float64], shape: tuple[int, ...] | None, text: Text
) -> tuple[Array, ...]:
    """Return the table's columns as integers from 0. Raises FileFormatError for a malformed one."""
    columns = []
    for mode in range(table.shape[1]):
        column = table[:, mode]
        largest = EXACT if shape is None else min(shape[mode], EXACT)
        # not (…) so that nan is wrong as well
        if len(column) and not (column.min() >= 1 and column.max() <= largest):
            entry = int(np.flatnonzero(~((column >= 1) & (column <= largest)))[0])
            raise text.fault(
                text.line_of_entry(entry),
                f"Expected a coordinate from 1 to {largest} in mode {mode}, found "
                f"{column[entry]:g}",
                "coordinates in files count from 1",
            )
        integers = column.astype(np.int64)
        if not np.array_equal(integers, column):
            entry = int(np.flatnonzero(integers != column)[0])
            raise text.fault(
                text.line_of_entry(entry),
                f"Expected an integer as coordinate of mode {mode}, found {column[entry]:g}",
            )
        integers -= 1
        columns.append(integers)
    return tuple(columns)


def read_header(text: Text) -> Header:
    """Parse the comments and lines above the entries."""
    comments, rest = text.split_comments()
    text_of_comments = b"\n".join(comments).lower()
    order = len(next(rest.entries(), (0, []))[1])
    fill = fill_word(comments)
    if text_of_comments.startswith(b"%%matrixmarket tensor"):
        sizes = header_line(rest, order)
        return Header(sizes[:-1], sizes[-1], rest.after(1), fill)
    if b"extended frostt" in text_of_comments:
        order, nnz = header_line(rest, 2)
        return Header(header_line(rest.after(1), order), nnz, rest.after(2), fill)
    if order == 1:
        (order,) = header_line(rest, 1)
        return Header(header_line(rest.after(1), order), None, rest.after(2), fill)
    return Header(shape_comment(comments), None, rest, fill)


def shape_comment(comments: list[bytes]) -> tuple[int, ...] | None:
    """Return the sizes in a comment, None without one."""
    for comment in comments:
        if match := SHAPE_COMMENT.match(comment):
            return tuple(int(size) for size in re.findall(rb"\d+", match[1]))
    return None


def fill_word(comments: list[bytes]) -> str:
    """Return the word for a fill value in a comment, else ""."""
    matches = (FILL_COMMENT.fullmatch(comment) for comment in comments)
    return next((match[1].decode("latin-1") for match in matches if match), "")


def fill_read(word: str, dtype: np.dtype[Any], name: str) -> Fill:
    """Parse a fill value.

    Raises FileFormatError where it is no number, or the dtype of the values cannot hold it.
    """
    if not word:
        return ""
    try:
        return fill_of(int(word) if dtype.kind in "iu" else complex(word), dtype)
    except (ValueError, OverflowError):
        raise FileFormatError(
            f"{name}: Expected a fill value of type {dtype} as the values are, found {word!r}",
            hint="correct or remove the comment fill_value at the top of the file",
        ) from None


def fill_comment(data: TensorData, mark: str) -> tuple[str, ...]:
    """Return the comment with the fill value; none for 0.

    # fill_value -inf
    """
    fill = "1" if data.dtype.kind == "b" else data.fill
    return (f"{mark} fill_value {fill}",) if data.fill else ()


def header_line(text: Text, count: int) -> tuple[int, ...]:
    """Parse the `count` integers on the text's first line."""
    line = text.first()
    words = line.split()
    if len(words) != count or not all(word.isdigit() for word in words):
        raise text.fault(
            text.first_line,
            f"Expected a header line of {count} integers, found {quoted(line)}",
            BLANKS_HINT if b"," in line else "sizes are whole numbers, none below 0",
        )
    sizes = tuple(int(word) if len(word) < 40 else MOST + 1 for word in words)
    if max(sizes) > MOST:
        raise text.fault(
            text.first_line,
            f"Expected sizes and a number of entries of at most 2^62, found {quoted(line)}",
            "loops count in 64-bit integers",
        )
    return sizes


def tns_text(data: TensorData, ttx: bool = False) -> str:
    """Return the tensor as .tns or .ttx text. Raises FormatError for a scalar or complex values."""
    if data.format.order == 0 or data.dtype.kind == "c":
        problem = "a scalar" if data.format.order == 0 else f"{data.dtype} values"
        raise FormatError(
            f"Expected a tensor of order 1 or more with real values for a .tns file, found "
            f"{problem}",
            hint="a vector of one element holds a scalar"
            if data.format.order == 0
            else "Matrix Market files (.mtx) hold complex matrices",
        )
    coords, values = unpack(data, drop_fill=True)
    columns = [map(str, (column.astype(np.int64) + 1).tolist()) for column in coords]
    numbers = values.astype(np.uint8) if data.dtype.kind == "b" else values
    numbers = numbers.astype(computed_dtype(numbers.dtype), copy=False)
    rows = map(" ".join, zip(*columns, map(repr, numbers.tolist()), strict=True))
    shape = " ".join(map(str, data.shape))
    if ttx:
        fill, sizes = fill_comment(data, "%"), f"{shape} {len(values)}"
        return "\n".join((TTX_BANNER, *(fill or ("%",)), sizes, *rows)) + "\n"
    return "\n".join((f"# shape {shape}", *fill_comment(data, "#"), *rows)) + "\n"
