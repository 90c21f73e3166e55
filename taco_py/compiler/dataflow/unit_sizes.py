"""How many threads of a GPU share a slab, how many elements each keeps, how many slabs each takes.

    softmax of 4096 columns  →  256 threads for a row, 16 elements for each
    softmax of 100 columns   →  a warp for a row, 4 elements for each lane; 8 rows for a block

Rows are kept in registers. Blocks take several slabs where that lets them read once what all slabs
read, as long as there is a block for each multiprocessor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from codegen.machine.gpu import Gpu
from taco_py.compiler.dataflow.nodes import Load, Memory, Store
from taco_py.compiler.dataflow.slab_units import Key, UnitGraph, Units

SPLIT_ELEMENTS = 4
"""Elements of each thread where blocks have parts of rows: so many loads are under way."""
FEW_ELEMENTS = 16
"""Elements of each thread up to which a block does not get more threads."""
MOST_ELEMENTS = 64
"""Loops of so many rounds are unrolled."""
WARP_ROW = 1024
"""Elements of a row up to which a warp has it for itself."""
COMMON_SHARE = 1 / 16
"""The share of what is read once for each block, of all bytes, that more slabs do not lower."""
KEPT_SHARE = 1 / 2
"""The share of a thread's registers that hold elements."""

Sizes = Mapping[str, float]


def choose_units(of: UnitGraph, sizes: Sizes, gpu: Gpu) -> Units | None:
    """Return how units share slabs; None where a slab is larger than what threads keep."""
    row = prod(sizes[index] for index in of.inner)
    count = prod(sizes[index] for index in of.slab)
    candidates = [units for units in _candidates(of, row, gpu) if _fits(of, units, row, gpu)]
    if not candidates:
        return None
    threads = [units.threads * _blocks(of, units, row, count) for units in candidates]
    busy = gpu.block_threads * gpu.multiprocessors
    place = next((n for n, number in enumerate(threads) if number >= busy / 4), None)
    place = threads.index(max(threads)) if place is None else place
    best = candidates[place]
    block_bytes = sum(_bytes(of, key) for key in of.common)
    block_bytes += sum(2 * np.dtype(of.graph.buffer(name).dtype).itemsize for name in of.sums)
    slab_bytes = sum(_bytes(of, key) for key in streamed(of))
    enough = block_bytes / (COMMON_SHARE * slab_bytes * best.groups) if slab_bytes else 1.0
    most = threads[place] / (busy / 2)
    slabs = max(1, int(min(enough + 0.5, most)))
    return Units(best.threads, best.sharing, best.elements, slabs)


