"""Names of remapped formats in texts: "bsr(3,3)", "ell", "sell(8)" …"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from taco_py.diagnostics.errors import FormatError
from taco_py.formats.diagonals import DIA, SDIA
from taco_py.formats.padded_rows import ELL, NM, SELL
from taco_py.formats.remapped import BSR, Blocked, RemappedFormat
from taco_py.formats.runs import RLE
from taco_py.formats.sized_names import NAMES, SizedName
from taco_py.formats.symmetric import SYM


def _of_blocks(sizes: list[int]) -> RemappedFormat:
    return BSR(sizes if len(sizes) == 2 else sizes[0])


MAKERS: Mapping[str, Callable[[list[int]], RemappedFormat]] = {
    "bsr": _of_blocks,
    "bcsr": _of_blocks,
    "ell": lambda sizes: ELL,
    "sell": lambda sizes: SELL(*sizes),
    "dia": lambda sizes: DIA,
    "sdia": lambda sizes: SDIA(*sizes),
    "nm": lambda sizes: NM(*sizes),
    "rle": lambda sizes: RLE,
    "sym": lambda sizes: SYM,
}
"""How formats are made of their sizes; `Blocked` has a format behind them."""

_WRITTEN = re.compile(r"\s*([a-z]+)\s*(?:\(([^()]*)\))?\s*", re.IGNORECASE)


def remapped(format: Any) -> RemappedFormat | None:
    """Read a remapped format, or a text of one as in "bsr(3,3)"; None of everything else.

    >>> print(remapped("bsr(3,2)"), remapped("blocked(2,1,3,sss)"), remapped("ds"))
    BSR(3,2) Blocked(2,1,3,sss) None

    Raises FormatError for a text of one that has no such sizes.
    """
    if isinstance(format, RemappedFormat):
        return format
    found = _WRITTEN.fullmatch(format) if isinstance(format, str) else None
    if found is None:
        return None
    name, inside = found.group(1).lower(), found.group(2)
    known = NAMES.get(name)
    if known is None or (inside is None and 0 not in known.counts):
        return None
    sizes, rest = _sizes("" if inside is None else inside.replace(" ", ""))
    if inside is not None and known.counts == (0,):
        _refuse(known, inside, format)
    if name == "blocked":
        if not sizes:
            _refuse(known, inside, format)
        _check_sizes(known, sizes, format)
        return Blocked(sizes, rest or "csf")
    if rest or len(sizes) not in known.counts:
        _refuse(known, inside, format)
    _check_sizes(known, sizes, format)
    return MAKERS[name](sizes)


def _sizes(inside: str) -> tuple[list[int], str]:
    """The numbers at the beginning of what is in brackets, and what is behind them."""
    numbers = re.match(r"(?:-?\d+(?:,(?=.)|$))*", inside)
    head = numbers.group(0) if numbers is not None else ""
    return [int(n) for n in head.split(",") if n], inside[len(head) :]


def _check_sizes(known: SizedName, sizes: list[int], text: str) -> None:
    """Raise FormatError for a size below 1, and for one beyond 32 bits."""
    for size in sizes:
        if not 1 <= size < 2**31:
            raise FormatError(
                f"Expected {known.expected}, each from 1 to {2**31 - 1}, found {size} in {text!r}",
                hint=f'as in "{known.example}"',
            )


def _refuse(known: SizedName, inside: str | None, text: str) -> NoReturn:
    """Raise FormatError for what stands in brackets."""
    stands = (inside or "").strip()
    found = repr(stands) if stands else "nothing"
    raise FormatError(
        f"Expected {known.expected}, found {found} in the brackets of {text!r}",
        hint=f'as in "{known.example}"',
    )
