"""Errors of insufficient memory."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import AddressError, OutOfMemoryError

ADDRESSABLE = 1 << 62
"""The number of bytes from which memory cannot be addressed."""

_UNITS = (
    (10**18, "EB"),
    (10**15, "PB"),
    (10**12, "TB"),
    (10**9, "GB"),
    (10**6, "MB"),
    (10**3, "kB"),
)


def out_of_memory(
    what: str, required: int | None = None, free: int | None = None, hint: str | None = None
) -> OutOfMemoryError:
    """Build the error of `what`, which needs `required` bytes where `free` are free (None:
    unknown).

    It is an AddressError where no memory could be so large.

    >>> print(out_of_memory("C in the format ds", 16 * 10**12, 22_700_000_000))
    Expected memory for C in the format ds, which needs 16.0 TB, found 22.7 GB free
    >>> print(out_of_memory("C"))
    Expected memory for C, found too little
    """
    needs = "" if required is None else f", which needs {bytes_text(required)}"
    available = "too little" if free is None else f"{bytes_text(free)} free"
    if free is not None and required is None:
        available += ", which is too little"
    elif free is not None and required is not None and required <= free:
        available += ", of which four fifths may be taken"
    message = f"Expected memory for {what}{needs}, found {available}"
    kind = OutOfMemoryError if required is None or required < ADDRESSABLE else AddressError
    return kind(message, hint=hint, wanted=required, free=free)


ALLOW_MORE = "memory_limit= of the call, or tp.set_memory_limit(…), allows more"


@dataclass(frozen=True, slots=True)
class Part:
    """A result or temporary and its bytes: 0 where unknown, an upper bound with `up_to`."""

    what: str
    size: int
    up_to: bool = False

    @property
    def described_size(self) -> str:
        """Return the number of bytes in words."""
        return f"{'up to ' if self.up_to else ''}{bytes_text(self.size)}"


def over_limit(parts: Sequence[Part], limit: int, hint: str | None = None) -> OutOfMemoryError:
    """Build the error of tensors that exceed the user's memory limit together.

    >>> print(over_limit([Part("C", 3 * 10**9), Part("T", 10**9, True)], 2 * 10**9))
    Expected memory for C (3.0 GB) and T (up to 1.0 GB), up to 4.0 GB, found a limit of 2.0 GB
    hint: memory_limit= of the call, or tp.set_memory_limit(…), allows more
    """
    descriptions = [
        f"{part.what} ({part.described_size})" if part.size else part.what for part in parts
    ]
    parts_text = (
        " and ".join((", ".join(descriptions[:-1]), descriptions[-1]))
        if len(descriptions) > 1
        else descriptions[0]
    )
    total = Part("", sum(part.size for part in parts), any(part.up_to for part in parts))
    total_text = f", {total.described_size}" if len(parts) > 1 and total.size else ""
    return OutOfMemoryError(
        f"Expected memory for {parts_text}{total_text}, found a limit of {bytes_text(limit)}",
        hint=f"{hint}; {ALLOW_MORE}" if hint else ALLOW_MORE,
        wanted=total.size or None,
        free=limit,
    )


def bytes_text(count: int) -> str:
    """Format a number of bytes for people.

    >>> bytes_text(3_600_000_000), bytes_text(12)
    ('3.6 GB', '12 bytes')
    """
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
