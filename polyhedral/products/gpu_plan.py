"""The plan of a contraction on a GPU, with reasons.

The plan of a product of matrices of 4096 by 4096 floats prints as

    tiles of 128 by 128, depth 8, 8 by 8 a thread, 256 threads
      classes: rows i; columns j; depth k
      registers: 64 of sums, 16 of factors, 8 ahead, 40 others: 128 of 128 expected
      shared memory: (132 + 128) * 8 * 4 = 8320 of 49152 bytes
      copies: left along k, 8 threads side by side, 4 of padding; right along j; no bank twice
      reads: 0.25 of shared memory a product, 0.0156 of global memory
      1024 blocks on 132 multiprocessors: 3.09 ms expected
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, prod

from codegen.records import dataclass
from polyhedral.products.contraction import Contraction
from polyhedral.products.gpu_staging import Staging, staging, write_cycles
from polyhedral.products.gpu_tile import (
    MOST_REGISTERS,
    OTHER_REGISTERS,
    GpuArithmetic,
    GpuProduct,
    GpuTile,
    blocks_asked_for,
    blocks_of,
    registers_of,
    seconds_of,
)


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """The tile of a contraction, the copies of its operands to shared memory, and reasons.

    resident_blocks  the blocks of a multiprocessor that registers must suffice for
    """

    contraction: Contraction
    machine: GpuArithmetic
    tile: GpuTile
    left: Staging
    right: Staging
    resident_blocks: int
    reasons: tuple[str, ...]

    @property
    def shared_bytes(self) -> int:
        return (self.left.size + self.right.size) * self.machine.element_bytes

    def __str__(self) -> str:
        return "\n  ".join([f"{self.tile}, {self.tile.threads} threads", *self.reasons])


def plan_on_gpu(
    product: Contraction,
    machine: GpuArithmetic,
    tile: GpuTile,
    extents: Mapping[str, int] | None = None,
) -> GpuPlan:
    """Return the plan of a contraction in tiles; `extents` has the known extents of loops."""
    size = machine.element_bytes
    left, right = (
        staging(tile, edge, per_thread, _along_depth(product, loops), machine)
        for edge, per_thread, loops in (
            (tile.rows, tile.thread_rows, _last(product, "left")),
            (tile.columns, tile.thread_columns, _last(product, "right")),
        )
    )
    blocks = blocks_asked_for(tile, machine)
    plan = GpuPlan(product, machine, tile, left, right, blocks, ())
    reasons = (
        f"classes: {product.classes}",
        _registers(plan),
        f"shared memory: ({left.edge + left.padding} + {right.edge + right.padding}) * "
        f"{tile.depth} * {size} = {plan.shared_bytes} of {machine.gpu.block_shared_bytes} bytes",
        f"copies: left {_copied(left, _last(product, 'left'))}; "
        f"right {_copied(right, _last(product, 'right'))}; "
        f"{_banks(max(write_cycles(operand, machine) for operand in (left, right)))}",
        f"reads: {_share(tile.thread_rows, tile.thread_columns)} of shared memory a product, "
        f"{_share(tile.rows, tile.columns)} of global memory",
        *_split(tile),
        *_expected(plan, extents or {}),
    )
    return GpuPlan(product, machine, tile, left, right, blocks, reasons)


def _last(product: Contraction, side: str) -> str:
    """Return the loop along which an operand is contiguous."""
    access = product.left if side == "left" else product.right
    return next((name for last in access.subscripts[-1:] for name in last.names), "")


def _along_depth(product: Contraction, loop: str) -> bool:
    return loop in product.depth


def _registers(plan: GpuPlan) -> str:
    tile, machine = plan.tile, plan.machine
    words = ceil(machine.element_bytes / 4)
    factors, ahead = tile.thread_rows + tile.thread_columns, plan.left.copies + plan.right.copies
    return (
        f"registers: {tile.accumulators * words} of sums, {factors * words} of factors, "
        f"{ahead * words} ahead, {OTHER_REGISTERS} others: "
        f"{registers_of(tile, machine.element_bytes)} of {MOST_REGISTERS} expected"
    )


def _copied(plan: Staging, loop: str) -> str:
    adjacent = f", {plan.chunk} threads side by side" if plan.chunk else ""
    padding = f", {plan.padding} of padding" if plan.padding else ""
    return f"{'along ' + loop if loop else 'one element'}{adjacent}{padding}"


def _banks(lanes: int) -> str:
    return "no bank twice" if lanes == 1 else f"a bank {lanes} times"


def _share(rows: int, columns: int) -> str:
    return f"{1 / rows + 1 / columns:.3g}"


def _split(tile: GpuTile) -> Iterator[str]:
    if tile.parts > 1:
        yield (
            f"depth in {tile.parts} parts, for tiles are few: sums of parts are added up in their "
            "order"
        )


def _expected(plan: GpuPlan, extents: Mapping[str, int]) -> Iterator[str]:
    """Yield the number of blocks and their expected time, where all extents are known."""
    contraction, tile = plan.contraction, plan.tile
    if not set(contraction.statement.variables) <= set(extents):
        return
    product = GpuProduct(
        *(prod(extents[loop] for loop in loops) for loops in contraction.of_classes)
    )
    seconds = seconds_of(tile, plan.machine, product)
    yield (
        f"{blocks_of(tile, product)} blocks on {plan.machine.gpu.multiprocessors} multiprocessors: "
        f"{seconds * 1e3:.3g} ms expected"
    )
