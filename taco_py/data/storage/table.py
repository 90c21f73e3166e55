"""The numbers of a table in text, read by a compiled kernel where the caller has one and the text
is long, otherwise by scipy's Matrix Market reader (Lugowski 2023).

scipy's reader gets chunks that are known to be plain (`regular`) in the calling thread, while its
own threads read the numbers of earlier chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taco_py.data.storage.plain import Row
from taco_py.data.storage.regular import Part, regular_parts, rewritten_rows
from taco_py.data.storage.tensor_data import Array
from taco_py.data.storage.text_files.text import Text
from taco_py.language.diagnostics.errors import FileFormatError

TYPES = {"complex": np.complex128, "integer": np.int64, "unsigned-integer": np.uint64,
         "real": np.float64, "double": np.float64, "pattern": np.float64}  # fmt: skip
TO_LINES = bytes.maketrans(b" ", b"\n")


class Stream:
    """A file of a header and then the parts of a table.

    words  the number of words in the parts that were read
    fault  the exception that ended the table; scipy's reader swallows exceptions of its source
    """

    __slots__ = ("_header", "_parts", "fault", "words")

    def __init__(self, header: bytes, parts: Iterator[Part]) -> None:
        self._parts = parts
        self._header = header
        self.words = 0
        self.fault: BaseException | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next part, of any size, empty at the end; scipy's reader accepts any size."""
        part, self._header = self._header, b""
        try:
            while not part:
                part, words = next(self._parts)
                self.words += words
        except StopIteration:
            pass
        except BaseException as fault:
            self.fault = fault
        return part


def read_entries(
    text: Text, row: Row, shape: tuple[int, int], count: int, field: str
) -> tuple[Array, Array, Array]:
    """Return rows and columns (from 0) and values of `count` entries; ones for the field "pattern".

    Raises FileFormatError naming the first malformed line, and MemoryError.
    """
    require_count(text, row, count)
    table = text.numbers(row)
    if table is not None and len(table[0][0]) == count:
        (rows, columns), values = table
        return rows, columns, values_of(values, field, count)
    if not count:  # scipy's reader divides by it
        return (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, TYPES[field]))
    header = f"coordinate {field} general\n{shape[0]} {shape[1]} {count}"
    matrix = numbers_of(text, row, header, count)
    return matrix.row, matrix.col, matrix.data


def read_values(text: Text, row: Row, count: int, field: str) -> Array:
    """Return the values of `count` lines; raises as `read_entries`."""
    require_count(text, row, count)
    table = text.numbers(row)
    if table is not None and len(table[1]) == count * row.words:
        return values_of(table[1], field, count)
    if not count:
        return np.zeros(0, TYPES[field])
    values: Array = numbers_of(text, row, f"array {field} general\n{count} 1", count)
    return values.reshape(-1)


def values_of(numbers: Array, field: str, count: int) -> Array:
    """Return the values that the numbers of `count` lines encode; ones for the field "pattern"."""
    match field:
        case "pattern":
            return np.ones(count)
        case "complex":
            return numbers.view(np.complex128)
        case _:
            return numbers


def numbers_of(text: Text, row: Row, header: str, count: int) -> Any:
    """Read a table of `count` rows with scipy. Raises FileFormatError for another number of
    rows."""
    try:
        table, words = numbers(regular_parts(text, row), header)
        if words == count * row.words:
            return table
    except FileFormatError:
        raise
    except (ValueError, OverflowError):
        pass  # the line is named below
    require_rows(text, row, count)
    return numbers(rewritten_rows(text, row), header)[0]


def numbers(parts: Iterator[Part], header: str) -> tuple[Any, int]:
    """Read parts below a header with scipy; also return the number of their words.

    Raises the exceptions of reading the parts, or else those of scipy.
    """
    from scipy.io import mmread

    stream: Any = Stream(f"%%MatrixMarket matrix {header}\n".encode(), parts)
    table: Any = None
    try:
        table = mmread(stream)
    except (ValueError, OverflowError):
        if stream.fault is None:
            raise
    if stream.fault is not None:
        raise stream.fault
    return table, stream.words


def require_count(text: Text, row: Row, count: int) -> None:
    """Raise FileFormatError where the text is too short for `count` rows, before allocating
    them."""
    if not count or count * 2 * row.words > len(text) + 1:
        require_rows(text, row, count)


def require_rows(text: Text, row: Row, count: int) -> None:
    """Raise FileFormatError naming the first malformed line, or for another number than `count`."""
    lines = sum(1 for _ in text.rows(row))
    if lines == count:
        return
    longer = lines > count
    problem = "one more" if longer else f"{lines} up to here, where the file ends"
    raise text.fault(
        text.line_of_entry(count) if longer else text.last_line(),
        f"Expected {count} entries as the header says, found {problem}",
        "the header counts fewer than there are"
        if longer
        else "the file may be truncated, or its header wrong",
    )


def read_table(text: Text, columns: int) -> NDArray[np.float64]:
    """Return a (rows, columns) array of the numbers in `text`, without empty lines and comments.

    Raises FileFormatError naming the first line with another number of words, or with a word that
    is no number.
    """
    numbers_read = text.numbers(Row(0, columns))
    if numbers_read is not None:
        return numbers_read[1].reshape(-1, columns)
    parts = list(regular_parts(text, Row(0, columns)))
    count = sum(words for _, words in parts)
    if not count:
        return np.zeros((0, columns))
    lined = ((part.translate(TO_LINES), words) for part, words in parts)
    table: NDArray[np.float64] = numbers(lined, f"array real general\n{count} 1")[0]
    return table.reshape(-1, columns)
