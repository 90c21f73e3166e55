"""The loops of a contraction in register tiles, as `polyhedral.products` runs them.

for blocks of columns, of depth, of rows:  for panels of columns, tiles of rows:
  for the block's depth:  a tile of rows by columns in registers
"""

from __future__ import annotations

from math import ceil, prod

from codegen.records import dataclass
from taco_py.compiler.driver import native_target
from taco_py.compiler.ways.arrays import machine_of
from taco_py.compiler.ways.contraction_match import contraction_of
from taco_py.planner.ir.nodes import KernelStep
from taco_py.report.limits.kernel_work import Counted, Work
from taco_py.report.limits.loop_nest import LoopNest, NestLoop

BATCH, ROWS, COLUMNS, DEPTH = "batch", "rows", "columns", "depth"
TILE_PARAMETERS = ("width", "height", "depth")
"""What the numbers of make(tiles,…) are to `plan_contraction`, in their order."""
LONG_DEPTH = 64
"""Depth from which sums of too few accumulators wait: of shorter ones the next tile's begin."""


@dataclass(frozen=True, slots=True)
class TileNest:
    """The loops of tiles, and the tile.

    lanes         of the vectors that it is made of
    columns       of the product
    accumulators  that are added to in turn
    waits         how many have to be, that no sum waits for itself; 1 where others begin meanwhile
    """

    nest: LoopNest
    lanes: int
    columns: float
    accumulators: int
    waits: int

    def vector_share(self, lanes: int) -> float:
        """Return the share of a processor's vector lanes, and of its time, that products can
        fill."""
        filled = self.columns / (ceil(self.columns / self.lanes) * self.lanes)
        return filled * min(1.0, self.lanes / lanes) * min(1.0, self.accumulators / self.waits)


def tile_nest_of(step: KernelStep, work: Work) -> TileNest | None:
    """Return the loops of a contraction in tiles; None where there are too few rows for them."""
    from polyhedral.products.contraction_plan import plan_contraction
    from polyhedral.products.register_tile import ISSUE, LATENCY

    problem, make = step.problem, step.schedule.make
    contraction = contraction_of(problem)
    if contraction is None:
        return None
    machine = machine_of(native_target(), problem.result.dtype)
    parameters = dict(zip(TILE_PARAMETERS, make.parameters, strict=False))
    plan = plan_contraction(contraction, machine, dict(problem.static), **parameters)
    batch, rows, columns, depth = (
        prod(work.sizes[loop] for loop in loops) for loops in contraction.of_classes
    )
    tile, blocks = plan.tile, plan.blocks
    if rows < tile.rows or columns < tile.columns:
        return None
    high, wide = min(rows, blocks.rows), min(columns, blocks.columns)
    deep = min(depth, blocks.depth)
    loops = (
        NestLoop(BATCH, batch, batch > 1),
        NestLoop(COLUMNS, columns / wide),
        NestLoop(DEPTH, depth / deep),
        NestLoop(ROWS, rows / high, batch <= 1),
        NestLoop(COLUMNS, wide / tile.columns),
        NestLoop(ROWS, high / tile.rows),
        NestLoop(DEPTH, deep),
        NestLoop(ROWS, tile.rows),
        NestLoop(COLUMNS, tile.columns),
    )
    sizes = {BATCH: batch, ROWS: rows, COLUMNS: columns, DEPTH: depth}
    arrays = tuple(
        Counted(name, classes, tuple(sizes[c] for c in classes), machine.element_bytes)
        for name, classes in (
            ("left", (BATCH, ROWS, DEPTH)),
            ("right", (BATCH, DEPTH, COLUMNS)),
            ("result", (BATCH, ROWS, COLUMNS)),
        )
    )
    waits = LATENCY * ISSUE if min(deep, depth) >= LONG_DEPTH else 1
    nest = LoopNest(loops, arrays)
    return TileNest(nest, tile.lanes, columns, tile.rows * tile.vectors, waits)
