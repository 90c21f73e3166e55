"""The error of memory that is not there."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import AddressError, OutOfMemoryError

ADDRESSABLE = 1 << 62
"""Bytes from which on nothing can be addressed."""

_UNITS = (
    (10**18, "EB"),
    (10**15, "PB"),
    (10**12, "TB"),
    (10**9, "GB"),
    (10**6, "MB"),
    (10**3, "kB"),
)


def out_of_memory(
    what: str, wanted: int | None = None, free: int | None = None, hint: str | None = None
) -> OutOfMemoryError:
    """Make the error of `what`, which needs `wanted` bytes where `free` are free, None for unknown.

    It is an AddressError where no memory could be so large.

    >>> print(out_of_memory("C in the format ds", 16 * 10**12, 22_700_000_000))
    Expected memory for C in the format ds, which needs 16.0 TB, found 22.7 GB free
    >>> print(out_of_memory("C"))
    Expected memory for C, found too little
    """
    needs = "" if wanted is None else f", which needs {bytes_text(wanted)}"
    found = "too little" if free is None else f"{bytes_text(free)} free"
    if free is not None and wanted is None:
        found += ", which is too little"
    elif free is not None and wanted is not None and wanted <= free:
        found += ", of which four fifths may be taken"
    message = f"Expected memory for {what}{needs}, found {found}"
    kind = OutOfMemoryError if wanted is None or wanted < ADDRESSABLE else AddressError
    return kind(message, hint=hint, wanted=wanted, free=free)


ALLOW_MORE = "memory_limit= of the call, or tp.set_memory_limit(…), allows more"


@dataclass(frozen=True, slots=True)
class Part:
    """What there would be, and its bytes: 0 where they are not known; or up to so many."""

    what: str
    size: int
    up_to: bool = False

    @property
    def told(self) -> str:
        """Return the bytes in words."""
        return f"{'up to ' if self.up_to else ''}{bytes_text(self.size)}"


def over_limit(parts: Sequence[Part], limit: int, hint: str | None = None) -> OutOfMemoryError:
    """Make the error of what takes more at once than the user allows.

    >>> print(over_limit([Part("C", 3 * 10**9), Part("T", 10**9, True)], 2 * 10**9))
    Expected memory for C (3.0 GB) and T (up to 1.0 GB), up to 4.0 GB, found a limit of 2.0 GB
    hint: memory_limit= of the call, or tp.set_memory_limit(…), allows more
    """
    told = [f"{part.what} ({part.told})" if part.size else part.what for part in parts]
    listed = " and ".join((", ".join(told[:-1]), told[-1])) if len(told) > 1 else told[0]
    total = Part("", sum(part.size for part in parts), any(part.up_to for part in parts))
    whole = f", {total.told}" if len(parts) > 1 and total.size else ""
    return OutOfMemoryError(
        f"Expected memory for {listed}{whole}, found a limit of {bytes_text(limit)}",
        hint=f"{hint}; {ALLOW_MORE}" if hint else ALLOW_MORE,
        wanted=total.size or None,
        free=limit,
    )


def bytes_text(count: int) -> str:
    """Print a number of bytes for people.

    >>> bytes_text(3_600_000_000), bytes_text(12)
    ('3.6 GB', '12 bytes')
    """
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
