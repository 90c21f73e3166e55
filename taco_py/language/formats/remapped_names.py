"""Names of remapped formats in texts: "bsr(3,3)", "ell", "sell(8)" …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from taco_py.language.formats.diagonals import DIA, SDIA
from taco_py.language.formats.padded_rows import ELL, NM, SELL
from taco_py.language.formats.remapped import BSR, Blocked, RemappedFormat
from taco_py.language.formats.runs import RLE
from taco_py.language.formats.sized_names import read_sizes
from taco_py.language.formats.symmetric import SYM


def _of_blocks(sizes: tuple[int, ...], _letters: str) -> RemappedFormat:
    return BSR(sizes if len(sizes) == 2 else sizes[0])


MAKERS: Mapping[str, Callable[[tuple[int, ...], str], RemappedFormat]] = {
    "dia": lambda *_: DIA,
    "ell": lambda *_: ELL,
    "rle": lambda *_: RLE,
    "sym": lambda *_: SYM,
    "bsr": _of_blocks,
    "bcsr": _of_blocks,
    "blocked": lambda sizes, letters: Blocked(sizes, letters or "csf"),
    "sell": lambda sizes, _: SELL(*sizes),
    "sdia": lambda sizes, _: SDIA(*sizes),
    "nm": lambda sizes, _: NM(*sizes),
}
"""Constructors of the formats, by the names of `sized_names.SIZES`."""


def remapped(format: Any) -> RemappedFormat | None:
    """Return a remapped format, or parse its name as in "bsr(3,3)"; None for everything else.

    >>> print(remapped("bsr(3,2)"), remapped("blocked(2,1,3,sss)"), remapped("ds"))
    BSR(3,2) Blocked(2,1,3,sss) None

    Raises FormatError for a name with other sizes than it takes.
    """
    if isinstance(format, RemappedFormat):
        return format
    parts = read_sizes(format) if isinstance(format, str) else None
    if parts is None:
        return None
    name, sizes, letters = parts
    return MAKERS[name](sizes, letters)
