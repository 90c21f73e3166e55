"""Places in one block of memory for values that do not live at the same time.

A value lives from the kernel that makes it to the last that reads it. The largest value is placed
first, at the lowest offset at which no value lies that lives meanwhile (Pisarchyk and Lee 2020,
greedy by size). Before → after, `0 → 1 → 2 → 3`, 64 bytes each, 3 a result, which is none of ours:

    0 at 0, 1 at 64, 2 at 0: 128 bytes instead of 192
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.records import dataclass
from taco_py.graph.orchestrate.candidate_kernels import Kernel
from taco_py.graph.orchestrate.dag import bits

ALIGNMENT = 64
"""Bytes: a line of the cache, and the widest vectors."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value with its bytes, the step that makes it, and the last that reads it."""

    value: int
    size: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Return whether both exist at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """Where each value lies in a block of `size` bytes; `apart`: what separate arrays take."""

    offsets: tuple[tuple[int, int], ...]
    size: int
    apart: int


def lifetimes(
    kernels: Sequence[Kernel], sizes: Mapping[int, int], results: int = 0
) -> tuple[Lifetime, ...]:
    """Return when each value lives that is no result, for kernels in the order they run in."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, kernel in enumerate(kernels):
        for t in bits(kernel.outputs & ~results):
            first.setdefault(t, step)
            last[t] = step
        for t in bits(kernel.inputs & ~results):
            last[t] = step
    return tuple(Lifetime(t, sizes[t], first[t], last[t]) for t in first)


def place_buffers(
    kernels: Sequence[Kernel],
    sizes: Mapping[int, int],
    results: int = 0,
    alignment: int = ALIGNMENT,
) -> BufferPlan:
    """Give each value between kernels an offset, so that no two that live together overlap.

    results  values that users get: they lie elsewhere
    """
    alive = lifetimes(kernels, sizes, results)
    placed: list[tuple[int, Lifetime]] = []
    for value in sorted(alive, key=lambda each: (-each.size, each.first, each.value)):
        start = 0
        for offset, other in sorted(placed, key=lambda pair: pair[0]):
            if value.meets(other):
                if start + value.size <= offset:
                    break
                start = max(start, _aligned(offset + other.size, alignment))
        placed.append((start, value))
    size = max((offset + value.size for offset, value in placed), default=0)
    offsets = tuple(sorted((value.value, offset) for offset, value in placed))
    return BufferPlan(offsets, size, sum(value.size for value in alive))


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
