"""What a launch did, counted: bytes, sectors that warps touched, accesses of each thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.devices.device import Shape
from codegen.records import dataclass

SECTOR = 32
"""Bytes that global memory moves at a time."""


@dataclass(frozen=True, slots=True)
class AccessPlace:
    """What all threads did to one buffer at one access of the text.

    kind           "read", "write" or "atomic"
    accesses       of threads; `bytes` are those that they asked for
    requests       of warps: accesses of lanes that run together count as one
    sectors        of 32 bytes that the requests touched
    ideal_sectors  that the same bytes would fill
    """

    line: int
    kind: str
    buffer: str
    accesses: int
    bytes: int
    requests: int
    sectors: int
    ideal_sectors: int


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A launch that has ended. What is behind `seconds` is counted where the device counts.

    accesses_per_thread  of global and shared memory, of each thread of the grid
    places               each access of the text to global memory, in the order of lines
    """

    kernel: str
    shape: Shape
    seed: int
    seconds: float
    barriers: int
    warp_operations: int
    bytes_read: int = 0
    bytes_written: int = 0
    atomics: int = 0
    accesses_per_thread: NDArray[np.uint32] | None = None
    places: tuple[AccessPlace, ...] = ()

    @property
    def sectors(self) -> int:
        """Return the sectors of 32 bytes of global memory that warps accessed."""
        return sum(place.sectors for place in self.places if place.kind != "atomic")

    @property
    def sector_bytes_read(self) -> int:
        """Return the bytes of the sectors that warps read, by atomics too.

        A sector counts with each request: two passes over a row read it twice.
        """
        return SECTOR * sum(place.sectors for place in self.places if place.kind != "write")

    @property
    def sector_bytes_written(self) -> int:
        """Return the bytes of the sectors that warps wrote, by atomics too."""
        return SECTOR * sum(place.sectors for place in self.places if place.kind != "read")

    @property
    def sector_bytes(self) -> int:
        """Return the bytes of all sectors between global memory and warps, in both directions."""
        return self.sector_bytes_read + self.sector_bytes_written

    @property
    def ideal_sectors(self) -> int:
        """Return the sectors that the same bytes would fill."""
        return sum(place.ideal_sectors for place in self.places if place.kind != "atomic")

    @property
    def imbalance(self) -> float:
        """Return the most accesses of a thread, over the mean."""
        counts: Any = self.accesses_per_thread
        if counts is None or not counts.any():
            return 1.0
        return float(counts.max() / counts.mean())
