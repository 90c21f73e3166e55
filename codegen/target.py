"""The machine that code is made for: facts given as arguments, never asked of the environment."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.records import dataclass
from codegen.types import ScalarType


class UnsupportedError(RuntimeError):
    """Something that no code of a target does."""


@dataclass(frozen=True, slots=True)
class Target:
    """A language and a machine.

    language      "c" or "cuda"
    vector_bytes  width of a vector register; 0 when there is none to use
    registers     how many vector registers there are
    cores         threads that a parallel loop can use
    caches        sizes in bytes, the nearest first
    flags         of the compiler, beyond those that every kernel is built with
    warp          threads of a GPU that run in step; 0 of what is no GPU
    block         threads of a block, where a schedule does not say
    most_threads  a block may have
    shared_bytes  of memory that the threads of a block share
    together      what a multiprocessor of a GPU has for all blocks there: registers of 4 bytes,
                  bytes of shared memory, threads
    slices        threads of a GPU at a time that have slices of its memory for themselves, at most
    slice_bytes   of all these slices together, but for one that is larger
    atomic_bytes  of the smallest element that an atomic operation changes alone: of smaller ones it
                  writes those of the same word again
    openmp        whether the compiler has OpenMP. Without it, loops keep their `omp simd` pragmas,
                  which need -fopenmp-simd or else are ignored
    """

    language: str = "c"
    vector_bytes: int = 16
    registers: int = 16
    cores: int = 1
    caches: tuple[int, ...] = (32768, 1048576)
    flags: tuple[str, ...] = ()
    openmp: bool = False
    warp: int = 0
    block: int = 0
    most_threads: int = 0
    shared_bytes: int = 0
    together: tuple[int, int, int] = (0, 0, 0)
    slices: int = 0
    slice_bytes: int = 0
    atomic_bytes: int = 1

    def lanes(self, scalar: ScalarType) -> int:
        """Count how many values of `scalar` a register holds; 1 where vectors of it are not
        used."""
        if scalar.kind != "float":
            return 1
        return max(1, self.vector_bytes // scalar.itemsize)

    @classmethod
    def native(
        cls,
        cpu_flags: frozenset[str],
        cores: int,
        caches: tuple[int, ...] = (),
        flags: tuple[str, ...] = (),
        openmp: bool = False,
    ) -> Target:
        """Return the C target of a machine whose CPU reports `cpu_flags` (as in /proc/cpuinfo).

        >>> Target.native(frozenset({"avx2", "sse2"}), cores=2).vector_bytes
        32
        """
        wide = "avx512f" in cpu_flags
        narrow = 32 if "avx2" in cpu_flags or "avx" in cpu_flags else 16
        return cls(
            vector_bytes=64 if wide else narrow,
            registers=32 if wide or cpu_flags & {"neon", "asimd"} else 16,
            cores=cores,
            caches=caches or (32768, 1048576),
            flags=flags,
            openmp=openmp,
        )


CUDA = Target(
    "cuda", vector_bytes=0, registers=255, caches=(), warp=32, block=256, most_threads=1024,
    shared_bytes=48 * 1024, together=(1 << 16, 164 * 1024, 2048), slices=1 << 16,
    slice_bytes=1 << 29, atomic_bytes=2,
)  # fmt: skip
"""A GPU of NVIDIA's, of compute capability 7.0 or later."""


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What a multiprocessor of a GPU has for the blocks that it runs at once.

    blocks, warps   at most
    registers       which warps take by so many at a time (`register_unit`), by four warps at a time
    shared_bytes    which blocks take by so many at a time (`shared_unit`), `reserved_bytes` each
                    beyond what they ask for
    """

    architecture: str
    blocks: int
    warps: int
    shared_bytes: int
    registers: int = 65536
    register_unit: int = 256
    warp_unit: int = 4
    shared_unit: int = 128
    reserved_bytes: int = 1024


MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    each.architecture: each
    for each in (
        Multiprocessor("sm_70", 32, 64, 96 * 1024, shared_unit=256, reserved_bytes=0),
        Multiprocessor("sm_80", 32, 64, 164 * 1024),
        Multiprocessor("sm_86", 16, 48, 100 * 1024),
        Multiprocessor("sm_89", 24, 48, 100 * 1024),
        Multiprocessor("sm_90", 32, 64, 228 * 1024),
    )
}
"""By architecture, from the CUDA C++ programming guide (technical specifications per compute
capability), and the granularity of NVIDIA's occupancy calculator."""
NOMINAL_ARCHITECTURE = "sm_90"
"""Of the GPU that plans are made for where none is there."""
