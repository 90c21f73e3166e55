"""Caches that are simulated, and the bytes that move between them and memory, as records."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.machine.cpu import Processor
from codegen.records import dataclass

MOST_CACHES = 4
"""Caches between a processor and its memory: as in `cache_hierarchy.h`."""


@dataclass(frozen=True, slots=True)
class SimulatedCache:
    """A cache of `bytes`, of which `ways` lines compete for each place; the oldest one leaves."""

    bytes: int
    ways: int = 8


@dataclass(frozen=True, slots=True)
class SimulatedCaches:
    """The caches of one core, the nearest first, of lines of `line_bytes`.

    Raises ValueError for no cache or more than `MOST_CACHES`, and for a size that is no multiple of
    the bytes that compete for one place.
    """

    caches: tuple[SimulatedCache, ...]
    line_bytes: int = 64

    def __post_init__(self) -> None:
        if not 0 < len(self.caches) <= MOST_CACHES:
            raise ValueError(f"Expected 1 to {MOST_CACHES} caches, found {len(self.caches)}")
        if self.line_bytes < 1 or self.line_bytes & (self.line_bytes - 1):
            raise ValueError(f"Expected lines of a power of 2 bytes, found {self.line_bytes}")
        for number, cache in enumerate(self.caches, 1):
            if cache.ways < 1 or cache.bytes < 1 or cache.bytes % (cache.ways * self.line_bytes):
                raise ValueError(
                    f"Expected cache {number} to have a multiple of {cache.ways} lines of "
                    f"{self.line_bytes} bytes, found {cache.bytes} bytes"
                )

    @classmethod
    def of_processor(cls, processor: Processor, ways: Sequence[int] = ()) -> SimulatedCaches:
        """Return the caches of `processor`; `ways` of each, 8 where it says nothing.

        Sizes are rounded down to whole sets of lines.

        >>> SimulatedCaches.of_processor(Processor(cache_bytes=(32768, 1000000))).caches[1]
        SimulatedCache(bytes=999936, ways=8)
        """
        counts = (*ways, *(8,) * len(processor.cache_bytes))
        caches = []
        for size, count in zip(processor.cache_bytes, counts, strict=False):
            unit = count * processor.line_bytes
            caches.append(SimulatedCache(max(size // unit, 1) * unit, count))
        return cls(tuple(caches), processor.line_bytes)


@dataclass(frozen=True, slots=True)
class CacheTraffic:
    """The bytes that came into a cache from the next one, or memory, and went there from it."""

    bytes_read: int
    bytes_written: int

    def __sub__(self, earlier: CacheTraffic) -> CacheTraffic:
        """Return the bytes since `earlier`."""
        read = self.bytes_read - earlier.bytes_read
        return CacheTraffic(read, self.bytes_written - earlier.bytes_written)


@dataclass(frozen=True, slots=True)
class MemoryTraffic:
    """The bytes that kernels moved.

    loaded, stored  by their instructions, between registers and the nearest cache or past it
    caches          between each cache and the next one, or memory behind the last one
    streamed        past all caches
    """

    loaded: int
    stored: int
    caches: tuple[CacheTraffic, ...]
    streamed: int = 0

    @property
    def dram_read(self) -> int:
        """Return the bytes that were read from memory."""
        return self.caches[-1].bytes_read

    @property
    def dram_written(self) -> int:
        """Return the bytes that were written to memory, from the last cache or past all."""
        return self.caches[-1].bytes_written + self.streamed

    @property
    def dram_bytes(self) -> int:
        """Return the bytes between memory and all that is before it, in both directions."""
        return self.dram_read + self.dram_written

    def __sub__(self, earlier: MemoryTraffic) -> MemoryTraffic:
        """Return the bytes since `earlier`."""
        pairs = zip(self.caches, earlier.caches, strict=True)
        return MemoryTraffic(
            self.loaded - earlier.loaded,
            self.stored - earlier.stored,
            tuple(a - b for a, b in pairs),
            self.streamed - earlier.streamed,
        )

    def __str__(self) -> str:
        """Return a line: the bytes of registers, of each cache and of memory, read and written."""
        levels = [("registers", self.loaded, self.stored)]
        for number, cache in enumerate(self.caches[:-1], 1):
            levels.append((f"cache {number}", cache.bytes_read, cache.bytes_written))
        levels.append(("memory", self.dram_read, self.dram_written))
        return ", ".join(f"{name} {read} read {out} written" for name, read, out in levels)
