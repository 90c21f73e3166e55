"""Names of formats whose levels store derived modes, with the sizes that each takes.

    "bsr(3,2)" → bsr, (3, 2), ""         "blocked(2,1,3,sss)" → blocked, (2, 1, 3), "sss"

`remapped_names.py` builds formats from these names; `format.py` suggests them for misspelt words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats.level_kind import KINDS

MOST = 2**31 - 1
"""The largest size."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The parameters of a name.

    example   a correct spelling
    counts    the allowed numbers of sizes; empty for one or more
    what      the meaning of the sizes
    letters   whether a format in letters may follow them
    ascends   whether sizes must not decrease
    """

    example: str
    counts: tuple[int, ...] = (0,)
    what: str = "no sizes"
    letters: bool = False
    ascends: bool = False


SIZES: Mapping[str, Sizes] = {
    "dia": Sizes("dia"),
    "ell": Sizes("ell"),
    "rle": Sizes("rle"),
    "sym": Sizes("sym"),
    "bsr": Sizes("bsr(3,3)", (1, 2), "the rows and columns of a block, or one number for both"),
    "bcsr": Sizes("bcsr(3,3)", (1, 2), "the rows and columns of a block, or one number for both"),
    "blocked": Sizes("blocked(2,1,3,sss)", (), "the size of a block for each mode", letters=True),
    "sell": Sizes("sell(8)", (0, 1), "the rows of a slice"),
    "sdia": Sizes("sdia(8)", (0, 1), "the rows of a slice"),
    "nm": Sizes("nm(2,4)", (2,), "n entries of m neighbours", ascends=True),
}
"""The parameters of each name."""

_LETTERS = {letter for kind in KINDS.values() for letter in (kind.letter, kind.repeated) if letter}
_SPELLING = re.compile(r"\s*([a-z]+)\s*(?:\((.*?)(\)?)\s*)?", re.IGNORECASE | re.DOTALL)


def read_sizes(text: str) -> tuple[str, tuple[int, ...], str] | None:
    """Parse a name, its sizes, and the letters after them; None for other names.

    >>> read_sizes("bsr(3, 2)"), read_sizes("blocked(2,1,sss)"), read_sizes("ds")
    (('bsr', (3, 2), ''), ('blocked', (2, 1), 'sss'), None)

    Raises FormatError for sizes that the name does not take.
    """
    match = _SPELLING.fullmatch(text)
    if match is None or match.group(1).lower() not in SIZES:
        return None
    name, inside, closed = match.group(1).lower(), match.group(2), match.group(3)
    sizes = SIZES[name]
    if inside is None:
        if 0 not in sizes.counts and {*name} <= _LETTERS:
            return None  # levels, as of a tensor of order 3 in "bsr"
        if 0 not in sizes.counts:
            raise _refused(text, sizes, "none")
        return name, (), ""
    if not closed:
        raise _refused(text, sizes, "no closing bracket at the end")
    at = re.search("[a-z]", inside, re.IGNORECASE) if sizes.letters else None
    letters = inside[at.start() :] if at else ""
    head = inside[: at.start()].rstrip(", ") if at else inside
    words = [word.strip() for word in head.split(",")] if head.strip() else []
    return name, _checked(text, sizes, words), letters.replace(" ", "")


def _checked(text: str, allowed: Sizes, words: list[str]) -> tuple[int, ...]:
    """Return the sizes as ints. Raises FormatError."""
    for word in words:
        digits = word.lstrip("0")
        if not re.fullmatch(r"\d{1,10}", digits, re.ASCII) or int(digits) > MOST:
            raise _refused(text, allowed, repr(word) if word else "an empty place")
    sizes = tuple(int(word.lstrip("0")) for word in words)
    fits = len(sizes) in allowed.counts if allowed.counts else bool(sizes)
    if not fits:
        numbers = ", ".join(words)
        plural = "s" * (len(sizes) > 1)
        raise _refused(
            text, allowed, f"{len(sizes)} number{plural}, {numbers}," if sizes else "none"
        )
    if allowed.ascends and list(sizes) != sorted(sizes):
        raise _refused(text, allowed, f"{sizes[0]} of {sizes[1]}")
    return sizes


def _refused(text: str, allowed: Sizes, problem: str) -> FormatError:
    bounds = ", integers from 1 to 2^31 - 1" if allowed.counts != (0,) else ""
    order = ", n at most m" if allowed.ascends else ""
    return FormatError(
        f"Expected {allowed.what}{bounds}{order}, found {problem} in {text!r}",
        hint=f'as in "{allowed.example}"',
    )
