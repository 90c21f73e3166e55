"""How many blocks of a kernel a multiprocessor runs at once, and which of its limits says so.

    40 registers a thread, blocks of 256 on sm_90
    → 6 blocks, 48 of 64 warps, for registers

More warps hide what each waits for. The arithmetic is that of NVIDIA's occupancy calculator.
"""

from __future__ import annotations

from codegen.machine.gpu import NOMINAL_GPU, Multiprocessor
from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps at once, of at most so many warps, and the limit that is reached first.

    limiter  "warps", "registers", "shared memory" or "blocks"
    """

    blocks: int
    warps: int
    most_warps: int
    limiter: str


def occupancy(has: Multiprocessor, block: int, registers: int, shared_bytes: int) -> Occupancy:
    """Return the occupancy by blocks of so many threads.

    registers     of a thread
    shared_bytes  of a block

    >>> from codegen.machine.gpu import MULTIPROCESSORS
    >>> occupancy(MULTIPROCESSORS["sm_90"], 256, 40, 0)
    Occupancy(blocks=6, warps=48, most_warps=64, limiter='registers')
    """
    warps = -(-block // NOMINAL_GPU.warp_threads)
    a_warp = _round_up(max(1, registers) * NOMINAL_GPU.warp_threads, has.register_unit)
    with_registers = has.registers // a_warp // has.warp_unit * has.warp_unit
    memory = _round_up(shared_bytes + has.reserved_bytes, has.shared_unit)
    limits = {
        "warps": has.warps // warps,
        "registers": with_registers // warps,
        "shared memory": has.shared_bytes // max(1, memory),
        "blocks": has.blocks,
    }
    limiter = min(limits, key=lambda name: limits[name])  # the first of equal ones
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, has.warps, limiter)


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
