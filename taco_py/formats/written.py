"""Names of remapped formats in texts: "bsr(3,3)", "ell", "sell(8)" …"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from taco_py.diagnostics.errors import FormatError
from taco_py.formats.diagonals import DIA, SDIA
from taco_py.formats.padded_rows import ELL, NM, SELL
from taco_py.formats.remapped import BSR, Blocked, RemappedFormat
from taco_py.formats.runs import RLE
from taco_py.formats.symmetric import SYM

PLAIN_NAMES: Mapping[str, RemappedFormat] = {"dia": DIA, "ell": ELL, "rle": RLE, "sym": SYM}
"""Formats without sizes."""


def _of_blocks(sizes: list[int]) -> RemappedFormat:
    return BSR(sizes if len(sizes) == 2 else sizes[0])


SIZED: Mapping[str, tuple[Callable[[list[int]], RemappedFormat], tuple[int, ...], str]] = {
    "bsr": (_of_blocks, (1, 2), "the rows and columns of a block"),
    "bcsr": (_of_blocks, (1, 2), "the rows and columns of a block"),
    "sell": (lambda sizes: SELL(*sizes), (0, 1), "the rows of a slice"),
    "sdia": (lambda sizes: SDIA(*sizes), (0, 1), "the rows of a slice"),
    "nm": (lambda sizes: NM(*sizes), (2,), "n and m"),
}
"""Formats with sizes: how one is made, how many there are, and what they are."""

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
    name, inside = found.group(1).lower(), (found.group(2) or "").replace(" ", "")
    if name in PLAIN_NAMES and found.group(2) is None:
        return PLAIN_NAMES[name]
    numbers = re.match(r"(?:\d+(?:,|$))*", inside)
    head = numbers.group(0) if numbers is not None else ""
    sizes, rest = [int(n) for n in head.split(",") if n], inside[len(head) :]
    if name == "blocked" and sizes:
        return Blocked(sizes, rest or "csf")
    if name not in SIZED:
        return None
    make, counts, what = SIZED[name]
    if found.group(2) is None and 0 not in counts:
        return None
    if rest or len(sizes) not in counts:
        raise FormatError(
            f"Expected {what}, found {inside!r} in {format!r}", hint='as in "bsr(3,3)", "sell(8)"'
        )
    return make(sizes)
