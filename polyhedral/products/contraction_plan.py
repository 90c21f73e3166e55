"""What is done with a contraction, and why.

The plan of a product of matrices of 1000 by 1000 doubles, for caches of 32 KiB, 512 KiB and 32 MiB
and 16 registers of 4 lanes, prints as

    tiles of 6 rows by 2 vectors of 4, blocks of 84 rows, 4096 columns, depth 256
      classes: rows i; columns j; depth k
      any order: every loop of the sum carries updates that commute only
      vector loop: j, along the result's last subscript
      registers: 12 accumulators, 2 of right, 2 to spread left: 16 of 16; 0.67 loads a product
      latency: 12 accumulators hide the 8 products in flight
      cache 1: 256 * 8 * 8 = 16384 of 32768 bytes hold a panel of right
      cache 2: 84 * 256 * 8 = 172032 of 524288 bytes hold a block of left
      cache 3: 256 * 1000 * 8 = 2048000 of 33554432 bytes hold a block of right
      traffic: into cache 1 1.2e+09 bytes, into cache 2 1.6e+08, into cache 3 7.2e+07
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil, prod

from codegen.records import dataclass
from polyhedral.nests.traffic import traffic_line
from polyhedral.products.contraction import Contraction
from polyhedral.products.register_tile import (
    ISSUE,
    LATENCY,
    SPARE,
    Blocks,
    Machine,
    Tile,
    cache_blocks,
    loads_a_product,
    register_tile,
)


@dataclass(frozen=True, slots=True)
class ContractionPlan:
    """Register tile and cache blocks of a contraction, and how they came about, a line each."""

    contraction: Contraction
    tile: Tile
    blocks: Blocks
    reasons: tuple[str, ...]

    @property
    def shape(self) -> str:
        """What loops are made for, whatever the extents are."""
        blocks = self.blocks
        return (
            f"tiles of {self.tile}, blocks of {blocks.rows} rows, {blocks.columns} columns, "
            f"depth {blocks.depth}"
        )

    def __str__(self) -> str:
        return "\n  ".join([self.shape, *self.reasons])


def plan_contraction(
    found: Contraction,
    machine: Machine,
    extents: Mapping[str, int] | None = None,
    width: int = 0,
    times: int = 1,
    height: int = 0,
    depth: int = 0,
) -> ContractionPlan:
    """Return the plan of `found` on `machine`; `extents` are those of the loops that are known.

    width  columns of a tile at most, where it is not 0
    times  how often it runs
    height, depth  rows of a tile, and terms of a block, where they are not 0
    """
    tile = register_tile(machine, width, height)
    blocks = cache_blocks(tile, machine, depth)
    reasons = (
        f"classes: {found.classes}",
        "any order: every loop of the sum carries updates that commute only",
        f"vector loop: {found.columns[-1] if found.columns else 'none'}, along the result's last "
        "subscript",
        *_registers(tile, machine),
        *_caches(tile, _within(blocks, found, extents or {}), machine, _known(found, extents)),
        *predicted_traffic(found, tile, blocks, machine, extents or {}, times),
    )
    return ContractionPlan(found, tile, blocks, reasons)


def _registers(tile: Tile, machine: Machine) -> Iterable[str]:
    held = tile.rows * tile.vectors
    used = held + tile.vectors + SPARE
    yield (
        f"registers: {held} accumulators, {tile.vectors} of right, {SPARE} to spread left: "
        f"{used} of {machine.registers}; {loads_a_product(tile):.2g} loads a product"
    )
    hidden = "hide" if held >= LATENCY * ISSUE else "do not hide"
    yield f"latency: {held} accumulators {hidden} the {LATENCY * ISSUE} products in flight"


def _within(blocks: Blocks, found: Contraction, extents: Mapping[str, int]) -> Blocks:
    """Return the blocks as large as the loops let them be."""

    def least(size: int, loops: Iterable[str]) -> int:
        known = [extents.get(loop, size) for loop in loops]
        return max(1, min(size, prod(known)))

    return replace(
        blocks,
        rows=least(blocks.rows, found.rows),
        columns=least(blocks.columns, found.columns),
        depth=least(blocks.depth, found.depth),
    )


def _known(found: Contraction, extents: Mapping[str, int] | None) -> bool:
    return set(found.statement.variables) <= set(extents or ())


def _caches(tile: Tile, blocks: Blocks, machine: Machine, known: bool) -> Iterable[str]:
    """What each cache keeps, as large as it becomes; `known` where that is its size."""
    limit = "" if known else ", at most"
    held = (
        (blocks.depth, tile.columns, "a panel of right"),
        (blocks.rows, blocks.depth, "a block of left"),
        (blocks.depth, blocks.columns, "a block of right"),
    )
    size = machine.element_bytes
    for level, (cache, (one, other, what)) in enumerate(zip(machine.caches, held, strict=False), 1):
        taken = one * other * size
        counted = f"cache {level}: {one} * {other} * {size} = {taken}"
        if taken <= cache:
            yield f"{counted} of {cache} bytes hold {what}{limit}"
            continue
        holder = _holder(machine, taken)
        yield f"{counted} bytes, more than its {cache}: {holder} holds {what}{limit}"


def _holder(machine: Machine, taken: int) -> str:
    """Return the nearest cache with room for so many bytes."""
    levels = (level for level, cache in enumerate(machine.caches, 1) if taken <= cache)
    return next((f"cache {level}" for level in levels), "no cache")


def predicted_traffic(
    found: Contraction,
    tile: Tile,
    blocks: Blocks,
    machine: Machine,
    extents: Mapping[str, int],
    times: int = 1,
) -> Iterable[str]:
    """Return bytes into each cache: left once a panel, right once a block of rows, all once a block
    of columns, and the result once a block of depth; of so many such products together. Nothing
    where an extent is not known."""
    if not _known(found, extents):
        return
    size = machine.element_bytes
    steps, m, n, k = (
        prod(extents[loop] for loop in loops)
        for loops in (found.batch, found.rows, found.columns, found.depth)
    )
    result = m * n * (2 * ceil(k / blocks.depth) - 1)
    into_first = m * k * ceil(n / tile.columns) + k * n * ceil(m / blocks.rows) + result
    into_second = m * k * ceil(n / blocks.columns) + k * n * ceil(m / blocks.rows) + result
    into_third = m * k * ceil(n / blocks.columns) + k * n + result
    amounts = [times * steps * size * each for each in (into_first, into_second, into_third)]
    yield traffic_line(amounts[: len(machine.caches)])
