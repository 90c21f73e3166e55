"""Tables of numbers in text, fast, with the line of the first mistake.

NumPy's text readers take 0.2 to 2 microseconds a number. scipy's Matrix Market reader takes 0.03,
but is lenient (it reads "4x" as 4) and says little. So a table is first checked on its bytes with
whole-array operations, then its blanks become line ends, and it is read as one column of a Matrix
Market array. Text that is anything but plain numbers in lines of equal length (nan, comments, a
mistake) goes to a reader in Python, which accepts what is right and names the line of what is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.diagnostics.errors import FileFormatError

CHUNK = 1 << 22  # bytes read at a time, so that temporaries stay in the cache
COMMENTS = (b"#", b"%")
BLANK, NEWLINE, DIGIT, POINT, EXPONENT, MINUS, PLUS = range(1, 8)
CLASSES = {b" \t\r": BLANK, b"\n": NEWLINE, b"0123456789": DIGIT, b".": POINT, b"eE": EXPONENT,
           b"-": MINUS, b"+": PLUS}  # fmt: skip
TO_LINES = bytes.maketrans(b" \t\r", b"\n\n\n")


def class_table() -> NDArray[np.uint8]:
    """The class of each byte; 0 for one that no plain number has."""
    table = np.zeros(256, dtype=np.uint8)
    for characters, kind in CLASSES.items():
        table[list(characters)] = kind
    return table


@dataclass(frozen=True, slots=True)
class Text:
    """The rest of a file: its bytes, the number of its first line (from 1), and the file's name."""

    body: bytes
    first_line: int
    name: str

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line with its number."""
        return enumerate(BytesIO(self.body), self.first_line)

    def first(self) -> bytes:
        """The first line, without the blanks around it."""
        return next(BytesIO(self.body), b"").strip()

    def after(self, lines: int) -> Text:
        """The text without its first lines."""
        parts = self.body.split(b"\n", lines)
        rest = parts[-1] if len(parts) > lines else b""
        return Text(rest, self.first_line + lines, self.name)

    def split_comments(self) -> tuple[list[bytes], Text]:
        """The comments and empty lines at the top, and what follows them."""
        comments, size = [], 0
        for _, line in self.lines():
            stripped = line.strip()
            if stripped and not stripped.startswith(COMMENTS):
                break
            comments.append(stripped)
            size += len(line)
        return comments, Text(self.body[size:], self.first_line + len(comments), self.name)

    def fault(self, line: int, message: str, hint: str | None = None) -> FileFormatError:
        """The error to raise about a line."""
        return FileFormatError(f"{self.name}, line {line}: {message}", hint=hint)

    def entries(self) -> Iterator[tuple[int, list[bytes]]]:
        """The words of each line that is neither empty nor a comment, with the line's number."""
        for number, line in self.lines():
            words = line.split()
            if words and not words[0].startswith(COMMENTS):
                yield number, words

    def line_of_entry(self, entry: int) -> int:
        """The number of the line that holds an entry (counted from 0)."""
        return next(number for row, (number, _) in enumerate(self.entries()) if row == entry)

    def last_line(self) -> int:
        """The number of the last line that is not empty."""
        return self.first_line + self.body.rstrip().count(b"\n")


def read_table(text: Text, columns: int) -> NDArray[np.float64]:
    """A (rows, columns) array of the numbers in `text`, one row a line; empty lines and comments
    skipped.

    Raises FileFormatError naming the first line with another number of words, or one that is no
    number.
    """
    body = text.body.rstrip() + b"\n"
    table = class_table()
    parts, start = [], 0
    while start < len(body) - 1:
        stop = body.find(b"\n", min(start + CHUNK, len(body) - 1)) + 1
        part = read_plain(body[start:stop], columns, table)
        if part is None:
            return read_carefully(text, columns)
        parts.append(part)
        start = stop
    return np.concatenate(parts) if parts else np.zeros((0, columns))


