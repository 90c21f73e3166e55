"""Tiles of a contraction for a GPU: the parts of a block, a warp and a thread.

    block    rows by columns of the result; the depth is traversed in steps, and each step's
             elements of left and of right lie in shared memory
    warp     4 by 8 threads
    thread   some rows by some columns, as accumulators in registers

For each product, a thread reads `(rows + columns) / (rows * columns)` elements of shared memory,
and a block `1 / rows + 1 / columns` of global memory. A thread's rows and columns come in runs of
16 bytes, which are read by one instruction and meet those of its neighbours in the warp:

    columns of a warp, runs of 4, tiles of 8 columns: thread  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from codegen.occupancy import occupancy
from codegen.records import dataclass
from codegen.target import Multiprocessor

RUN_BYTES = 16
"""The most bytes that one instruction of a thread reads or writes."""
LONGEST_RUN = 4
"""The most elements of CUDA's vectors."""
MOST_REGISTERS = 128
"""The most registers of a thread: two blocks of 256 threads fit a multiprocessor, of which one
computes while the other one waits."""
OTHER_REGISTERS = 40
"""Registers of 4 bytes for addresses, sizes and counters of a thread."""
STEP_CYCLES = 700.0
"""Cycles from a load of global memory to its use, with two barriers: the wait of one block in each
step, where no other block has work. Publications say 500 to 800; not measured."""
STEP_INSTRUCTIONS = 40.0
"""Instructions of a warp in each step, without products and loads of shared memory."""
COPY_INSTRUCTIONS = 5.0
"""Instructions for each element that is copied into shared memory: addresses, a load, a store."""
NOT_HIDDEN = 0.1
"""The share of loads not hidden behind products, or of products behind loads. Not measured."""
SPLIT_GAIN = 1.2
"""The least expected speedup for which the depth is split, which takes memory."""
LANES_A_CYCLE = 32
"""Words of 4 bytes that shared memory delivers to a multiprocessor in a cycle."""


@dataclass(frozen=True, slots=True)
class GpuMachine:
    """The properties of a GPU that its tiles depend on.

    warp           threads that run in step
    threads        the most threads of a block
    shared_bytes   the most bytes of shared memory of a block
    together       the limits of a multiprocessor for all its blocks: registers of 4 bytes, bytes of
                   shared memory, threads
    processors     multiprocessors
    schedulers     instructions of warps that a multiprocessor issues in a cycle
    cycles         cycles a second
    cache_bytes    bytes a second from the cache that multiprocessors share
    memory_bytes   bytes a second from memory
    launch         seconds of a launch of a kernel
    element_bytes  bytes of one element
    issue          instructions of a multiplication and its addition
    """

    warp: int
    threads: int
    shared_bytes: int
    together: tuple[int, int, int]
    processors: int
    schedulers: int
    cycles: float
    cache_bytes: float
    memory_bytes: float
    launch: float
    element_bytes: int
    issue: float


@dataclass(frozen=True, slots=True)
class GpuProduct:
    """The numbers of steps of each class of loops.

    spread  the bytes loaded for each byte used, of operands whose neighbours in memory belong to
            different matrices of a batch
    """

    batch: float
    rows: float
    columns: float
    depth: float
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class GpuTile:
    """Rows, columns and depth of a block's tile, rows and columns of a thread's.

    parts  the parts of the depth, whose separate sums are added up afterwards
    """

    rows: int
    columns: int
    depth: int
    own_rows: int
    own_columns: int
    parts: int = 1

    @property
    def threads(self) -> int:
        return self.rows * self.columns // (self.own_rows * self.own_columns)

    @property
    def accumulators(self) -> int:
        return self.own_rows * self.own_columns

    def __str__(self) -> str:
        split = f", {self.parts} parts of the depth" if self.parts > 1 else ""
        return (
            f"tiles of {self.rows} by {self.columns}, depth {self.depth}, "
            f"{self.own_rows} by {self.own_columns} a thread{split}"
        )


