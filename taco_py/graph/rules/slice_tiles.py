"""Slices of one array that have no element in common, known by how they are written.

x[:n], x[n:2*n], x[2*n:]    one behind the other along a mode
x[::2], x[1::2]             alternate
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taco_py.graph.extents import Extent, const

FULL_SLICE = ("slice", None, None, None)
ZERO = const(0)

Key = tuple[tuple[Any, ...], ...]
"""For each mode an integer as ("at", place), or a slice as ("slice", start, stop, step)."""


def mode_cut(keys: Sequence[Key]) -> int | None:
    """Return the one mode of which slices are taken; None where it is another or are several."""
    cut = {
        mode
        for key in keys
        for mode, entry in enumerate(key)
        if entry != FULL_SLICE
    }  # fmt: skip
    (mode,) = cut if len(cut) == 1 else (None,)
    reads_all = any(key[mode] == FULL_SLICE for key in keys) if mode is not None else True
    return None if reads_all else mode


def order_of_tiles(keys: Sequence[Key], mode: int) -> list[int] | None:
    """Return the slices in the order in which they lie behind each other; None where they do not.

    Each begins where the one before ends, with steps of 1; elements may be left out before the
    first one and behind the last one.
    """
    entries = [key[mode] for key in keys]
    if any(entry[0] != "slice" or _step(entry) != 1 for entry in entries):
        return None
    stops = {entry[2] for entry in entries}
    first = [place for place, entry in enumerate(entries) if _start(entry) not in stops]
    if len(first) != 1 or len({_start(entry) for entry in entries}) < len(entries):
        return None
    order = first
    while len(order) < len(entries):
        stop = entries[order[-1]][2]
        following = [place for place, entry in enumerate(entries) if _start(entry) == stop]
        if stop is None or len(following) != 1 or following[0] in order:
            return None
        order.append(following[0])
    return order


def are_disjoint(keys: Sequence[Key]) -> bool:
    """Tell whether slices have no element in common, by how they are written."""
    mode = mode_cut(keys)
    if mode is None:
        return False
    if order_of_tiles(keys, mode) is not None:
        return True
    entries = [key[mode] for key in keys]
    if any(entry[0] != "slice" or entry[2] is not None for entry in entries):
        return False
    steps = {_step(entry) for entry in entries}
    starts = [start.constant for entry in entries if (start := _start(entry)).constant is not None]
    (step,) = steps if len(steps) == 1 else (None,)
    return (
        isinstance(step, int) and step > 1 and len(starts) == len(entries)
        and len({int(start) % step for start in starts}) == len(entries)
        and all(int(start) >= 0 for start in starts)
    )  # fmt: skip


def _start(entry: tuple[Any, ...]) -> Extent:
    return ZERO if entry[1] is None else entry[1]


def _step(entry: tuple[Any, ...]) -> Any:
    return 1 if entry[3] is None else entry[3].constant
