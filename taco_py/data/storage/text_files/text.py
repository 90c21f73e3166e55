"""Lines and words of a file, with line numbers for errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice

from codegen.records import dataclass
from taco_py.data.storage.plain import Row
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.errors import FileFormatError

COMMENTS = (b"#", b"%")
EXACT = 2**53  # integers a float64 holds exactly
TableReader = Callable[["Text", Row], tuple[Sequence[Array], Array] | None]
"""Coordinates (from 0, an array a word of digits) and values of all rows of a text."""
FORTRAN = bytes.maketrans(b"Dd", b"ee")
BLANKS_HINT = "separate numbers by blanks, not by commas"


@dataclass(frozen=True, slots=True)
class Text:
    """The rest of a file: its bytes from `start` on, its first line's number and the file's name.

    reader  reader of long tables, None without one
    """

    body: bytes
    first_line: int
    name: str
    start: int = 0
    reader: TableReader | None = None

    def numbers(self, row: Row) -> tuple[Sequence[Array], Array] | None:
        """Read all rows with the reader; None where it declines."""
        return None if self.reader is None else self.reader(self, row)

    def __len__(self) -> int:
        """Return the number of bytes."""
        return len(self.body) - self.start

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its number."""
        stream = BytesIO(self.body)
        stream.seek(self.start)
        return enumerate(stream, self.first_line)

    def first(self) -> bytes:
        """Return the first line without surrounding blanks."""
        return next(self.lines(), (0, b""))[1].strip()

    def after(self, lines: int) -> Text:
        """Return the text without its first lines."""
        size = sum(len(line) for _, line in islice(self.lines(), lines))
        return replace(self, first_line=self.first_line + lines, start=self.start + size)

    def split_comments(self) -> tuple[list[bytes], Text]:
        """Split off the comments and empty lines at the top."""
        comments = []
        for _, line in self.lines():
            stripped = line.strip()
            if stripped and not stripped.startswith(COMMENTS):
                break
            comments.append(stripped)
        return comments, self.after(len(comments))

    def fault(self, line: int, message: str, hint: str | None = None) -> FileFormatError:
        """Return the error about a line."""
        return FileFormatError(f"{self.name}, line {line}: {message}", hint=hint)

    def entries(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the words of each line with an entry, with the line's number."""
        for number, line in self.lines():
            words = line.split()
            if b"#" in line or b"%" in line:
                words = before_comment(words)
            if words:
                yield number, words

    def rows(self, row: Row) -> Iterator[list[bytes]]:
        """Yield the words of each entry in plain form.

        Raises FileFormatError naming the first line with another number of words, a malformed
        number, or a number out of range.
        """
        for number, words in self.entries():
            if len(words) != row.words:
                raise self.fault(
                    number,
                    f"Expected {row.words} numbers, found {len(words)}: {quoted(b' '.join(words))}",
                    _explain_word_count(words, row),
                )
            yield [
                *(coordinate(self, number, words[mode], mode, row) for mode in range(row.digits)),
                *(value(self, number, word, row) for word in words[row.digits :]),
            ]

    def line_of_entry(self, entry: int) -> int:
        """Return the number of the line that holds an entry (counted from 0)."""
        return next(number for row, (number, _) in enumerate(self.entries()) if row == entry)

    def last_line(self) -> int:
        """Return the number of the last line that is not empty."""
        return self.first_line + self.body.rstrip().count(b"\n", self.start)


def _explain_word_count(words: list[bytes], row: Row) -> str:
    """Return a hint for a line with another number of words than `row`."""
    if any(b"," in word for word in words):
        return BLANKS_HINT
    if len(words) < row.words:
        return "the file may be truncated here"
    parts = [(row.digits, "coordinate"), (row.numbers, "number")] if row.digits else []
    has = [f"{count} {what}{'s' * (count > 1)}" for count, what in parts if count]
    holds = f" and holds {' and '.join(has)}" if has else ""
    return f"each line is one entry{holds}: take the rest away, or mend the header or first line"


def before_comment(words: list[bytes]) -> list[bytes]:
    """Return the words of a line before its comment."""
    ends = (place for place, word in enumerate(words) if word.startswith(COMMENTS))
    return words[: next(ends, None)]


def coordinate(text: Text, line: int, word: bytes, mode: int, row: Row) -> bytes:
    """Return a coordinate in digits. Raises FileFormatError for other numbers and out of range."""
    number = parse_integer(text, line, word)
    if number is None or not _is_written_whole(word):
        raise text.fault(
            line,
            f"Expected an integer as coordinate of mode {mode}, found {quoted(word, '')}",
            None if number is None else f"write {number}, in digits alone",
        )
    largest = EXACT if row.sizes is None else row.sizes[mode]
    if not 1 <= number <= largest:
        raise text.fault(
            line,
            f"Expected a coordinate from 1 to {largest} in mode {mode}, found {number}",
            "coordinates in files count from 1",
        )
    return b"%d" % number


def value(text: Text, line: int, word: bytes, row: Row) -> bytes:
    """Return a value in plain form. Raises FileFormatError for malformed or too large numbers."""
    if not row.integral:
        return repr(parse_number(text, line, word)).encode()
    number = parse_integer(text, line, word)
    low, high = row.limits
    if number is None or not low <= number <= high:
        kind = "a 64-bit integer" if low else "an unsigned 64-bit integer"
        raise text.fault(line, f"Expected {kind}, found {quoted(word)}")
    return b"%d" % number


def parse_integer(text: Text, line: int, word: bytes) -> int | None:
    """Return the integer of a word, as 12 for 12 and 1.2e1; None for other numbers."""
    if _is_written_whole(word):
        return int(word) if len(word) <= 40 else None
    number = parse_number(text, line, word)
    return int(number) if abs(number) < EXACT and number == int(number) else None


def _is_written_whole(word: bytes) -> bool:
    """Tell whether a word consists of digits with at most one sign."""
    return word.removeprefix(b"-").removeprefix(b"+").isdigit() and word[:2] not in (b"-+", b"+-")


def parse_number(text: Text, line: int, word: bytes) -> float:
    """Parse a number. Raises FileFormatError naming the line where it is malformed."""
    try:
        if b"_" not in word:
            return float(word.translate(FORTRAN))
    except ValueError:
        pass  # reported below, together with Python's digit separators
    raise text.fault(
        line, f"Expected a number, found {quoted(word)}", BLANKS_HINT if b"," in word else None
    )


def quoted(words: bytes, quote: str = "'") -> str:
    """Return bytes of a file as text for a message."""
    cut = words if len(words) <= 40 else words[:40] + b" ..."
    text = repr(cut.decode("latin-1"))
    return text if quote else text[1:-1]
