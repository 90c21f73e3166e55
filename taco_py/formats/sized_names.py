"""Names of remapped formats in texts: which sizes each has, and a text that is right.

Format.parse names the remedy from here, `written.remapped` reads texts by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class SizedName:
    """What may stand in the brackets behind a name.

    example  a text that is right
    counts   how many sizes there may be; empty for any number, at least one
    what     they are
    """

    example: str
    counts: tuple[int, ...]
    what: str

    @property
    def expected(self) -> str:
        """Say what is expected in the brackets."""
        if self.counts == (0,):
            return "no sizes"
        if not self.counts:
            return f"sizes, {self.what}"
        numbers = " or ".join(map(str, self.counts))
        return f"{numbers} size{'s' * (self.counts[-1:] != (1,))}, {self.what}"


_BLOCK = "the rows and columns of a block"
_SLICE = "the rows of a slice"
NAMES: Mapping[str, SizedName] = {
    "bsr": SizedName("bsr(3,3)", (1, 2), _BLOCK),
    "bcsr": SizedName("bcsr(3,3)", (1, 2), _BLOCK),
    "blocked": SizedName("blocked(2,1,3,sss)", (), "a block's along each mode, then a format"),
    "ell": SizedName("ell", (0,), ""),
    "sell": SizedName("sell(8)", (0, 1), _SLICE),
    "dia": SizedName("dia", (0,), ""),
    "sdia": SizedName("sdia(8)", (0, 1), _SLICE),
    "nm": SizedName("nm(2,4)", (2,), "n and m"),
    "rle": SizedName("rle", (0,), ""),
    "sym": SizedName("sym", (0,), ""),
}
"""What each name has in its brackets."""
