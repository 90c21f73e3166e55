"""Matrix Market .mtx text (Boisvert, Pozo and Remington 1996).

%%MatrixMarket matrix coordinate real general      array | coordinate;
% comments                                         real | integer | complex | pattern;
3 3 2                                              general | symmetric | skew-symmetric |
                                                   hermitian
1 1 5.0
3 2 -1e-3
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.diagnostics.errors import FormatError
from taco_py.storage.pack import unpack
from taco_py.storage.tensor_data import Array, TensorData
from taco_py.storage.text import Text, parse_number, read_table, shown
from taco_py.storage.tns import EXACT, coordinates, header_line

CHOICES = (
    ("matrix",),
    ("coordinate", "array"),
    ("real", "double", "integer", "unsigned-integer", "complex", "pattern"),
    ("general", "symmetric", "skew-symmetric", "hermitian"),
)
WORDS = {"pattern": 0, "complex": 2}  # words of a value; one of the other fields
NUMPY = {"integer": np.int64, "unsigned-integer": np.uint64}


@dataclass(frozen=True, slots=True)
class Matrix:
    """A file's matrix, symmetry written out: `array`, or `coords` and `values`."""

    shape: tuple[int, int]
    coords: tuple[Array, ...]
    values: Array
    array: Array | None = None


@dataclass(frozen=True, slots=True)
class Banner:
    """The first line's last three words."""

    layout: str
    field: str
    symmetry: str

    @property
    def words(self) -> int:
        """Numbers a value takes."""
        return WORDS.get(self.field, 1)


def read_mtx(content: bytes, name: str) -> Matrix:
    """The matrix in a Matrix Market text. Integers are int64, patterns are ones of float64.

    Raises FileFormatError naming the line with a malformed banner, sizes, coordinate or value, or
    at which the file ends before all entries it announces (or goes on).
    """
    text = Text(content, 1, name)
    banner = read_banner(text)
    _, text = text.split_comments()
    is_array = banner.layout == "array"
    sizes = header_line(text, 2 if is_array else 3)
    shape = (sizes[0], sizes[1])
    require_square(banner, shape, text)
    body = text.after(1)
    if is_array:
        return read_array(banner, shape, body)
    return read_coordinates(banner, shape, sizes[2], body)


def read_banner(text: Text) -> Banner:
    """The first line."""
    line = text.first()
    words = line.decode("latin-1").lower().split()
    if not words or words[0] != "%%matrixmarket":
        raise text.fault(1, f"Expected %%MatrixMarket, found {shown(line)}")
    if len(words) != 5:
        raise text.fault(1, f"Expected five words, found {len(words)}: {shown(line)}")
    for word, choices in zip(words[1:], CHOICES, strict=True):
        if word not in choices:
            raise text.fault(1, f"Expected one of {', '.join(choices)}, found {word!r}")
    banner = Banner(words[2], words[3], words[4])
    if banner.layout == "array" and banner.field == "pattern":
        raise text.fault(1, "Expected values in an array file, found field 'pattern'")
    if banner.symmetry == "hermitian" and banner.field != "complex":
        raise text.fault(1, f"Expected complex values for hermitian, found {banner.field!r}")
    return banner


def require_square(banner: Banner, shape: tuple[int, int], text: Text) -> None:
    """A matrix with a symmetry has as many rows as columns."""
    if banner.symmetry != "general" and shape[0] != shape[1]:
        raise text.fault(
            text.first_line,
            f"Expected a square matrix for {banner.symmetry}, found {shape[0]} by {shape[1]}",
        )


def require_no_diagonal(banner: Banner, on_diagonal: Array, text: Text) -> None:
    """A skew-symmetric matrix has zeros there, which are left out."""
    if banner.symmetry == "skew-symmetric" and on_diagonal.any():
        raise text.fault(
            text.line_of_entry(int(on_diagonal.argmax())),
            "Expected no entry on the diagonal of a skew-symmetric matrix, found one",
        )


def read_entries(banner: Banner, columns: int, count: int, text: Text) -> NDArray[np.float64]:
    """The table below the sizes; it must have `count` rows."""
    table = read_table(text, columns)
    if len(table) != count:
        longer = len(table) > count
        line = text.line_of_entry(count) if longer else text.last_line()
        found = "one more" if longer else f"{len(table)} up to here, where the file ends"
        raise text.fault(
            line,
            f"Expected {count} entries as the header says, found {found}",
            "the file may be truncated, or its header wrong",
        )
    return table


