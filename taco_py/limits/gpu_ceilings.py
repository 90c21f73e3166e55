"""What GPUs can do at most: figures of their makers' data sheets, and of publications, as a table.

    GPUS["H100"].peak("float32")   →   6.7e13

Nothing here was measured by us. Latencies of shared memory, in cycles, are those that Jia et al.
2018 (V100) and Abdelkhalik et al. 2022 (A100) measured; of H100 and H200 those of Luo et al. 2024.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.records import dataclass
from codegen.target import MULTIPROCESSORS, Multiprocessor


@dataclass(frozen=True, slots=True)
class GpuCeilings:
    """A GPU.

    architecture   by which `codegen.target` knows its multiprocessors
    processors     multiprocessors
    floats         operations a second on floats, without tensor cores; `doubles` on doubles
    memory_bytes   a second from its memory
    cache_bytes    of the cache that all multiprocessors share
    shared_cycles  from a load of shared memory to its use
    block_threads  a block may have
    """

    name: str
    architecture: str
    processors: int
    floats: float
    doubles: float
    memory_bytes: float
    cache_bytes: int
    shared_cycles: int
    block_threads: int = 1024

    @property
    def multiprocessor(self) -> Multiprocessor:
        """What each multiprocessor has for its blocks."""
        return MULTIPROCESSORS[self.architecture]

    def peak(self, dtype: str) -> float | None:
        """Operations a second on a type of elements; None where the data sheet says nothing."""
        return {
            "float32": self.floats,
            "complex64": self.floats,
            "float64": self.doubles,
            "complex128": self.doubles,
        }.get(dtype)


GPUS: Mapping[str, GpuCeilings] = {
    each.name: each
    for each in (
        GpuCeilings("V100", "sm_70", 80, 15.7e12, 7.8e12, 0.9e12, 6 << 20, 19),
        GpuCeilings("A100", "sm_80", 108, 19.5e12, 9.7e12, 1.555e12, 40 << 20, 23),
        GpuCeilings("H100", "sm_90", 132, 67e12, 34e12, 3.35e12, 50 << 20, 29),
        GpuCeilings("H200", "sm_90", 132, 67e12, 34e12, 4.8e12, 50 << 20, 29),
    )
}
"""By name: the SXM modules of each, the A100 with 40 GB."""
NOMINAL_GPU = "H100"
"""What plans for GPUs are made for where none is known."""


def gpu_named(device: str) -> GpuCeilings:
    """The GPU of a device's name; the nominal one where it is none of the table.

    >>> gpu_named("NVIDIA H200").name
    'H200'
    """
    return next((gpu for name, gpu in GPUS.items() if name in device), GPUS[NOMINAL_GPU])
