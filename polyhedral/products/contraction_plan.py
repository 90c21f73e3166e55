"""The plan of a contraction, with reasons.

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
    """Register tile and cache blocks of a contraction, and the reasons, a line each."""

    contraction: Contraction
    tile: Tile
    blocks: Blocks
    reasons: tuple[str, ...]

    @property
    def shape(self) -> str:
        """Return the sizes that loops are made for, for any extents."""
        blocks = self.blocks
        return (
            f"tiles of {self.tile}, blocks of {blocks.rows} rows, {blocks.columns} columns, "
            f"depth {blocks.depth}"
        )

    def __str__(self) -> str:
        return "\n  ".join([self.shape, *self.reasons])


def plan_contraction(
    product: Contraction,
    machine: Machine,
    extents: Mapping[str, int] | None = None,
    width: int = 0,
    times: int = 1,
    height: int = 0,
    depth: int = 0,
) -> ContractionPlan:
    """Return the plan of `product` on `machine`; `extents` has the known extents of loops.

    width  the most columns of a tile, where it is not 0
    times  the number of executions
    height, depth  rows of a tile, and terms of a block, where they are not 0
    """
    tile = register_tile(machine, width, height)
    blocks = cache_blocks(tile, machine, depth)
    reasons = (
        f"classes: {product.classes}",
        "any order: every loop of the sum carries updates that commute only",
        f"vector loop: {product.columns[-1] if product.columns else 'none'}, along the result's "
        "last subscript",
        *_registers(tile, machine),
        *_caches(
            tile,
            _limit_blocks(blocks, product, extents or {}),
            machine,
            _has_extents(product, extents),
        ),
        *predicted_traffic(product, tile, blocks, machine, extents or {}, times),
    )
    return ContractionPlan(product, tile, blocks, reasons)


def _registers(tile: Tile, machine: Machine) -> Iterable[str]:
    accumulators = tile.rows * tile.vectors
    used = accumulators + tile.vectors + SPARE
    yield (
        f"registers: {accumulators} accumulators, {tile.vectors} of right, {SPARE} to spread left: "
        f"{used} of {machine.registers}; {loads_a_product(tile):.2g} loads a product"
    )
    hidden = "hide" if accumulators >= LATENCY * ISSUE else "do not hide"
    yield f"latency: {accumulators} accumulators {hidden} the {LATENCY * ISSUE} products in flight"


def _limit_blocks(blocks: Blocks, product: Contraction, extents: Mapping[str, int]) -> Blocks:
    """Return the blocks limited by the extents of loops."""

    def least(size: int, loops: Iterable[str]) -> int:
        lengths = [extents.get(loop, size) for loop in loops]
        return max(1, min(size, prod(lengths)))

    return replace(
        blocks,
        rows=least(blocks.rows, product.rows),
        columns=least(blocks.columns, product.columns),
        depth=least(blocks.depth, product.depth),
    )


def _has_extents(product: Contraction, extents: Mapping[str, int] | None) -> bool:
    return set(product.statement.variables) <= set(extents or ())


def _caches(tile: Tile, blocks: Blocks, machine: Machine, is_exact: bool) -> Iterable[str]:
    """Yield the content of each cache, as large as it becomes; `is_exact` where that is its
    size."""
    limit = "" if is_exact else ", at most"
    contents = (
        (blocks.depth, tile.columns, "a panel of right"),
        (blocks.rows, blocks.depth, "a block of left"),
        (blocks.depth, blocks.columns, "a block of right"),
    )
    size = machine.element_bytes
    for level, (cache, (one, other, what)) in enumerate(
        zip(machine.caches, contents, strict=False), 1
    ):
        size_bytes = one * other * size
        counted = f"cache {level}: {one} * {other} * {size} = {size_bytes}"
        if size_bytes <= cache:
            yield f"{counted} of {cache} bytes hold {what}{limit}"
            continue
        holder = _holder(machine, size_bytes)
        yield f"{counted} bytes, more than its {cache}: {holder} holds {what}{limit}"


def _holder(machine: Machine, size: int) -> str:
    """Return the nearest cache with room for `size` bytes."""
    levels = (level for level, cache in enumerate(machine.caches, 1) if size <= cache)
    return next((f"cache {level}" for level in levels), "no cache")


def predicted_traffic(
    product: Contraction,
    tile: Tile,
    blocks: Blocks,
    machine: Machine,
    extents: Mapping[str, int],
    times: int = 1,
) -> Iterable[str]:
    """Yield the line of the bytes into each cache, of `times` products.

    Left enters once a panel, right once a block of rows, all once a block of columns, and the
    result once a block of depth. Nothing where an extent is not known.
    """
    if not _has_extents(product, extents):
        return
    size = machine.element_bytes
    steps, m, n, k = (
        prod(extents[loop] for loop in loops)
        for loops in (product.batch, product.rows, product.columns, product.depth)
    )
    result = m * n * (2 * ceil(k / blocks.depth) - 1)
    into_first = m * k * ceil(n / tile.columns) + k * n * ceil(m / blocks.rows) + result
    into_second = m * k * ceil(n / blocks.columns) + k * n * ceil(m / blocks.rows) + result
    into_third = m * k * ceil(n / blocks.columns) + k * n + result
    amounts = [
        times * steps * size * elements for elements in (into_first, into_second, into_third)
    ]
    yield traffic_line(amounts[: len(machine.caches)])
