"""Names of formats whose levels store derived modes, with the sizes that each takes: one table.

    "bsr(3,2)" → bsr, (3, 2), ""         "blocked(2,1,3,sss)" → blocked, (2, 1, 3), "sss"

`written.py` makes formats of what is read here; `format.py` asks what a word may have meant.
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
    """What a name takes.

    example   how it is written
    counts    how many sizes there may be; empty for one or more
    what      what the sizes are
    letters   whether a format in letters may follow them
    ascends   whether no size is above the next
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
"""What each name takes."""

_LETTERS = {each for kind in KINDS.values() for each in (kind.letter, kind.repeated) if each}
_WRITTEN = re.compile(r"\s*([a-z]+)\s*(?:\((.*?)(\)?)\s*)?", re.IGNORECASE | re.DOTALL)


def read_sizes(text: str) -> tuple[str, tuple[int, ...], str] | None:
    """Read a name, its sizes, and the letters behind them; None where the name is another.

    >>> read_sizes("bsr(3, 2)"), read_sizes("blocked(2,1,sss)"), read_sizes("ds")
    (('bsr', (3, 2), ''), ('blocked', (2, 1), 'sss'), None)

    Raises FormatError for sizes that the name does not take.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None or found.group(1).lower() not in SIZES:
        return None
    name, inside, closed = found.group(1).lower(), found.group(2), found.group(3)
    own = SIZES[name]
    if inside is None:
        if 0 not in own.counts and {*name} <= _LETTERS:
            return None  # levels, as of a tensor of order 3 in "bsr"
        if 0 not in own.counts:
            raise _refused(text, own, "none")
        return name, (), ""
    if not closed:
        raise _refused(text, own, "no closing bracket at the end")
    at = re.search("[a-z]", inside, re.IGNORECASE) if own.letters else None
    letters = inside[at.start() :] if at else ""
    head = inside[: at.start()].rstrip(", ") if at else inside
    words = [word.strip() for word in head.split(",")] if head.strip() else []
    return name, _checked(text, own, words), letters.replace(" ", "")


def _checked(text: str, own: Sizes, words: list[str]) -> tuple[int, ...]:
    """Return the sizes. Raises FormatError."""
    for word in words:
        digits = word.lstrip("0")
        if not re.fullmatch(r"\d{1,10}", digits, re.ASCII) or int(digits) > MOST:
            raise _refused(text, own, repr(word) if word else "an empty place")
    sizes = tuple(int(word.lstrip("0")) for word in words)
    fits = len(sizes) in own.counts if own.counts else bool(sizes)
    if not fits:
        shown = ", ".join(words)
        plural = "s" * (len(sizes) > 1)
        raise _refused(text, own, f"{len(sizes)} number{plural}, {shown}," if sizes else "none")
    if own.ascends and list(sizes) != sorted(sizes):
        raise _refused(text, own, f"{sizes[0]} of {sizes[1]}")
    return sizes


def _refused(text: str, own: Sizes, found: str) -> FormatError:
    bounds = ", integers from 1 to 2^31 - 1" if own.counts != (0,) else ""
    order = ", n at most m" if own.ascends else ""
    return FormatError(
        f"Expected {own.what}{bounds}{order}, found {found} in {text!r}",
        hint=f'as in "{own.example}"',
    )
