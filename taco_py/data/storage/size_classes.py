"""Classes of sizes for which plans are shared: numbers of bits, and separate ones for two and
three, which are compile-time constants of loops (`plan.rules.kernel.static_short_sizes`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

SHORT = (2, 3)
"""Sizes with a separate class: points, colours, the sides of small matrices."""

_class: Callable[[int, int], int] = {size: -size for size in SHORT}.get


@lru_cache(maxsize=1024)
def size_classes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the class of each size; 0, 1 and sizes of more than 32 bits are distinguished too.

    >>> size_classes((1, 2, 3, 4, 1000))
    (1, -2, -3, 3, 10)
    """
    return tuple(map(_class, shape, map(int.bit_length, shape)))