def lanes(warp: int) -> tuple[int, int]:
    """Return rows and columns of a warp's threads, the longer side along columns.

    >>> lanes(32)
    (4, 8)
    """
    rows = 1 << ((warp.bit_length() - 1) // 2)
    return rows, warp // rows


def run_of(count: int, element_bytes: int) -> int:
    """Return the contiguous elements of a thread's tile that one instruction reads."""
    return max(1, min(count, LONGEST_RUN, RUN_BYTES // element_bytes))


def ahead_of(tile: GpuTile) -> int:
    """Return the number of elements that each thread copies in a step."""
    return (tile.rows + tile.columns) * tile.depth // tile.threads


def registers_of(tile: GpuTile, element_bytes: int) -> int:
    """Return the expected registers of a thread.

    Accumulators, an element of left for each row and of right for each column, the elements loaded
    ahead, and others.
    """
    elements = tile.accumulators + tile.own_rows + tile.own_columns + ahead_of(tile)
    return elements * ceil(element_bytes / 4) + OTHER_REGISTERS


def shared_bytes_of(tile: GpuTile, element_bytes: int, padding: int) -> int:
    """Return the bytes of shared memory of a block: one step of left and of right."""
    return (tile.rows + tile.columns + padding) * tile.depth * element_bytes


def blocks_at_a_time(tile: GpuTile, machine: GpuMachine) -> int:
    """Return the blocks that fit a multiprocessor: each computes while others wait."""
    registers, shared, threads = machine.together
    size, warps = machine.element_bytes, threads // machine.warp
    has = Multiprocessor("", warps, warps, shared, registers)
    memory = shared_bytes_of(tile, size, 2 * LONGEST_RUN)
    return occupancy(has, tile.threads, registers_of(tile, size), memory).blocks


def blocks_asked_for(tile: GpuTile, machine: GpuMachine) -> int:
    """Return the blocks of a multiprocessor that the compiler must leave registers for.

    A thread then has `MOST_REGISTERS` at most.
    """
    return max(1, machine.together[0] // (MOST_REGISTERS * tile.threads))


def blocks_of(tile: GpuTile, of: GpuProduct) -> int:
    """Return the number of blocks that share the tiles of a product."""
    tiles = ceil(of.rows / tile.rows) * ceil(of.columns / tile.columns)
    return tile.parts * ceil(of.batch) * tiles


def seconds_of(tile: GpuTile, machine: GpuMachine, of: GpuProduct) -> float:
    """Return the expected seconds of a product.

    The time of the multiprocessor with most blocks, or of the bytes that blocks load. In each step
    a block issues the products of its warps, or shared memory delivers their operands, whichever
    takes longer. Concurrent blocks hide each other's waits.
    """
    blocks, steps = blocks_of(tile, of), ceil(of.depth / tile.depth / tile.parts)
    work, size = _cycles_of_step(tile, machine), machine.element_bytes
    rounds = ceil(blocks / machine.processors)
    concurrent = min(rounds, blocks_at_a_time(tile, machine))
    cycles = rounds / concurrent * steps * max(concurrent * work, work + STEP_CYCLES) + STEP_CYCLES
    loaded = blocks * steps * (tile.rows + tile.columns) * tile.depth * size * of.spread
    least = of.rows * of.depth + of.depth * of.columns + of.rows * of.columns
    parts = (
        cycles / machine.cycles,
        loaded / machine.cache_bytes,
        of.batch * least * size / machine.memory_bytes,
    )
    seconds = max(parts) + NOT_HIDDEN * (sum(parts) - max(parts))
    return seconds + _seconds_of_parts(tile, machine, of.batch * of.rows * of.columns)


def _cycles_of_step(tile: GpuTile, machine: GpuMachine) -> float:
    """Return the cycles of a multiprocessor for one step."""
    size = machine.element_bytes
    edges = (tile.own_rows, tile.own_columns)
    issued = tile.depth * (
        tile.accumulators * machine.issue + sum(count / run_of(count, size) for count in edges)
    )
    issued += ahead_of(tile) * COPY_INSTRUCTIONS + STEP_INSTRUCTIONS
    words = tile.depth * sum(edges) * size / 4
    busy = max(issued / machine.schedulers, words * machine.warp / LANES_A_CYCLE)
    return tile.threads / machine.warp * busy


def _seconds_of_parts(tile: GpuTile, machine: GpuMachine, elements: float) -> float:
    """Return the seconds to write the sums of parts of the depth and to add them up."""
    if tile.parts == 1:
        return 0.0
    bytes_ = 2 * tile.parts * elements * machine.element_bytes
    waits = tile.parts * STEP_CYCLES / machine.cycles
    return machine.launch + max(waits, bytes_ / machine.cache_bytes)


def tiles_for(machine: GpuMachine) -> tuple[GpuTile, ...]:
    """Return the tiles that fit a machine's registers, threads and shared memory.

    Blocks have two warps or more, because the blocks at a time are limited.
    """
    lane_rows, lane_columns = lanes(machine.warp)
    candidates = (
        GpuTile(lane_rows * r * high, lane_columns * c * wide, depth, r, c)
        for r, c in ((8, 8), (8, 4), (4, 4), (4, 2), (2, 2))
        for high in (4, 2, 1)
        for wide in (4, 2, 1)
        for depth in (32, 16, 8)
    )
    return tuple(tile for tile in candidates if _fits(tile, machine))


def _fits(tile: GpuTile, machine: GpuMachine) -> bool:
    size = machine.element_bytes
    smaller = min(tile.rows, tile.columns) * tile.depth
    return (
        tile.threads <= machine.threads
        and tile.threads > machine.warp
        and smaller % tile.threads == 0
        and registers_of(tile, size) <= MOST_REGISTERS
        and shared_bytes_of(tile, size, 2 * LONGEST_RUN) <= machine.shared_bytes
    )


def best_tile(machine: GpuMachine, of: GpuProduct) -> GpuTile:
    """Return the tile of the least expected time, the first of equal ones.

    The depth is split where there are fewer tiles than multiprocessors and that pays clearly.
    """

    def tiles() -> Iterator[GpuTile]:
        for tile in tiles_for(machine):
            yield tile
            parts, blocks = 2, blocks_of(tile, of)
            while parts * blocks < 2 * machine.processors and parts * tile.depth < of.depth:
                yield replace(tile, parts=parts)
                parts *= 2

    def price(tile: GpuTile) -> float:
        return seconds_of(tile, machine, of) * (1.0 if tile.parts == 1 else SPLIT_GAIN)

    return min(tiles(), key=price)
