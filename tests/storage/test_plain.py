"""Text of numbers: what is taken as plain is what Python reads, and nothing is half read."""

from __future__ import annotations

import re
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

from taco_py.data.storage import regular
from taco_py.data.storage.plain import Row, words_of_table
from taco_py.data.storage.table import read_entries, read_table, read_values
from taco_py.data.storage.text_files.text import Text
from taco_py.language.diagnostics.errors import FileFormatError

NUMBER = re.compile(rb"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LONGEST = 64  # characters of a word that are surely taken
PLAIN = ["1", "23", "-4", "5.5", ".5", "5.", "-.5", "1e5", "1E-5", "2.5e+10", "007", "-1.25e-300"]
ODD = [
    "4x", "3.5.2", "1..2", "1-2", "1e", "e5", ".", "-", "1e5.2", "1e5e5", "--1", "1_0", "0x12",
    "+1", "nan", "-inf", "1.5D+03", "1e+", "1e-.5", ".e5", "-e5", "5.e", "1e5-", "1e,5", "1,5",
    "2.5", "\0", "infinity", "+nan", "%c", "1e--3", "1e-+3", "\u00e9", "nan5", "1nan", "1e5+3",
    "1.5-3", "#",
]  # fmt: skip
WORD = st.one_of(st.sampled_from(PLAIN), st.sampled_from(PLAIN), st.sampled_from(ODD))
BLANK = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])


@st.composite
def tables(draw: st.DrawFn, words: int) -> str:
    """Lines of about as many words, most of them plain numbers."""
    lines = []
    for _ in range(draw(st.integers(0, 12))):
        count = draw(st.sampled_from([words] * 12 + [0, words - 1, words + 1]))
        line = "".join(
            draw(st.sampled_from(["1", "2", "31"]) if k < words - 1 else WORD) + draw(BLANK)
            for k in range(count)
        )
        lines.append(draw(st.sampled_from(["", "", "", " "])) + line.rstrip(" "))
    return draw(st.sampled_from(["\n", "\n", "\r\n"])).join(lines)


def plain_words(text: bytes, row: Row) -> int | None:
    """What `words_of_table` says, by regular expressions."""
    if not text.endswith(b"\n"):
        return None
    found = [line.split(b" ") for line in text[:-1].split(b"\n")]
    lines = [words for line in found if (words := [word for word in line if word])]
    for words in lines:
        if len(words) != row.words or not all(NUMBER.fullmatch(word) for word in words):
            return None
        if not all(word.isdigit() for word in words[: row.digits]):
            return None
        if row.integral and any(mark in b"".join(words) for mark in (b".", b"e", b"E")):
            return None
    return row.words * len(lines)


@given(tables(3), st.sampled_from([Row(2, 1), Row(0, 3), Row(2, 1, True), Row(3, 0)]))
@example("1 2 3", Row(2, 1))
def test_what_is_taken_as_plain(table: str, row: Row) -> None:
    text = (table + "\n").encode()
    assert words_of_table(text, row) == plain_words(text, row)


@pytest.mark.parametrize("length", [1, 7, 63, 64, 65, 127, 128, 129, 1000])
def test_words_across_the_words_of_bitmaps(length: int) -> None:
    """Each place of a word in 64 bytes, and lengths with and without a carry into the next 64."""
    for shift in range(1, 70):
        text = b"1" + b" " * shift + b"2" * min(length, LONGEST) + b" -3.5e-7\n"
        assert words_of_table(text, Row(2, 1)) == 3
        text = b"1" + b" " * shift + b"2" * length + b" 3x\n"
        assert words_of_table(text, Row(2, 1)) is None


def rows_in_python(text: str) -> list[list[float]] | None:
    """The numbers of each line; None where one is no number. Fortran writes exponents with d."""
    rows = []
    for line in text.split("\n"):
        words = re.sub(r"(?:^|(?<=\s))[#%].*", "", line).split()
        try:
            numbers = [float(re.sub("[dD]", "e", word)) for word in words]
        except ValueError:
            return None
        if any("_" in word or "_" in line for word in words):
            return None
        if words:
            rows.append(numbers)
    return rows


@given(tables(3))
def test_tables_are_what_python_reads(table: str) -> None:
    expected = rows_in_python(table)
    text = Text(table.encode(), 1, "name")
    if expected is None or any(len(row) != 3 for row in expected):
        with pytest.raises(FileFormatError, match="name, line "):
            read_table(text, 3)
    else:
        np.testing.assert_array_equal(read_table(text, 3), np.array(expected).reshape(-1, 3))


