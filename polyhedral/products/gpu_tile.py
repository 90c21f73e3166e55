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

from codegen.machine.gpu import Gpu
from codegen.occupancy import occupancy
from codegen.records import dataclass

RUN_BYTES = 16
"""The most bytes that one instruction of a thread reads or writes."""
LONGEST_RUN = 4
"""The most elements of CUDA's vectors."""
MOST_REGISTERS = 128
"""The most registers of a thread: two blocks of 256 threads fit a multiprocessor, of which one
computes while the other one waits."""
OTHER_REGISTERS = 40
"""Registers of 4 bytes for addresses, sizes and counters of a thread."""
STEP_INSTRUCTIONS = 40.0
"""Instructions of a warp in each step, without products and loads of shared memory."""
COPY_INSTRUCTIONS = 5.0
"""Instructions for each element that is copied into shared memory: addresses, a load, a store."""
SPLIT_GAIN = 1.2
"""The least expected speedup for which the depth is split, which takes memory."""


@dataclass(frozen=True, slots=True)
class GpuArithmetic:
    """The properties that tiles depend on: a GPU, and the cost of products of an element type.

    element_bytes         bytes of one element
    product_instructions  instructions of a multiplication and its addition
    """

    gpu: Gpu
    element_bytes: int
    product_instructions: float


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
    thread_rows: int
    thread_columns: int
    parts: int = 1

    @property
    def threads(self) -> int:
        return self.rows * self.columns // (self.thread_rows * self.thread_columns)

    @property
    def accumulators(self) -> int:
        return self.thread_rows * self.thread_columns

    def __str__(self) -> str:
        split = f", {self.parts} parts of the depth" if self.parts > 1 else ""
        return (
            f"tiles of {self.rows} by {self.columns}, depth {self.depth}, "
            f"{self.thread_rows} by {self.thread_columns} a thread{split}"
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
    elements = tile.accumulators + tile.thread_rows + tile.thread_columns + ahead_of(tile)
    return elements * ceil(element_bytes / 4) + OTHER_REGISTERS


def shared_bytes_of(tile: GpuTile, element_bytes: int, padding: int) -> int:
    """Return the bytes of shared memory of a block: one step of left and of right."""
    return (tile.rows + tile.columns + padding) * tile.depth * element_bytes


def blocks_at_a_time(tile: GpuTile, machine: GpuArithmetic) -> int:
    """Return the blocks that fit a multiprocessor: each computes while others wait."""
    size, has = machine.element_bytes, machine.gpu.multiprocessor
    memory = shared_bytes_of(tile, size, 2 * LONGEST_RUN)
    return occupancy(has, tile.threads, registers_of(tile, size), memory).blocks


def blocks_asked_for(tile: GpuTile, machine: GpuArithmetic) -> int:
    """Return the blocks of a multiprocessor that the compiler must leave registers for.

    A thread then has `MOST_REGISTERS` at most.
    """
    return max(1, machine.gpu.multiprocessor.registers // (MOST_REGISTERS * tile.threads))


def blocks_of(tile: GpuTile, of: GpuProduct) -> int:
    """Return the number of blocks that share the tiles of a product."""
    tiles = ceil(of.rows / tile.rows) * ceil(of.columns / tile.columns)
    return tile.parts * ceil(of.batch) * tiles


def seconds_of(tile: GpuTile, machine: GpuArithmetic, of: GpuProduct) -> float:
    """Return the expected seconds of a product.

    The time of the multiprocessor with most blocks, or of the bytes that blocks load. In each step
    a block issues the products of its warps, or shared memory delivers their operands, whichever
    takes longer. Concurrent blocks hide each other's waits.
    """
    blocks, steps = blocks_of(tile, of), ceil(of.depth / tile.depth / tile.parts)
    work, size, gpu = _cycles_of_step(tile, machine), machine.element_bytes, machine.gpu
    rounds = ceil(blocks / gpu.multiprocessors)
    concurrent = min(rounds, blocks_at_a_time(tile, machine))
    wait = gpu.step_cycles
    cycles = rounds / concurrent * steps * max(concurrent * work, work + wait) + wait
    loaded = blocks * steps * (tile.rows + tile.columns) * tile.depth * size * of.spread
    least = of.rows * of.depth + of.depth * of.columns + of.rows * of.columns
    parts = (
        cycles / gpu.cycles_per_second,
        loaded / gpu.cache_bytes_per_second,
        of.batch * least * size / gpu.memory_bytes_per_second,
    )
    seconds = max(parts) + gpu.unhidden_share * (sum(parts) - max(parts))
    return seconds + _seconds_of_parts(tile, machine, of.batch * of.rows * of.columns)


def _cycles_of_step(tile: GpuTile, machine: GpuArithmetic) -> float:
    """Return the cycles of a multiprocessor for one step."""
    size, gpu = machine.element_bytes, machine.gpu
    edges = (tile.thread_rows, tile.thread_columns)
    issued = tile.depth * (
        tile.accumulators * machine.product_instructions
        + sum(count / run_of(count, size) for count in edges)
    )
    issued += ahead_of(tile) * COPY_INSTRUCTIONS + STEP_INSTRUCTIONS
    words = tile.depth * sum(edges) * size / 4
    busy = max(issued / gpu.schedulers, words * gpu.warp_threads / gpu.banks)
    return tile.threads / gpu.warp_threads * busy


def _seconds_of_parts(tile: GpuTile, machine: GpuArithmetic, elements: float) -> float:
    """Return the seconds to write the sums of parts of the depth and to add them up."""
    if tile.parts == 1:
        return 0.0
    gpu, bytes_ = machine.gpu, 2 * tile.parts * elements * machine.element_bytes
    waits = tile.parts * gpu.step_cycles / gpu.cycles_per_second
    return gpu.launch_seconds + max(waits, bytes_ / gpu.cache_bytes_per_second)


def tiles_for(machine: GpuArithmetic) -> tuple[GpuTile, ...]:
    """Return the tiles that fit a machine's registers, threads and shared memory.

    Blocks have two warps or more, because the blocks at a time are limited.
    """
    lane_rows, lane_columns = lanes(machine.gpu.warp_threads)
    candidates = (
        GpuTile(lane_rows * r * high, lane_columns * c * wide, depth, r, c)
        for r, c in ((8, 8), (8, 4), (4, 4), (4, 2), (2, 2))
        for high in (4, 2, 1)
        for wide in (4, 2, 1)
        for depth in (32, 16, 8)
    )
    return tuple(tile for tile in candidates if _fits(tile, machine))


def _fits(tile: GpuTile, machine: GpuArithmetic) -> bool:
    size, gpu = machine.element_bytes, machine.gpu
    smaller = min(tile.rows, tile.columns) * tile.depth
    return (
        tile.threads <= gpu.most_block_threads
        and tile.threads > gpu.warp_threads
        and smaller % tile.threads == 0
        and registers_of(tile, size) <= MOST_REGISTERS
        and shared_bytes_of(tile, size, 2 * LONGEST_RUN) <= gpu.block_shared_bytes
    )


def best_tile(machine: GpuArithmetic, of: GpuProduct) -> GpuTile:
    """Return the tile of the least expected time, the first of equal ones.

    The depth is split where there are fewer tiles than multiprocessors and that pays clearly.
    """

    enough = 2 * machine.gpu.multiprocessors

    def tiles() -> Iterator[GpuTile]:
        for tile in tiles_for(machine):
            yield tile
            parts, blocks = 2, blocks_of(tile, of)
            while parts * blocks < enough and parts * tile.depth < of.depth:
                yield replace(tile, parts=parts)
                parts *= 2

    def price(tile: GpuTile) -> float:
        return seconds_of(tile, machine, of) * (1.0 if tile.parts == 1 else SPLIT_GAIN)

    return min(tiles(), key=price)
