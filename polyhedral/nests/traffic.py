"""The bytes that move into a cache while a tiled nest runs.

Loops are in order from the outermost to the innermost one, loops over tiles first. A cache keeps
the footprint of the loops from some depth on: the outermost depth at which that fits. An array is
then loaded once for every iteration of the outer loops, except adjacent ones along which it does
not change:

    for i_tile, j_tile, k_tile, i, k, j:  C[i,j] += A[i,k] * B[k,j]

    a cache that holds a tile:  C once a tile of i, j;  A and B once a tile of i, j, k

Along the next outer loop, the footprint of an iteration may overlap that of the previous one, as in
a sliding window. That part is still in the cache:

    for i, a, j:  O[i,j] += K[a] * I[i+a,j]

    a cache that holds some rows:  each row of I once, not once for each a
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from polyhedral.nests.footprint import Footprint, Sizes, total_bytes

Nested = tuple[str, int]
"""A loop's name and its iterations; a loop over tiles has the name of the loop that it splits."""


def bytes_into(parts: Sequence[Footprint], loops: Sequence[Nested], cache: int, line: int) -> float:
    """Return the bytes that enter a cache of `cache` bytes, in lines."""
    depth = next(
        (at for at in range(len(loops)) if total_bytes(parts, _inside(loops[at:]), line) <= cache),
        len(loops),
    )
    return sum(_loaded(part, loops[:depth], loops[depth:], line) for part in parts)


def _inside(loops: Sequence[Nested]) -> Sizes:
    """Return the iterations of each loop name, all its loops multiplied."""
    return {name: prod(rounds for loop, rounds in loops if loop == name) for name, _ in loops}


def _loaded(
    part: Footprint, outside: Sequence[Nested], inside: Sequence[Nested], line: int
) -> float:
    """Return the bytes of an array that enter a cache which keeps the footprint of the loops
    `inside`."""
    running = [(name, rounds) for name, rounds in outside if rounds > 1]
    while running and running[-1][0] not in part.loops:
        running.pop()
    sizes = _inside([*running[-1:], *inside])
    return total_bytes([part], sizes, line) * prod(rounds for _, rounds in running[:-1])


def traffic_line(amounts: Sequence[float]) -> str:
    """Return the bytes into each cache, the nearest first, as a line of a plan.

    >>> traffic_line([1.5e9, 3.2e7])
    'traffic: into cache 1 1.5e+09 bytes, into cache 2 3.2e+07'
    """
    items = [f"into cache {level} {amount:.2g}" for level, amount in enumerate(amounts, 1)]
    return "traffic: " + ", ".join([f"{items[0]} bytes", *items[1:]]) if items else ""
