"""Recognition of tables of plain numbers in text, 64 bytes at a time on bitmaps (Langdale and
Lemire 2019).

A class of characters (digits, blanks, points …) becomes one bit a byte, 64 bytes a word, the first
byte lowest. A regular expression is then matched at all places at once (Cameron et al. 2014): where
`marks` has a bit at the first character of each run of `class`,

    (marks + class) & ~class

has a bit just after each of these runs, because the carry of the sum ripples through the run.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass

Bits = NDArray[np.uint64]
WORD = 64  # bytes that a word of bits stands for
TOP = np.uint64(63)
ONE = np.uint64(1)
NEWLINE = b"\n"
RARE = (("points", 46), ("minuses", 45), ("exponents", 101), ("exponents", 69), ("pluses", 43))
"""The characters of numbers other than digits, in the order of the search: . - e E +"""


@dataclass(frozen=True, slots=True)
class Row:
    """The layout of each line of a table: words of digits alone, and then numbers.

    integral  whether the numbers have neither points nor exponents
    sizes     the largest number in each of the words of digits; None where unknown
    limits    the smallest and the largest of the integral numbers
    """

    digits: int
    numbers: int
    integral: bool = False
    sizes: tuple[int, ...] | None = None
    limits: tuple[int, int] = (-(2**63), 2**63 - 1)

    @property
    def words(self) -> int:
        """Return the number of words in a line."""
        return self.digits + self.numbers


def words_of_table(chunk: bytes, row: Row) -> int | None:
    r"""Count the words of a table of plain numbers; None where `chunk` is no such table.

    Each line ends in a newline and is empty, or has the words of `row` between spaces. A number is
    -? digits [. digits] [e [+-] digits] with a digit beside the point.

    >>> words_of_table(b"1 2 -1.5e+3\n\n3 4 .5\n", Row(2, 1))
    6
    >>> words_of_table(b"1 2 1.5x\n", Row(2, 1)) is None
    True
    """
    if chunk[-1:] != NEWLINE:
        return None
    text = Classes(np.frombuffer(chunk, dtype=np.uint8))
    if not row.numbers or row.integral:
        text.wrong |= text.points | text.exponents
    if text.wrong.any():
        return None
    marks = text.walk_spaces(after(text.newlines, 1)) & text.inked
    lines = int.from_bytes(marks.tobytes(), "little").bit_count()
    for place in range(row.words):
        if place:
            text.require(marks, text.spaces)
            marks = text.walk_spaces(after(marks))
        if place < row.digits:
            if place + 1 == row.words:
                text.require(marks, text.digits)
            marks = text.walk(marks, text.digits)
        else:
            marks = text.walk_numbers(marks)
    text.require(text.walk_spaces(marks), text.newlines)
    return None if text.wrong.any() else lines * row.words


class Classes:
    """The bitmaps of a text's character classes; `wrong` marks characters of no valid table.

    Bytes after the end of the text, up to full words of bits, are newlines.
    """

    __slots__ = ("digits", "exponents", "inked", "minuses", "newlines", "pluses", "points",
                 "spaces", "wrong")  # fmt: skip

    def __init__(self, text: NDArray[np.uint8]) -> None:
        mask, offsets = np.empty(len(text), dtype=np.bool_), np.empty_like(text)
        self.newlines = bits(np.equal(text, 10, out=mask))
        if left := len(text) % WORD:
            self.newlines[-1] |= np.uint64(2**WORD - 2**left)
        self.spaces = bits(np.equal(text, 32, out=mask))
        np.subtract(text, 48, out=offsets)
        self.digits = bits(np.less(offsets, 10, out=mask))
        self.inked = ~(self.newlines | self.spaces)
        rest = self.inked ^ self.digits
        none = np.zeros_like(rest)
        self.points = self.minuses = self.exponents = self.pluses = none
        for name, character in RARE:  # building a class costs as much as using it
            if not rest.any():
                break
            places = bits(np.equal(text, character, out=mask))
            rest ^= places
            setattr(self, name, getattr(self, name) | places)
        self.wrong = rest

    def require(self, marks: Bits, allowed: Bits) -> None:
        """Record the marks on other than allowed characters as wrong."""
        self.wrong |= marks & ~allowed

    def walk(self, marks: Bits, run: Bits) -> Bits:
        """Move every mark after the run that it is in; runs longer than 64 are wrong."""
        total = marks + run
        carries = np.flatnonzero(total < run)
        if len(carries):
            carries += 1
            if carries[-1] == len(total):
                carries = carries[:-1]
            total[carries] += ONE
            self.wrong[carries] |= total[carries] == 0
        total &= ~run
        return total

    def walk_spaces(self, marks: Bits) -> Bits:
        """Move the marks on spaces after the spaces."""
        return self.walk(marks, self.spaces) if (marks & self.spaces).any() else marks

    def walk_numbers(self, marks: Bits) -> Bits:
        """Move every mark from the first character of a number after its last one."""
        signed = marks & self.minuses
        if signed.any():
            marks = marks ^ signed
            marks |= after(signed)
        leading = marks & self.points
        if leading.any():
            self.require(after(leading), self.digits)
        self.require(marks, self.digits | self.points)
        marks = self.walk(marks, self.digits)
        points = marks & self.points
        if points.any():
            marks ^= points
            marks |= after(points)
            marks = self.walk(marks, self.digits)
        exponents = marks & self.exponents
        return self.walk_exponents(marks ^ exponents, exponents) if exponents.any() else marks

    def walk_exponents(self, marks: Bits, exponents: Bits) -> Bits:
        """Move the marks on e after the integer that follows; keep the other marks."""
        follows = after(exponents)
        signed = follows & (self.minuses | self.pluses)
        follows ^= signed
        follows |= after(signed)
        self.require(follows, self.digits)
        marks |= self.walk(follows, self.digits)
        return marks


def bits(mask: NDArray[np.bool_]) -> Bits:
    """Pack truth values into words, the first lowest, padded with zeros."""
    packed = np.packbits(mask, bitorder="little")
    if left := -len(packed) % 8:
        packed = np.concatenate((packed, np.zeros(left, dtype=np.uint8)))
    words = packed.view(np.uint64)
    return words.byteswap() if sys.byteorder == "big" else words


def after(marks: Bits, first: int = 0) -> Bits:
    """Move every mark one place forward; `first` is the mark on the first place."""
    shifted = marks << ONE
    shifted[1:] |= marks[:-1] >> TOP
    shifted[0] |= np.uint64(first)
    return shifted
