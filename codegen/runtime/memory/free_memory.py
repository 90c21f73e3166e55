"""The guard: what does not fit in memory is refused before it is tried.

    free = min(MemAvailable, limits of control groups - their use, RLIMIT_AS - VmSize)

is what `taco_free_memory` of taco_host.c returns, and arrays that grow look at. Four fifths
of it may be taken at once: a system without memory kills processes, and the user's may be another
one than the one that took it.
"""

from __future__ import annotations

from collections.abc import Callable

TRUSTED = 32 * 1024**2
"""Bytes that are asked for without a look at what is free (TACO_TRUSTED of taco_runtime.h)."""
UNKNOWN = 2**63 - 1
"""What is free where the system does not say."""
SHARE = 0.8
"""The part of what is free that may be taken."""


class ShortageError(MemoryError):
    """`wanted` bytes are more than may be taken of those that are `free`, or than a limit of users
    allows, which `free` is then."""

    def __init__(self, size: int, free: int, limited: bool = False) -> None:
        self.limited = limited
        self.wanted = size
        self.free = free
        super().__init__(f"Expected {size} bytes of memory, found {free} free")


def require(
    size: int, free: Callable[[], int], give_back: Callable[[], bool], most: int | None = None
) -> None:
    """Raise ShortageError unless `size` bytes may be taken.

    free       how many bytes this process may still use
    give_back  makes more of them free; whether there was something to give back
    most       bytes that a caller allows, whatever is free
    """
    left = free()
    if size > SHARE * left and give_back():
        left = free()
    if size > SHARE * left or (most is not None and size > most):
        raise ShortageError(size, left if most is None else min(left, most))