def _candidates(of: UnitGraph, row: float, gpu: Gpu) -> Iterator[Units]:
    """Yield numbers of threads and elements, the preferred ones first."""
    width, most = _power(row), gpu.most_block_threads
    sizes = [size for size in (256, 512, 1024) if size <= most]
    if of.is_across:
        narrow = min(_bytes(of, key) for key in streamed(of))
        least = max(1, gpu.sector_bytes // narrow)
        for groups in sorted({max(least, g) for g in (32, 16, 8)}, reverse=True):
            for size in sizes:
                sharing = min(size // groups, width)
                yield Units(sharing * groups, sharing, _elements(row, sharing), 1)
        return
    if of.is_split:
        size = gpu.block_threads
        sharing = min(size, width)
        yield Units(size, sharing, min(SPLIT_ELEMENTS, _elements(row, sharing)), 1)
        return
    if row <= WARP_ROW:
        sharing = min(gpu.warp_threads, width)
        size = 512 if of.common else 256
        yield Units(size, sharing, _elements(row, sharing), 1)
    for size in sizes:
        is_enough = row <= size * FEW_ELEMENTS or size == sizes[-1]
        if is_enough and row > size / 2:
            yield Units(size, size, _elements(row, size), 1)


def _power(size: float) -> int:
    """Return the least power of 2 that is no less than a size."""
    return 1 << max(0, int(size) - 1).bit_length()


def _elements(row: float, threads: int) -> int:
    """Return the elements of each thread: few numbers of them, so that few kernels are compiled."""
    elements = max(1, -(-int(row) // threads))
    return min(elements if elements <= 4 else -(-elements // 4) * 4, MOST_ELEMENTS)


def _fits(of: UnitGraph, units: Units, row: float, gpu: Gpu) -> bool:
    """Tell whether registers hold the elements of a row that threads keep."""
    if not of.registers and not of.sums:  # rows of any length
        return True
    common = sum(_bytes(of, key) for key in of.common)
    element_bytes = _most_alive(of)
    element_bytes += sum(np.dtype(of.graph.buffer(name).dtype).itemsize for name in of.sums)
    element_bytes += common if units.groups == 1 else 0
    most = KEPT_SHARE * 4 * min(gpu.multiprocessor.registers / units.threads, gpu.thread_registers)
    return (of.is_split or row <= units.row) and units.elements * element_bytes <= most


def _most_alive(of: UnitGraph) -> int:
    """Return the most bytes of an element's values that are read after some pass."""
    passes = of.map.passes
    lives: list[range] = []
    for key in of.registers:
        users = [
            number
            for number, one in enumerate(passes)
            for step in one.body
            if isinstance(step, Load | Store) and (step.buffer, step.indices) == key
        ]
        lives.append(range(users[0], users[-1]))
    return max(
        sum(_bytes(of, key) for key, life in zip(of.registers, lives, strict=True) if n in life)
        for n in range(len(passes))
    )


def shared_keys(of: UnitGraph, units: Units, gpu: Gpu) -> tuple[Key, ...]:
    """Return the common elements of which a block of several slabs has a row in shared memory."""
    room = gpu.block_shared_bytes - 16 * units.threads  # of reductions
    keys: list[Key] = []
    for key in of.common if units.groups > 1 else ():
        room -= _bytes(of, key) * units.row
        if room >= 0:
            keys.append(key)
    return tuple(keys)


def _blocks(of: UnitGraph, units: Units, row: float, count: float) -> float:
    tiles = -(-row // units.row) if of.is_split else 1
    return -(-count // (units.groups * units.slabs)) * tiles


def blocks_of(of: UnitGraph, units: Units, sizes: Sizes) -> float:
    """Return how many blocks share the slabs."""
    row = prod(sizes[index] for index in of.inner)
    return max(1.0, _blocks(of, units, row, prod(sizes[index] for index in of.slab)))


def streamed(of: UnitGraph) -> tuple[Key, ...]:
    """Return the elements of main memory that each slab reads or writes, but for common ones."""
    keys: dict[Key, None] = {}
    for one in of.map.passes:
        for step in one.body:
            if isinstance(step, Load | Store) and one.over:
                key = (step.buffer, step.indices)
                far = of.graph.buffer(step.buffer).memory is Memory.DRAM
                if far and key not in of.common and step.buffer not in of.sums:
                    keys[key] = None
    return tuple(keys)


def _bytes(of: UnitGraph, key: Key) -> int:
    return np.dtype(of.graph.buffer(key[0]).dtype).itemsize


def sector_bytes(of: UnitGraph, units: Units, sizes: Sizes, gpu: Gpu) -> float:
    """Return the bytes of sectors that a kernel moves, about."""
    row = prod(sizes[index] for index in of.inner)
    count = prod(sizes[index] for index in of.slab)
    blocks = _blocks(of, units, row, count)
    chunks = -(-count // (units.groups * units.slabs))
    tiles = blocks / max(1.0, chunks)
    slabs = row * count * sum(_bytes(of, key) for key in streamed(of))
    common = chunks * row * sum(_bytes(of, key) for key in of.common)
    parts = 2 * chunks * row * sum(_bytes(of, (name, ())) for name in of.sums)
    single = sum(
        isinstance(step, Load | Store) and bool(step.indices)
        for one in of.map.passes if not one.over for step in one.body
    )  # fmt: skip
    warps = max(1.0, units.sharing / gpu.warp_threads)
    narrow = gpu.sector_bytes if not of.is_across else 4 * warps
    return slabs + common + parts + single * count * tiles * warps * narrow
