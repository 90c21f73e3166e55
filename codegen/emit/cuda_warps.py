"""Words for the lanes of a warp, of as many threads as a GPU's warps have.

32 threads   →   0xffffffff, unsigned, __clz
64 threads   →   0xffffffffffffffff, unsigned long long, __clzll
"""

from __future__ import annotations

from codegen.machine.gpu import Gpu


def full_mask(gpu: Gpu) -> str:
    """Return the mask of all lanes of a warp."""
    return f"0x{(1 << gpu.warp_threads) - 1:x}"


def mask_of(gpu: Gpu, lanes: int) -> str:
    """Return the mask of the first lanes of a warp, one bit a lane."""
    return f"0x{(1 << lanes) - 1:x}{'u' if gpu.warp_threads <= 32 else 'ull'}"


def mask_type(gpu: Gpu) -> str:
    """Return the type that has a bit for each lane."""
    return "unsigned" if gpu.warp_threads <= 32 else "unsigned long long"


def leading_zeros(gpu: Gpu, mask: str, lane: str) -> str:
    """Return how many lanes there are between a lane and the last one of a mask before it."""
    name, last = ("__clz", 31) if gpu.warp_threads <= 32 else ("__clzll", 63)
    return f"{name}({mask} << ({last} - {lane}))"