def read_plain(chunk: bytes, columns: int, table: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """The numbers of whole lines; None where a line is not `columns` plain numbers."""
    from scipy.io import mmread

    kinds = table[np.frombuffer(chunk, dtype=np.uint8)]
    blanks = kinds <= NEWLINE
    starts = np.flatnonzero(~blanks & np.concatenate(([True], blanks[:-1])))
    ends = np.flatnonzero(kinds == NEWLINE)
    if not (is_rectangular(starts, ends, columns) and is_numeric(kinds, starts)):
        return None
    header = f"%%MatrixMarket matrix array real general\n{len(starts)} 1\n".encode()
    try:
        numbers = mmread(BytesIO(header + chunk.translate(TO_LINES)))
    except (ValueError, OverflowError):
        return None  # the careful reader finds out which line, and why
    return np.asarray(numbers, dtype=np.float64).reshape(-1, columns)


def is_rectangular(starts: NDArray[np.intp], ends: NDArray[np.intp], columns: int) -> bool:
    """Whether each line (which ends at `ends`) has `columns` words (which start at `starts`)."""
    if len(starts) != columns * len(ends):
        return False
    first, last = starts[::columns], starts[columns - 1 :: columns]
    return bool((last < ends).all() and (first[1:] > ends[:-1]).all())


def is_numeric(kinds: NDArray[np.uint8], starts: NDArray[np.intp]) -> bool:
    """Whether each word is -? digits [. digits] [e [+-] digits], digits beside the point."""
    if kinds.min() == 0:
        return False
    before = np.concatenate(([np.uint8(NEWLINE)], kinds[:-1]))
    after = np.concatenate((kinds[1:], [np.uint8(NEWLINE)]))
    minus, plus = np.flatnonzero(kinds == MINUS), np.flatnonzero(kinds == PLUS)
    marks = np.flatnonzero((kinds == POINT) | (kinds == EXPONENT))
    points, exponents = marks[kinds[marks] == POINT], marks[kinds[marks] == EXPONENT]
    rules = (
        (before[minus] <= NEWLINE) | (before[minus] == EXPONENT),
        (after[minus] == DIGIT) | (after[minus] == POINT),
        before[plus] == EXPONENT,
        after[plus] == DIGIT,
        (before[points] == DIGIT) | (after[points] == DIGIT),
        (before[exponents] == DIGIT) | (before[exponents] == POINT),
        (after[exponents] == DIGIT) | (after[exponents] >= MINUS),
        one_point_one_exponent(kinds, marks, starts),
    )
    return all(bool(rule.all()) for rule in rules)


def one_point_one_exponent(
    kinds: NDArray[np.uint8], marks: NDArray[np.intp], starts: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """For neighbouring points and exponents: in different words, or a point before an exponent."""
    words = np.searchsorted(starts, marks, side="right")
    ordered: NDArray[np.bool_] = (kinds[marks[:-1]] == POINT) & (kinds[marks[1:]] == EXPONENT)
    ordered |= words[1:] != words[:-1]
    return ordered


def read_carefully(text: Text, columns: int) -> NDArray[np.float64]:
    """`read_table` word by word, with Python's idea of a number (nan, inf, +1)."""
    rows = []
    for number, words in text.entries():
        if len(words) != columns:
            raise text.fault(
                number,
                f"Expected {columns} numbers, found {len(words)}: {shown(b' '.join(words))}",
                "the file may be truncated here",
            )
        rows.append([parse_number(text, number, word) for word in words])
    return np.array(rows, dtype=np.float64).reshape(-1, columns)


def parse_number(text: Text, line: int, word: bytes) -> float:
    """One number; FileFormatError naming the line where it is none."""
    try:
        if b"_" not in word:
            return float(word)
    except ValueError:
        pass  # reported below, together with Python's digit separators
    hint = "separate numbers by blanks, not by commas" if b"," in word else None
    raise text.fault(line, f"Expected a number, found {shown(word)}", hint)


def shown(words: bytes) -> str:
    """Bytes of a file as they may stand in a message."""
    cut = words if len(words) <= 40 else words[:40] + b" ..."
    return repr(cut.decode("latin-1"))
