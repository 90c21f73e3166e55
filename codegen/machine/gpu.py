"""GPUs as records: what plans, tiles, limits, prices, emulation and the compiler of CUDA read.

    GPUS["H100"].peak("float32")   →   6.7e13

Figures are those of the makers' data sheets and guides, and of publications; we measured none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What a multiprocessor of an architecture has for the blocks that it runs at once.

    blocks, warps   at most
    shared_bytes    which blocks take by so many at a time (`shared_unit`), `reserved_bytes` each
                    beyond what they ask for
    registers       of 4 bytes, which warps take by so many at a time (`register_unit`), by four
                    warps at a time (`warp_unit`)
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
    multiprocessor.architecture: multiprocessor
    for multiprocessor in (
        Multiprocessor("sm_70", 32, 64, 96 * 1024, shared_unit=256, reserved_bytes=0),
        Multiprocessor("sm_80", 32, 64, 164 * 1024),
        Multiprocessor("sm_86", 16, 48, 100 * 1024),
        Multiprocessor("sm_89", 24, 48, 100 * 1024),
        Multiprocessor("sm_90", 32, 64, 228 * 1024),
    )
}
"""By architecture, from the CUDA C++ programming guide (technical specifications per compute
capability), and the granularity of NVIDIA's occupancy calculator."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU.

    name                          words of its device's name
    architecture                  by which `MULTIPROCESSORS` has what is at once on a multiprocessor
    multiprocessors               how many there are
    float_operations_per_second   without tensor cores; `double_operations_per_second` on doubles
    memory_bytes_per_second       from and to its memory
    cache_bytes                   of the cache that all multiprocessors share
    cycles_per_second             of a multiprocessor, each of whose `schedulers` begins an
                                  instruction of a warp in a cycle
    cache_bytes_per_second        from that cache
    latency_seconds               of a load from memory
    step_cycles                   from such a load to its use behind two barriers: what one block
                                  waits in each step of a tile, if no other one has work to do
    unhidden_share                of reading that is not hidden behind instructions, or the other
                                  way round; not measured
    launch_seconds                of a launch of a kernel
    warp_threads                  threads that run in step
    block_threads                 threads of a block, where a schedule does not say
    most_block_threads            threads that a block may have
    block_shared_bytes            of memory that the threads of a block share, at most
    thread_registers              registers of 4 bytes that a thread may have
    sector_bytes                  the least that moves between memory and threads
    banks                         words of 4 bytes that shared memory moves in a cycle
    atomic_bytes                  of the smallest element that an atomic operation changes alone: of
                                  smaller ones it writes those of the same word again
    slice_threads                 threads at a time that have slices of memory for themselves
    slice_bytes                   of all these slices together, but for one that is larger
    """

    name: str
    architecture: str
    multiprocessors: int
    float_operations_per_second: float
    double_operations_per_second: float
    memory_bytes_per_second: float
    cache_bytes: int
    cycles_per_second: float
    cache_bytes_per_second: float = 5.5e12
    latency_seconds: float = 3e-7
    step_cycles: float = 700.0
    unhidden_share: float = 0.1
    launch_seconds: float = 3e-6
    schedulers: int = 4
    warp_threads: int = 32
    block_threads: int = 256
    most_block_threads: int = 1024
    block_shared_bytes: int = 48 * 1024
    thread_registers: int = 255
    sector_bytes: int = 32
    banks: int = 32
    atomic_bytes: int = 2
    slice_threads: int = 1 << 16
    slice_bytes: int = 1 << 29

    @property
    def multiprocessor(self) -> Multiprocessor:
        """Return the resources that each multiprocessor has for its blocks."""
        return MULTIPROCESSORS[self.architecture]

    @property
    def instructions_per_second(self) -> float:
        """Return the instructions of warps that all multiprocessors begin in a second."""
        return self.multiprocessors * self.schedulers * self.cycles_per_second

    @property
    def block_warps(self) -> int:
        """Return the warps that a block has at most."""
        return self.most_block_threads // self.warp_threads

    @property
    def requested_shared_bytes(self) -> int:
        """Return the shared memory that a block has at most where its launch asks for more."""
        has = self.multiprocessor
        return has.shared_bytes - has.reserved_bytes

    def peak(self, dtype: str) -> float | None:
        """Return operations a second on a type of elements; None where the data sheet says
        nothing."""
        return {
            "float32": self.float_operations_per_second,
            "complex64": self.float_operations_per_second,
            "float64": self.double_operations_per_second,
            "complex128": self.double_operations_per_second,
        }.get(dtype)


GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        Gpu("V100", "sm_70", 80, 15.7e12, 7.8e12, 0.9e12, 6 << 20, 1.53e9),
        Gpu("V100 SXM3", "sm_70", 80, 16.4e12, 8.2e12, 0.981e12, 6 << 20, 1.6e9),
        Gpu("V100S", "sm_70", 80, 16.4e12, 8.2e12, 1.134e12, 6 << 20, 1.6e9),
        Gpu("A100 40GB", "sm_80", 108, 19.5e12, 9.7e12, 1.555e12, 40 << 20, 1.41e9),
        Gpu("A100 80GB", "sm_80", 108, 19.5e12, 9.7e12, 2.04e12, 40 << 20, 1.41e9),
        Gpu("H100", "sm_90", 132, 67e12, 34e12, 3.35e12, 50 << 20, 1.7e9),
        Gpu("H100 NVL", "sm_90", 132, 67e12, 34e12, 3.94e12, 50 << 20, 1.7e9),
        Gpu("H200", "sm_90", 132, 67e12, 34e12, 4.8e12, 50 << 20, 1.7e9),
    )
}
"""By words of their devices' names. Of boards of the same words, the fastest."""
NOMINAL_GPU = GPUS["H100"]
"""What plans for GPUs are made for, whichever is there: the same calls get the same plans."""


def gpu_named(device: str) -> Gpu | None:
    """Return the GPU of a device's name, None where it is none of the table.

    >>> gpu_named("NVIDIA A100-SXM4-80GB").name
    'A100 80GB'
    >>> gpu_named("NVIDIA GH200 480GB")
    """
    words = {*re.split(r"[\s-]+", device)}
    names = [name for name in GPUS if words.issuperset(name.split())]
    return GPUS[max(names, key=len)] if names else None
