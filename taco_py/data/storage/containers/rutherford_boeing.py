"""Rutherford-Boeing and Harwell-Boeing files: CSC in columns of fixed width (Duff, Grimes and
Lewis 1997).

    title (72)  key (8)
    lines:  in all, of pointers, of rows, of values (and of right-hand sides: Harwell-Boeing)
    type (3)  rows  columns  entries  0
    (10I8)  (10I8)  (4E20.12)          Fortran's formats of the three parts
    pointers, rows, values             from 1

A type has three letters: r, i, c, p or q (real, integer, complex, pattern, values elsewhere); s, u,
h, z or r (symmetric, unsymmetric, Hermitian, skew, rectangular); a or e (assembled or not). A
matrix with a symmetry is stored as a triangle, which is expanded. Right-hand sides are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.borrow import from_compressed
from taco_py.data.storage.check import check
from taco_py.data.storage.containers.container import Container, File, content_of
from taco_py.data.storage.pack import canonical, pack_coo, unpack
from taco_py.data.storage.tensor_data import Array, TensorData, ordered
from taco_py.language.diagnostics.errors import FileFormatError, FormatError
from taco_py.language.formats import CSC
from taco_py.language.notation.half_types import is_half

FORMAT = re.compile(
    r"\(\s*(?:(-?\d+)\s*P\s*,?)?\s*(\d*)\s*([IEDFG])\s*(\d+)(?:\.(\d+))?(?:E\d+)?\s*\)"
)
EXPONENTS = bytes.maketrans(b"edD_", b"EEE?")
"""Maps all exponent letters to E, and Python's digit separators to a character of no number."""
KINDS = {"R": 1, "I": 1, "C": 2, "P": 0, "Q": 0}
SYMMETRIES = "SUHZR"
INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Fields:
    """Numbers in columns of one width.

    per_line  numbers on a line
    width     of a number, in characters
    digits    behind the implicit decimal point
    scale     of numbers without an exponent, a power of ten
    """

    per_line: int
    width: int
    digits: int
    scale: int


@dataclass(frozen=True, slots=True)
class Header:
    """The content of the header.

    kind    the three letters of the type
    shape   of the matrix
    count   of entries
    lines   of pointers, rows and values
    fields  of pointers, rows and values
    first   the number of the first line of pointers, from 0
    """

    kind: str
    shape: tuple[int, int]
    count: int
    lines: tuple[int, int, int]
    fields: tuple[Fields, Fields, Fields | None]
    first: int


def read(file: File, name: str, key: str = "") -> TensorData:
    """Return the checked matrix in a file.

    Raises FileFormatError naming the malformed line, or the line at which the file ends.
    """
    lines = content_of(file).splitlines()
    header = read_header(lines, name)
    rows, columns = header.shape
    start = header.first
    pos = read_integers(lines, start, columns + 1, header.fields[0], name, "pointer")
    crd = read_integers(lines, start + header.lines[0], header.count, header.fields[1], name, "row")
    values = read_values(lines, header, name)
    ascends = bool((pos[1:] >= pos[:-1]).all()) and pos[0] == 1 and pos[-1] == header.count + 1
    if not ascends:
        raise fault(name, start, f"Expected pointers from 1 to {header.count + 1} that ascend, "
                    f"found {int(pos[0])} to {int(pos[-1])}")  # fmt: skip
    wrong = np.flatnonzero((crd < 1) | (crd > rows))
    if len(wrong):
        line = start + header.lines[0] + int(wrong[0]) // header.fields[1].per_line
        raise fault(name, line, f"Expected a row from 1 to {rows}, found {int(crd[wrong[0]])}")
    index = np.int32 if max(rows, columns, header.count) < 2**31 else np.int64
    parts = ((pos - 1).astype(index), (crd - 1).astype(index), values)
    data = from_compressed(*parts, header.shape, CSC)
    check(data)
    return canonical(mirrored(data, header.kind[1], name))


