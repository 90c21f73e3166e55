"""Register tiles and cache blocks of a contraction, from the machine's registers and caches.

A tile of R rows by V vectors of the result stays in registers while k runs:

    for k:                                  loads per k      V + R
      b_v = B[k, v]          v < V          products per k   V * R
      c_rv += A[r, k] * b_v  r < R, v < V   registers        V * R + V + spare

Sums of one accumulator depend on each other, so that latency * issue of them must be in flight.
Around it are the blocks of Goto and van de Geijn (2008), each as large as its cache allows:

    depth    a panel of right, depth * V lanes, in half of the first cache; at least LEAST_DEPTH,
             because the result is read and written once for each block
    rows     a block of left, rows * depth, in a third of the second: right streams through it
    columns  a block of right, depth * columns, in half of the third
"""

from __future__ import annotations

from codegen.machine.cpu import Processor
from codegen.records import dataclass
from codegen.types import ScalarType

SPARE = 2
"""Registers for elements of left that are broadcast to all lanes."""
LATENCY = 4
"""Cycles until the result of a multiply-add is available."""
ISSUE = 2
"""Multiply-adds that start in each cycle."""
PAGE = 4096
"""Bytes of a page of virtual memory."""
LEAST_DEPTH = 256
MOST_COLUMNS = 4096


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of a machine that tiles depend on.

    lanes          lanes of a vector of the element type
    element_bytes  bytes of an element
    registers      vector registers
    caches         sizes of the caches in bytes, the nearest first
    """

    lanes: int
    element_bytes: int
    registers: int
    caches: tuple[int, ...]


def machine_of(processor: Processor, element: ScalarType) -> Machine:
    """Return the facts of a processor that register tiles of an element type depend on."""
    lanes = max(1, processor.vector_bytes // element.itemsize)
    return Machine(lanes, element.itemsize, processor.registers, processor.cache_bytes)


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` by `vectors` of `lanes` accumulators in registers."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    def __str__(self) -> str:
        return f"{self.rows} rows by {self.vectors} vectors of {self.lanes}"


@dataclass(frozen=True, slots=True)
class Blocks:
    """The largest blocks of the three classes.

    strip  columns of right whose block takes half of the second cache, for products of few rows
    near   elements that fit the first cache
    """

    rows: int
    columns: int
    depth: int
    strip: int
    near: int


def register_tile(machine: Machine, width: int = 0, height: int = 0) -> Tile:
    """Return the tile with the fewest loads a product that fits the registers and hides the
    latency.

    Its vectors are a power of two, so that usual extents have no remainder. It has at most `width`
    columns, a power of two, where that is not 0; then it has no more rows than hide the latency,
    because it is for small matrices. It has `height` rows where that is not 0, and fits.
    """
    lanes = min(machine.lanes, width) if width else machine.lanes
    tiles = [
        Tile(rows, vectors, lanes)
        for vectors in (1, 2, 4, 8)
        for rows in range(1, machine.registers)
        if rows * vectors + vectors + SPARE <= machine.registers
    ]
    tiles = [tile for tile in tiles if tile.rows == height] or tiles
    hiding = [tile for tile in tiles if tile.rows * tile.vectors >= LATENCY * ISSUE] or tiles
    best = min(hiding, key=lambda tile: (loads_a_product(tile), tile.rows))
    if not width or best.columns <= width:
        return best
    narrow = [tile for tile in hiding if tile.columns <= width] or hiding
    return max(narrow, key=lambda tile: (tile.vectors, -tile.rows))


def loads_a_product(tile: Tile) -> float:
    """Return the loads for each vector multiply-add."""
    return (tile.rows + tile.vectors) / (tile.rows * tile.vectors)


def cache_blocks(tile: Tile, machine: Machine, deep: int = 0) -> Blocks:
    """Return the blocks of the module's docstring, in full tiles.

    With the depth `deep` where it is not 0.
    """
    first, second, *more = (*machine.caches, 32768, 524288)[: max(2, len(machine.caches))]
    third = more[0] if more else 8 * second
    size = machine.element_bytes
    depth = deep or max(LEAST_DEPTH, _multiple(first // 2 // (tile.columns * size), 8))
    rows = _multiple(second // 3 // (depth * size), tile.rows)
    columns = min(MOST_COLUMNS, third // 2 // (depth * size))
    strip = _multiple(second // 2 // (depth * size), tile.columns)
    return Blocks(rows, _multiple(columns, tile.columns), depth, strip, first // size)


def _multiple(value: int, of: int) -> int:
    return max(of, value // of * of)
