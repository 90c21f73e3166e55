"""Processors as records: what code for a CPU depends on."""

from __future__ import annotations

from codegen.records import dataclass

SHARE_BYTES = 1 << 24
"""The most of the last cache that a core fills. Measured: a copy of 32 MiB by one of two cores of a
virtual machine with 480 MiB takes the same time past the caches, one of 64 MiB 0.8 of it."""


@dataclass(frozen=True, slots=True)
class Processor:
    """A CPU.

    vector_bytes   of a vector register; 0 when there is none to use
    registers      how many vector registers there are
    cores          threads that a parallel loop can use
    cache_bytes    of each cache, the nearest first
    line_bytes     that move between caches at a time
    """

    vector_bytes: int = 16
    registers: int = 16
    cores: int = 1
    cache_bytes: tuple[int, ...] = (32768, 1048576)
    line_bytes: int = 64

    @property
    def past_caches_bytes(self) -> int:
        """Return the bytes of an array from which on it is written past the caches.

        Half of the last cache, of which a core has no more than a share: virtual machines report
        the cache of all cores of their host.
        """
        return min(self.cache_bytes[-1] // 2, self.cores * SHARE_BYTES)

    @classmethod
    def of_flags(
        cls, cpu_flags: frozenset[str], cores: int, cache_bytes: tuple[int, ...] = ()
    ) -> Processor:
        """Return the machine whose CPU reports `cpu_flags` (as in /proc/cpuinfo).

        >>> Processor.of_flags(frozenset({"avx2", "sse2"}), cores=2).vector_bytes
        32
        """
        wide = "avx512f" in cpu_flags
        narrow = 32 if "avx2" in cpu_flags or "avx" in cpu_flags else 16
        return cls(
            vector_bytes=64 if wide else narrow,
            registers=32 if wide or cpu_flags & {"neon", "asimd"} else 16,
            cores=cores,
            cache_bytes=cache_bytes or (32768, 1048576),
        )