@given(tables(3), st.sampled_from([8, 1 << 18]))
@example("1 2.5\n1 2 3 4", 1 << 18)
@example("1 2.5 7", 1 << 18)
@example("1 2-5 7\n1 1 +1", 8)
def test_entries_are_what_python_reads(table: str, size: int) -> None:
    """No word is half read, and none of one line makes up for one that another lacks."""
    expected = rows_in_python(table)
    if expected is not None and any(
        row[mode : mode + 1] not in ([1], [2], [31]) for row in expected for mode in (0, 1)
    ):
        expected = None  # a coordinate that is none
    text = Text(table.encode(), 1, "name")
    lines = sum(1 for line in table.split("\n") if line.split() and line.split()[0][0] not in "#%")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regular, "CHUNK", size)
        if expected is None or any(len(row) != 3 for row in expected):
            with pytest.raises(FileFormatError, match="name, line "):
                read_entries(text, Row(2, 1, sizes=(31, 31)), (31, 31), lines, "real")
            return
        rows, columns, values = read_entries(
            text, Row(2, 1, sizes=(31, 31)), (31, 31), lines, "real"
        )
    found = np.column_stack([rows + 1, columns + 1, values])
    np.testing.assert_array_equal(found, np.array(expected).reshape(-1, 3))


@given(st.lists(st.floats(), min_size=1), st.sampled_from(["e", "E", "d", "D"]))
def test_numbers_are_read_to_the_last_digit(numbers: list[float], mark: str) -> None:
    words = [repr(x).replace("e", mark) for x in numbers]
    text = Text("\r\n".join(words).encode(), 1, "")
    np.testing.assert_array_equal(read_values(text, Row(0, 1), len(words), "real"), numbers)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.booleans())
def test_integers_are_read_to_the_last_digit(numbers: list[int], plus: bool) -> None:
    words = [f"{x:+d}" if plus else str(x) for x in numbers]
    text = Text("\n".join(words).encode(), 1, "")
    found = read_values(text, Row(0, 1, True), len(words), "integer")
    assert found.tolist() == numbers


@pytest.mark.parametrize("line", ["", "% note", "1 1 +1.5", "1 1 nan", "1 1 1.5D+03", "+1 1 1."])
def test_one_odd_line_costs_no_more_than_its_piece(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python reads a few lines itself, however long the file is."""
    read: list[int] = []
    rows = Text.rows

    def counted(self: Text, row: Row) -> Any:
        read.append(self.body.count(b"\n"))
        return rows(self, row)

    monkeypatch.setattr(Text, "rows", counted)
    lines = ["1 1 2.5e-01"] * 60_000
    lines[30_000] = line
    count = sum(1 for each in lines if each and each[0] != "%")
    text = Text("\n".join(lines).encode(), 1, "")
    assert len(read_entries(text, Row(2, 1, sizes=(1, 1)), (1, 1), count, "real")[0]) == count
    assert len(read_table(text, 3)) == count
    assert sum(read) <= 2 * regular.PIECE // 10


@pytest.mark.parametrize("word", [each for each in ODD if each[0] not in "#%"])
def test_no_number_is_half_read(word: str) -> None:
    text = Text(f"1 2\n3 {word}\n".encode(), 7, "name")
    expected = rows_in_python(f"3 {word}")
    if expected is None:
        with pytest.raises(FileFormatError, match="name, line 8: Expected a number, found"):
            read_table(text, 2)
    else:
        np.testing.assert_array_equal(read_table(text, 2)[1:], expected)


@pytest.mark.parametrize("body", [b"", b"\n\n", b"# nothing\n"])
def test_empty_tables(body: bytes) -> None:
    assert read_table(Text(body, 1, ""), 3).shape == (0, 3)


def test_lines_of_unequal_length_do_not_make_up_for_each_other() -> None:
    with pytest.raises(FileFormatError, match="line 2: Expected 2 numbers, found 3"):
        read_table(Text(b"1 2\n3 4 5\n6\n", 1, ""), 2)


def test_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regular, "CHUNK", 10)
    rows = np.arange(60.0).reshape(-1, 3)
    body = "\n".join(" ".join(map(str, row)) for row in rows.tolist()).encode()
    np.testing.assert_array_equal(read_table(Text(body, 1, ""), 3), rows)
