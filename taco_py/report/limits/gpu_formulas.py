"""Two factors of DeepCuts' performance upper limit (Jung et al. 2021, section 4).

    WBRatio  blocks, over those that all multiprocessors could run in the same rounds
    COEF_r   1 where a block's threads and shared memory are within the limits, else 0

Its others, for operations a byte of global memory and a load of shared memory, take a block and a
thread by itself: where others hide what it waits for more is possible, so that they are no bounds.
"""

from __future__ import annotations

from math import ceil

from codegen.machine.gpu import Gpu
from codegen.occupancy import occupancy
from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class BlockResources:
    """What one block of threads needs of a multiprocessor.

    threads        of a block
    shared_bytes   of a block
    registers      of a thread, of 4 bytes
    """

    threads: int
    shared_bytes: int
    registers: int


def balance_ratio(blocks: int, processors: int) -> float:
    """Compute WBRatio = blocks / (processors · ⌈blocks / processors⌉).

    >>> balance_ratio(81, 80)
    0.50625
    """
    return blocks / (processors * ceil(blocks / processors))


def has_room(block: BlockResources, gpu: Gpu) -> bool:
    """Compute COEF_r: whether at least one block fits a multiprocessor, by `codegen.occupancy`."""
    if block.threads > gpu.most_block_threads:
        return False
    resident = occupancy(gpu.multiprocessor, block.threads, block.registers, block.shared_bytes)
    return resident.blocks >= 1
