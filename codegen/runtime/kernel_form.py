"""The form of a kernel's C: kernels of one form differ in names alone, and are compiled once.

    /* p8 = sum(i, r[i] * r[i]) */
    …                                                     …
    t += r_vals[i] * r_vals[i];                           $4 += $5[$3] * $5[$3];
    the C of a kernel                                     its form

Programs have many such kernels: equal layers of a network, and results with a number in their name.
"""

from __future__ import annotations

import re
from collections.abc import Set

_WORD = re.compile(r"(?<!\.)(?<!->)\b[A-Za-z_]\w*")
"""An identifier that is no member of a structure."""
_QUOTE = re.compile(r"^[^#\n]*[\"']", re.MULTILINE)
"""A text or a character, in which a word is no name."""


def form_of(source: str, names: Set[str]) -> str:
    """Return C without its first comment, and with `names` numbered by the order of first use.

    names  the variables that `source` declares; none of them means anything else in C

    >>> form_of("/* y = 2 */ y_vals[0] = s->x + x;", {"y_vals", "x"})
    ' $0[0] = s->x + $1;'
    """
    if source.startswith("/*"):
        source = source.partition("*/")[2]
    if _QUOTE.search(source):
        return source
    numbers: dict[str, str] = {}

    def number(word: re.Match[str]) -> str:
        name = word[0]
        return numbers.setdefault(name, f"${len(numbers)}") if name in names else name

    return _WORD.sub(number, source)