def read_header(lines: Sequence[bytes], name: str) -> Header:
    """Parse the first four or five lines."""
    if len(lines) < 4:
        raise fault(name, len(lines), "Expected four lines of a header, found the end of the file")
    counts = integers(lines[1], name, 1, 4)
    kind = read_kind(lines, name)
    sizes = integers(lines[2][3:], name, 2, 3)
    line = lines[3].decode("latin-1").upper()
    formats = [line[:16], line[16:32], line[32:52]]
    pointers, indices = (fields(text, name, "I") for text in formats[:2])
    values = fields(formats[2], name, "EDFGI") if counts[3] and KINDS[kind[0]] else None
    extra = len(counts) > 4 and counts[4] > 0
    shape = (sizes[0], sizes[1])
    if kind[1] not in "UR" and shape[0] != shape[1]:
        raise fault(name, 2, f"Expected a square matrix for {kind}, found {shape[0]} by {shape[1]}")
    need = (shape[1] + 1, sizes[2])
    for said, count, what in zip(counts[1:3], need, (pointers, indices), strict=True):
        if said != -(-count // what.per_line):
            raise fault(
                name, 1, f"Expected {-(-count // what.per_line)} lines for {count} numbers of "
                f"{what.per_line} on each, found {said}", "the header contradicts itself",
            )  # fmt: skip
    lengths = (counts[1], counts[2], counts[3])
    return Header(kind, shape, sizes[2], lengths, (pointers, indices, values), 5 if extra else 4)


def read_kind(lines: Sequence[bytes], name: str) -> str:
    """Return the three letters of a matrix's type."""
    kind = lines[2][:3].decode("latin-1").upper()
    if len(kind) != 3 or kind[0] not in KINDS or kind[1] not in SYMMETRIES or kind[2] not in "AE":
        raise fault(
            name, 2, f"Expected a type of three letters, as RUA, found {kind!r}",
            "r, i, c or p; s, u, h, z or r; a",
        )  # fmt: skip
    if kind[2] == "E":
        raise fault(name, 2, "Expected an assembled matrix, found one of elements", "assemble it")
    return kind


def fields(text: str, name: str, letters: str) -> Fields:
    """Parse a Fortran format of one kind of number, as (1P,4E20.12)."""
    match = FORMAT.fullmatch(text.strip().replace(" ", ""))
    if match is None or match[3] not in letters:
        raise fault(
            name, 3, f"Expected one of Fortran's formats for numbers, found {text.strip()!r}",
            "as (10I8) or (4E20.12)",
        )  # fmt: skip
    scale, per_line, letter, width, digits = match.groups()
    digits_after_point = 0 if letter == "I" else int(digits or 0)
    return Fields(int(per_line or 1), int(width), digits_after_point, int(scale or 0))


def integers(line: bytes, name: str, number: int, least: int) -> list[int]:
    """Parse the integers on a line of the header."""
    words = line.split()
    if len(words) < least or not all(word.isdigit() and len(word) < 19 for word in words):
        raise fault(
            name, number, f"Expected {least} whole numbers or more, found "
            f"{line.decode('latin-1').strip()[:60]!r}",
        )  # fmt: skip
    return [int(word) for word in words]


def fault(name: str, line: int, message: str, hint: str | None = None) -> FileFormatError:
    """Return the error about a line, counted from 0."""
    return FileFormatError(f"{name}, line {line + 1}: {message}", hint=hint)


def field_words(
    lines: Sequence[bytes], start: int, count: int, form: Fields, name: str, what: str
) -> Array:
    """Return the texts of `count` numbers, from a line on."""
    line_count, length = -(-count // form.per_line), form.per_line * form.width
    if start + line_count > len(lines):
        raise fault(
            name, len(lines) - 1, f"Expected {count} numbers ({what}s), found the end of the file",
            "the file may be truncated",
        )  # fmt: skip
    block = lines[start : start + line_count]
    body = b"".join([line[:length].ljust(length) for line in block]).translate(EXPONENTS)
    return np.frombuffer(body, f"S{form.width}")[:count]


def read_integers(
    lines: Sequence[bytes], start: int, count: int, form: Fields, name: str, what: str
) -> Array:
    """Parse `count` integers."""
    words = field_words(lines, start, count, form, name, what)
    return numbers(words, np.dtype(np.int64), start, form, name)


def numbers(words: Array, dtype: np.dtype[Any], start: int, form: Fields, name: str) -> Array:
    """Parse numbers. Raises FileFormatError naming the line of the first malformed one."""
    try:
        return words.astype(dtype)
    except (ValueError, OverflowError):
        for place, word in enumerate(words.tolist()):
            try:
                np.array([word]).astype(dtype)
            except (ValueError, OverflowError):
                raise fault(
                    name, start + place // form.per_line, f"Expected a number, found "
                    f"{word.decode('latin-1').strip()!r}", "the file may be damaged here",
                ) from None  # fmt: skip
        raise


def read_values(lines: Sequence[bytes], header: Header, name: str) -> Array:
    """Return the values; ones of a pattern."""
    form, letter = header.fields[2], header.kind[0]
    if form is None:
        return np.ones(header.count)
    start = header.first + header.lines[0] + header.lines[1]
    count = header.count * KINDS[letter]
    words: Any = field_words(lines, start, count, form, name, "value")
    if letter == "I" and not form.digits:
        return numbers(words, np.dtype(np.int64), start, form, name)
    values = numbers(words, np.dtype(np.float64), start, form, name)
    if form.digits and (lacking := lacks(words, b".")) is not None:
        values[lacking & np.isfinite(values)] *= 10.0**-form.digits  # 1234 in E10.2 is 12.34
    if form.scale and (lacking := lacks(words, b"E")) is not None:
        values[lacking & np.isfinite(values)] *= 10.0**-form.scale
    return values.view(np.complex128) if letter == "C" else values


def lacks(words: Any, mark: bytes) -> Array | None:
    """Tell which words lack a character; None where all have it."""
    if words.tobytes().count(mark) >= len(words):  # a word has it at most once
        return None
    return np.char.find(words, mark) < 0


def mirrored(data: TensorData, symmetry: str, name: str) -> TensorData:
    """Expand a matrix of which a triangle is stored."""
    if symmetry in "UR":
        return data
    (rows, columns), values = unpack(data)
    other = np.flatnonzero(rows != columns)
    if symmetry == "Z" and len(other) < len(rows) and (values[rows == columns] != 0).any():
        raise FileFormatError(
            f"{name}: Expected no nonzero on the diagonal of a skew matrix, found one",
            hint="mend the type of the matrix, in line 3",
        )
    turned = values[other]
    turned = -turned if symmetry == "Z" else turned.conj() if symmetry == "H" else turned
    coords = (np.concatenate((rows, columns[other])), np.concatenate((columns, rows[other])))
    return pack_coo(coords, np.concatenate((values, turned)), data.shape, CSC)


# ---------------------------------------------------------------- writing


def write(data: TensorData, file: File, key: str = "") -> None:
    """Write a matrix as Rutherford-Boeing, with enough digits to read the same numbers back.

    Raises FormatError for another order than 2, and for a fill value other than 0.
    """
    if data.format.order != 2 or (data.fill and not data.format.is_dense):
        raise FormatError(
            f"Expected a matrix with the fill value 0 for a Rutherford-Boeing file, found order "
            f"{data.format.order} and {data.fill or '0'}",
            hint="Matrix Market files (.mtx) hold fill values, FROSTT files (.tns) any order",
        )
    plain = data
    if ordered(data.format) != CSC:
        coords, values = unpack(data, drop_fill=True)
        plain = pack_coo(coords, values, data.shape, CSC)
    plain = canonical(plain)
    content = b"".join(text_of(plain))
    if isinstance(file, BytesIO):
        file.write(content)
    else:
        file.write_bytes(content)


def text_of(data: TensorData) -> Iterator[bytes]:
    """Yield the lines of a file."""
    level = data.levels[-1]
    assert level.pos is not None and level.crd is not None
    letter = {"b": "p", "i": "i", "u": "i", "c": "c"}.get(data.dtype.kind, "r")
    pos, crd = level.pos.astype(np.int64) + 1, level.crd.astype(np.int64) + 1
    words = value_words(data.values) if letter != "p" else []
    width = max(map(len, words), default=1) + 1
    per_line = max(80 // width, 1)
    blocks, forms = [], []
    for column in (pos, crd):
        size = len(str(int(column.max(initial=1)))) + 1
        blocks.append(_block([str(number) for number in column.tolist()], size, 80 // size))
        forms.append(f"({80 // size}I{size})")
    blocks.append(_block(words, width, per_line))
    forms.append("" if not words else f"({per_line}{'I' if letter == 'i' else 'E'}{width}" + (
        ")" if letter == "i" else ".0)"))  # fmt: skip
    counts = [block.count(b"\n") for block in blocks]
    kind = f"{letter}{'u' if data.shape[0] == data.shape[1] else 'r'}a"
    sizes = (*data.shape, len(crd), 0)
    yield f"{'written by tacopy':<72}{'':<8}\n".encode()
    yield (f"{sum(counts):14d}" + "".join(f" {count:13d}" for count in counts) + "\n").encode()
    yield (f"{kind:<14}" + "".join(f" {size:13d}" for size in sizes) + "\n").encode()
    yield f"{forms[0]:<16}{forms[1]:<16}{forms[2]:<20}\n".encode()
    yield from blocks


def _block(words: Sequence[str], width: int, per_line: int) -> bytes:
    """Return words in columns, `per_line` on a line."""
    lines = (words[start : start + per_line] for start in range(0, len(words), per_line))
    return "".join("".join(word.rjust(width) for word in line) + "\n" for line in lines).encode()


def value_words(values: Array) -> list[str]:
    """Return each number with enough digits to read it back, reals with a point."""
    if values.dtype.kind in "iu":
        if values.size and int(values.max()) > INT64.max:
            raise FormatError(
                f"Expected integers below 2^63 for a Rutherford-Boeing file, found {values.max()}",
                hint="convert them to float64",
            )
        return [str(number) for number in values.tolist()]
    plain = values.astype(np.float32) if is_half(values.dtype) else values
    parts = plain.view(plain.real.dtype) if plain.dtype.kind == "c" else plain
    words = [repr(number).upper() for number in parts.tolist()]
    return [w if "." in w or not w[-1].isdigit() else w.replace("E", ".0E") for w in words]


ENDINGS = (".rb", ".rua", ".rsa", ".rra", ".rza", ".cua", ".csa", ".cha", ".pua", ".psa", ".pra",
           ".iua", ".isa", ".ira", ".hb")  # fmt: skip
CONTAINER = Container("a Rutherford-Boeing file", ENDINGS, b"", False, read, write)
