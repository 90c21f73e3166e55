"""How the analytic model of tiles prices the tiles of a drawn kernel, and which one it chooses.

Bytes into each cache while the tiled nest runs, and the tile that follows from the reuse of each
loop (Narasimhan et al. 2021): the model by which programs are tiled, `polyhedral.nests`. Bytes say
nothing of short rows, so what it takes to begin a row and a tile is added, as that model does where
it searches for sizes.
"""

from __future__ import annotations

import re
from math import ceil, prod

from benchmarks.tile_kernels import TiledKernel
from codegen.machine.cpu import Processor
from polyhedral.model import Access, access
from polyhedral.nests.footprint import Footprint, footprints
from polyhedral.nests.tile_plan import BYTE_CYCLES, INSTANCE_CYCLES, ROW_CYCLES, TILE_CYCLES
from polyhedral.nests.tile_size import Cache, reuse_counts, solve
from polyhedral.nests.traffic import bytes_into
from taco_py.compiler.driver import native_target


def _processor() -> Processor:
    return native_target().processor


def accesses_of(kernel: TiledKernel) -> tuple[Access, ...]:
    """Return the accesses of a kernel's nest; its result is updated."""
    target, value = kernel.text.split(" = ")
    reads = re.findall(r"\w\[[^\]]+\]", value)
    reduces = {*kernel.loops} - {*re.findall(r"\w", target.partition("[")[2])}
    return (access(f"{target} {'+=' if reduces else '='}"), *map(access, reads))


def _parts(kernel: TiledKernel) -> tuple[Footprint, ...]:
    every = accesses_of(kernel)
    return footprints(every, kernel.loops, {a.array: kernel.item for a in every})


def chosen_tile(kernel: TiledKernel) -> tuple[int, ...]:
    """Return the tile of the model for the second cache."""
    processor, vector = _processor(), kernel.loops[-1]
    reuse = reuse_counts(accesses_of(kernel), kernel.tiled)
    cache = Cache(
        processor.cache_bytes[min(1, len(processor.cache_bytes) - 1)], processor.line_bytes
    )
    sizes = dict(solve(_parts(kernel), reuse, vector, cache, kernel.sizes).sizes)
    return tuple(sizes[loop] for loop in kernel.tiled)


def traffic_price(kernel: TiledKernel, tile: tuple[int, ...]) -> float:
    """Return the cycles for the bytes that enter each cache."""
    sizes = _sizes(kernel, tile)
    nested = [*_tile_loops(kernel, sizes), *((loop, sizes[loop]) for loop in kernel.loops)]
    processor, parts = _processor(), _parts(kernel)
    line = processor.line_bytes
    amounts = [bytes_into(parts, nested, size, line) for size in processor.cache_bytes]
    return sum(cost * amount for amount, cost in zip(amounts, BYTE_CYCLES, strict=False))


def tile_price(kernel: TiledKernel, tile: tuple[int, ...]) -> float:
    """Return the cycles for bytes, and to begin rows and tiles, as where sizes are searched."""
    sizes = _sizes(kernel, tile)
    instances = prod(kernel.sizes.values())
    tiles = prod(count for _, count in _tile_loops(kernel, sizes))
    rows = instances * (INSTANCE_CYCLES + ROW_CYCLES / sizes[kernel.loops[-1]])
    return traffic_price(kernel, tile) + rows + TILE_CYCLES * tiles


def _sizes(kernel: TiledKernel, tile: tuple[int, ...]) -> dict[str, int]:
    """Return the iterations of each loop inside a tile."""
    return {**kernel.sizes, **dict(zip(kernel.tiled, tile, strict=True))}


def _tile_loops(kernel: TiledKernel, sizes: dict[str, int]) -> list[tuple[str, int]]:
    """Return the loops over tiles and their iterations."""
    return [(loop, ceil(kernel.sizes[loop] / sizes[loop])) for loop in kernel.tiled]