def read_coordinates(banner: Banner, shape: tuple[int, int], count: int, text: Text) -> Matrix:
    """The entries of a coordinate file."""
    table = read_entries(banner, 2 + banner.words, count, text)
    rows, columns = coordinates(table[:, :2], shape, text)
    values = field_values(banner, table[:, 2:], text, 2)
    require_no_diagonal(banner, rows == columns, text)
    if banner.symmetry != "general":
        mirrored = np.flatnonzero(rows != columns)
        rows, columns, values = (
            np.concatenate((rows, columns[mirrored])),
            np.concatenate((columns, rows[mirrored])),
            np.concatenate((values, reflected(banner, values[mirrored]))),
        )
    return Matrix(shape, (rows, columns), values)


def read_array(banner: Banner, shape: tuple[int, int], text: Text) -> Matrix:
    """An array file: column after column; with a symmetry, only what is below the diagonal."""
    rows, columns = shape
    skew = 1 if banner.symmetry == "skew-symmetric" else 0
    general = banner.symmetry == "general"
    count = rows * columns if general else (rows - skew) * (rows - skew + 1) // 2
    table = read_entries(banner, banner.words, count, text)
    values = field_values(banner, table, text, 0)
    if general:
        return Matrix(shape, (), values, values.reshape(columns, rows).T)
    upper = np.triu_indices(rows, skew)  # row-major above the diagonal is column-major below it
    array = np.zeros(shape, dtype=values.dtype)
    array[upper] = reflected(banner, values)
    array[upper[::-1]] = values
    return Matrix(shape, (), values, array)


def reflected(banner: Banner, values: Array) -> Array:
    """The values on the other side of the diagonal."""
    match banner.symmetry:
        case "skew-symmetric":
            return -values
        case "hermitian":
            return values.conj()
        case _:
            return values


def field_values(banner: Banner, table: NDArray[np.float64], text: Text, column: int) -> Array:
    """The values of a table with the banner's number of words each."""
    match banner.field:
        case "pattern":
            return np.ones(len(table))
        case "complex":
            return np.ascontiguousarray(table).view(np.complex128)[:, 0]
        case "integer" | "unsigned-integer":
            return integers(banner, table[:, 0], text, column)
        case _:
            return np.ascontiguousarray(table[:, 0])


def integers(banner: Banner, numbers: NDArray[np.float64], text: Text, column: int) -> Array:
    """Integer values; where float64 does not hold them exactly, from the words of the file."""
    dtype = np.dtype(NUMPY[banner.field])
    if len(numbers) == 0 or np.abs(numbers).max() < EXACT:
        whole = numbers.astype(dtype)
        if np.array_equal(whole, numbers):
            return whole
    exact = []
    limits = np.iinfo(dtype)
    for line, words in text.entries():
        word = words[column]
        digits = word.lstrip(b"+-")
        if not digits.isdigit() or not limits.min <= int(word) <= limits.max:
            parse_number(text, line, word)
            raise text.fault(line, f"Expected a 64-bit integer, found {shown(word)}")
        exact.append(int(word))
    return np.array(exact, dtype=dtype)


def mtx_text(data: TensorData) -> str:
    """The matrix as Matrix Market text: array for an all-dense format, else coordinate."""
    if data.format.order != 2:
        raise FormatError(
            f"Expected a tensor of order 2 for a Matrix Market file, found order "
            f"{data.format.order}",
            hint="FROSTT files (.tns) hold any order",
        )
    rows, columns = data.shape
    kind = data.dtype.kind
    field = {"b": "integer", "i": "integer", "u": "unsigned-integer", "c": "complex"}.get(
        kind, "real"
    )
    if data.format.is_dense:
        lines = value_words(data.values.T.reshape(-1))
        sizes, layout = f"{rows} {columns}", "array"
    else:
        coords, values = unpack(data, drop_zeros=True)
        places = [map(str, (column.astype(np.int64) + 1).tolist()) for column in coords]
        lines = list(map(" ".join, zip(*places, value_words(values), strict=True)))
        sizes, layout = f"{rows} {columns} {len(lines)}", "coordinate"
    return "\n".join((f"%%MatrixMarket matrix {layout} {field} general", sizes, *lines)) + "\n"


def value_words(values: Array) -> list[str]:
    """Each value with as many digits as it takes to read it back."""
    if values.dtype.kind == "c":
        pairs = zip(values.real.tolist(), values.imag.tolist(), strict=True)
        return [f"{real!r} {imag!r}" for real, imag in pairs]
    plain = values.astype(np.uint8) if values.dtype.kind == "b" else values
    return [repr(value) for value in plain.tolist()]
