"""Tables of numbers as text, normalized so that scipy's Matrix Market reader reads them right.

That reader takes 0.03 microseconds a number, but is lenient: it reads 4x as 4, 1.5D+03 as 1.5, and
a line of four words as three. So every line is matched on bitmaps first (`plain`). A chunk with
other lines is rewritten in plain form:

    1 2 +1.5D+03 % a note   →   1 2  1.5e+03

A chunk that is no table even then is split into small pieces, whose lines are read by Python, which
reports the malformed line. So one odd line costs no more than its piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from taco_py.data.storage.plain import NEWLINE, Row, words_of_table
from taco_py.data.storage.text_files.text import Text

CHUNK = 1 << 18  # bytes matched at a time, so that bitmaps stay in the cache
PIECE = 1 << 14  # bytes read line by line, where one of the lines is odd
BLANKS = bytes.maketrans(b"\t\r\v\f", b"    ")
EXPONENTS = bytes.maketrans(b"\t\r\v\fDd", b"    ee")
# each starts with its character, which the search skips to
COMMENTS = tuple(re.compile(mark + rb"(?<![^ \n]" + mark + rb")[^\n]*") for mark in (b"#", b"%"))
PLUS = re.compile(rb"\+(?<![^ \n]\+)(?=[\d.niNI])")
SPECIAL = (
    re.compile(rb"n(?<![^ \n-]n)an(?![^ \n])"),
    re.compile(rb"i(?<![^ \n-]i)nf(?:inity)?(?![^ \n])"),
)


Part = tuple[bytes, int]
"""Complete lines, and the number of their words."""


def regular_parts(text: Text, row: Row, size: int = CHUNK) -> Iterator[Part]:
    """Yield a table as plain text with a row a line, in parts.

    Raises FileFormatError naming the first malformed line.
    """
    line = text.first_line
    for chunk in cut(text.body, size, text.start):
        words = words_of_table(chunk, row)
        if words is None:
            yield from rewritten(Text(chunk, line, text.name), row)
        else:
            yield chunk, words
        line += chunk.count(NEWLINE)


def cut(body: bytes, size: int, start: int = 0) -> Iterator[bytes]:
    """Split text after newlines into parts of about `size` bytes; a newline ends the last."""
    end = len(body)
    while start < end:
        stop = body.find(NEWLINE, start + size - 1) + 1 if end - start > size else end
        part = body[start : stop or end]
        start = stop or end
        yield part if part.endswith(NEWLINE) else part + NEWLINE


def rewritten(text: Text, row: Row) -> Iterator[Part]:
    """Yield `regular_parts` of text that is not in plain form."""
    tidy = tidied(text.body, row)
    words = words_of_table(with_zeros(tidy, row), row)
    if words is not None:
        yield tidy, words
    elif len(text.body) > PIECE:
        yield from regular_parts(text, row, PIECE // 2)
    else:
        yield from rewritten_rows(text, row)


def rewritten_rows(text: Text, row: Row) -> Iterator[Part]:
    """Yield the rows that Python reads, in plain form, as one part."""
    rows = list(text.rows(row))
    yield b"".join(b" ".join(words) + NEWLINE for words in rows), len(rows) * row.words


def tidied(chunk: bytes, row: Row) -> bytes:
    """Remove comments and plus signs; write blanks as spaces, and Fortran's exponents with e."""
    tidy = chunk.translate(BLANKS if row.integral else EXPONENTS)
    for pattern, mark in zip(COMMENTS, (b"#", b"%"), strict=True):
        if mark in tidy:
            tidy = pattern.sub(b"", tidy)
    return PLUS.sub(b" ", tidy) if b"+" in tidy else tidy


def with_zeros(tidy: bytes, row: Row) -> bytes:
    """Replace nan and inf, which scipy reads, by 0."""
    if row.integral or not row.numbers:
        return tidy
    plain = tidy.lower()
    for pattern, mark in zip(SPECIAL, (b"n", b"i"), strict=True):
        if mark in plain:
            plain = pattern.sub(b"0", plain)
    return plain
