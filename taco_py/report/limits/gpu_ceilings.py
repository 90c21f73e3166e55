"""What GPUs can do at most: figures of their makers' data sheets, and of publications, as a table.

    GPUS["H100"].peak("float32")   →   6.7e13

Nothing here was measured by us.
"""

from __future__ import annotations

import re
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
    block_threads  a block may have
    """

    name: str
    architecture: str
    processors: int
    floats: float
    doubles: float
    memory_bytes: float
    cache_bytes: int
    block_threads: int = 1024

    @property
    def multiprocessor(self) -> Multiprocessor:
        """What each multiprocessor has for its blocks."""
        return MULTIPROCESSORS[self.architecture]

    def peak(self, dtype: str) -> float | None:
        """Return operations a second on a type of elements; None where the data sheet says
        nothing."""
        return {
            "float32": self.floats,
            "complex64": self.floats,
            "float64": self.doubles,
            "complex128": self.doubles,
        }.get(dtype)


GPUS: Mapping[str, GpuCeilings] = {
    each.name: each
    for each in (
        GpuCeilings("V100", "sm_70", 80, 15.7e12, 7.8e12, 0.9e12, 6 << 20),
        GpuCeilings("V100 SXM3", "sm_70", 80, 16.4e12, 8.2e12, 0.981e12, 6 << 20),
        GpuCeilings("V100S", "sm_70", 80, 16.4e12, 8.2e12, 1.134e12, 6 << 20),
        GpuCeilings("A100 40GB", "sm_80", 108, 19.5e12, 9.7e12, 1.555e12, 40 << 20),
        GpuCeilings("A100 80GB", "sm_80", 108, 19.5e12, 9.7e12, 2.04e12, 40 << 20),
        GpuCeilings("H100", "sm_90", 132, 67e12, 34e12, 3.35e12, 50 << 20),
        GpuCeilings("H100 NVL", "sm_90", 132, 67e12, 34e12, 3.94e12, 50 << 20),
        GpuCeilings("H200", "sm_90", 132, 67e12, 34e12, 4.8e12, 50 << 20),
    )
}
"""By words of their devices' names. Of boards of the same words, the fastest."""
NOMINAL_GPU = "H100"
"""What plans for GPUs are made for where none is there."""


def gpu_named(device: str) -> GpuCeilings | None:
    """Return the GPU of a device's name, None where it is none of the table.

    >>> gpu_named("NVIDIA A100-SXM4-80GB").name
    'A100 80GB'
    >>> gpu_named("NVIDIA GH200 480GB")
    """
    words = {*re.split(r"[\s-]+", device)}
    found = [name for name in GPUS if words.issuperset(name.split())]
    return GPUS[max(found, key=len)] if found else None
