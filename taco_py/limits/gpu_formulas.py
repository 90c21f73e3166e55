"""The performance upper limit of DeepCuts (Jung et al. 2021, section 4), formula by formula.

    PUL = GMRatio · SMRatio · WBRatio · COEF_r        of the GPU's peak, from 0 to 1

    GMRatio  operations for each byte of global memory, over those that the GPU has time for
    SMRatio  operations for each load of shared memory, over the cycles that the load takes
    WBRatio  blocks, over those that all multiprocessors could run in the same rounds
    COEF_r   1 where a block's threads and shared memory are within the limits, else 0

SMRatio takes a thread by itself, whose loads nothing hides; where warps hide each other's, more is
possible. So it ranks parameters and is no bound: `gpu_bound` leaves it out.
"""

from __future__ import annotations

from math import ceil, prod

from codegen.occupancy import occupancy
from codegen.records import dataclass
from taco_py.limits.gpu_ceilings import GpuCeilings


@dataclass(frozen=True, slots=True)
class BlockWork:
    """What one block of threads does.

    blocks         of all threads
    flops          operations of a block
    global_bytes   that it reads and writes in global memory, whole transactions
    thread_flops   operations of one of its threads
    thread_loads   loads of shared memory of one of its threads
    conflicts      times that a load is repeated for banks that are met twice; 1 for none
    threads        of a block
    shared_bytes   of a block
    registers      of a thread, of 4 bytes
    """

    blocks: int
    flops: float
    global_bytes: float
    thread_flops: float
    thread_loads: float
    threads: int
    shared_bytes: int
    conflicts: float = 1.0
    registers: int = 32


def global_ratio(work: BlockWork, gpu: GpuCeilings, dtype: str = "float32") -> float:
    """GMRatio = min(1, operations a byte of a block / (peak / bandwidth))."""
    peak = gpu.peak(dtype) or gpu.floats
    return min(1.0, work.flops / work.global_bytes / (peak / gpu.memory_bytes))


def shared_ratio(work: BlockWork, gpu: GpuCeilings) -> float:
    """SMRatio = min(1, (operations of a thread / its loads) / (latency · conflicts))."""
    if not work.thread_loads:
        return 1.0
    return min(1.0, work.thread_flops / work.thread_loads / (gpu.shared_cycles * work.conflicts))


def balance_ratio(blocks: int, processors: int) -> float:
    """WBRatio = blocks / (processors · ⌈blocks / processors⌉).

    >>> balance_ratio(81, 80)
    0.50625
    """
    return blocks / (processors * ceil(blocks / processors))


def resources(work: BlockWork, gpu: GpuCeilings) -> int:
    """COEF_r: 1 where at least one block fits a multiprocessor, by `codegen.occupancy`."""
    if work.threads > gpu.block_threads:
        return 0
    found = occupancy(gpu.multiprocessor, work.threads, work.registers, work.shared_bytes)
    return int(found.blocks >= 1)


def upper_limit(work: BlockWork, gpu: GpuCeilings, dtype: str = "float32") -> float:
    """The share of the peak that these parameters can reach, as DeepCuts ranks them by."""
    return prod(
        (
            global_ratio(work, gpu, dtype),
            shared_ratio(work, gpu),
            balance_ratio(work.blocks, gpu.processors),
            float(resources(work, gpu)),
        )
    )
