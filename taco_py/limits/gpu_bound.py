"""The least seconds of a kernel on a GPU, from the data sheet of what is there.

operations / (peak · WBRatio)      blocks of tiles are whole, and multiprocessors run whole ones
bytes / bandwidth                  each array moves once, but for what the shared cache may keep
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from typing import TYPE_CHECKING

from taco_py.devices import device_of, devices
from taco_py.legal.types import has_tiles_on_gpu
from taco_py.limits.gpu_ceilings import GpuCeilings, gpu_named
from taco_py.limits.gpu_formulas import BlockWork, balance_ratio, resources
from taco_py.limits.kernel_bound import Bound, Limit, amount
from taco_py.limits.kernel_work import Work, work_of_step
from taco_py.plan.ir.nodes import KernelStep, Operand
from taco_py.ways.contraction_match import contraction_of
from taco_py.ways.ways import way_of

if TYPE_CHECKING:
    from polyhedral.products.gpu_tile import GpuTile


def gpu_here() -> GpuCeilings:
    """The GPU of this machine, or the nominal one."""
    if devices().why_not("cuda"):
        return gpu_named("")
    facts = getattr(device_of("cuda"), "facts", None)
    return gpu_named("" if facts is None else str(facts.name))


def gpu_bound(
    step: KernelStep, facts: Mapping[str, Operand], gpu: GpuCeilings | None = None
) -> Bound:
    """The least seconds of a kernel on a GPU, the one that is here where none is given."""
    work, gpu = work_of_step(step, facts), gpu or gpu_here()
    limits = [*_limits(step, work, gpu)]
    if not limits:
        return Bound(0.0, "nothing", "nothing is known of it", work.flops, work.bytes)
    limits.sort(key=lambda limit: -limit.seconds)
    first = limits[0]
    return Bound(first.seconds, first.name, first.why, work.flops, work.bytes, tuple(limits))


def _limits(step: KernelStep, work: Work, gpu: GpuCeilings) -> list[Limit]:
    found = []
    moved = max(0.0, work.bytes - gpu.cache_bytes)
    if moved:
        why = f"{amount(moved)} must come from the memory of the {gpu.name}"
        found.append(Limit("memory", moved / gpu.memory_bytes, moved, gpu.memory_bytes, why))
    peak = gpu.peak(work.problem.result.dtype)
    if peak and work.flops:
        share, why = _balance(step, work, gpu)
        told = f"its {work.flops:.3g} operations take as long on the {gpu.name}{why}"
        rate = peak * share
        seconds = work.flops / rate if rate else float("inf")
        found.append(Limit("peak", seconds, work.flops, rate, told))
    return found


def _balance(step: KernelStep, work: Work, gpu: GpuCeilings) -> tuple[float, str]:
    """The share of a GPU that blocks of tiles can keep busy, and why."""
    way = way_of(step.schedule.make)
    if way.in_loops or not way.on_gpu:
        return 1.0, ""
    from polyhedral.products.gpu_tile import GpuProduct, GpuTile, blocks_of

    found = contraction_of(step.problem, has_tiles_on_gpu)
    if found is None:
        return 1.0, ""
    tile = GpuTile(*step.schedule.make.parameters)
    of = GpuProduct(*(prod(work.sizes[i] for i in loops) for loops in found.of_classes))
    blocks = blocks_of(tile, of)
    if not resources(block_work(tile, of, 4), gpu):
        return 0.0, ", which has no room for a block of its tiles"
    tiles = ceil(of.rows / tile.rows) * tile.rows * ceil(of.columns / tile.columns) * tile.columns
    full = of.rows * of.columns / tiles
    share = balance_ratio(blocks, gpu.processors) * full
    busy = f"; {blocks} blocks of tiles keep {share:.0%} of its {gpu.processors} multiprocessors"
    return share, f"{busy} busy"


def block_work(tile: GpuTile, of: object, element_bytes: int) -> BlockWork:
    """What a block of tiles does, for DeepCuts' formulas.

    of  the product, a `GpuProduct`
    """
    from polyhedral.products.gpu_tile import (
        LONGEST_RUN,
        GpuProduct,
        blocks_of,
        registers_of,
        shared_bytes_of,
    )

    assert isinstance(of, GpuProduct)
    depth = ceil(of.depth / tile.parts)
    elements = (tile.rows + tile.columns) * depth + tile.rows * tile.columns
    return BlockWork(
        blocks=blocks_of(tile, of),
        flops=2.0 * tile.rows * tile.columns * depth,
        global_bytes=float(elements * element_bytes),
        thread_flops=2.0 * tile.accumulators * depth,
        thread_loads=float((tile.own_rows + tile.own_columns) * depth),
        threads=tile.threads,
        shared_bytes=shared_bytes_of(tile, element_bytes, 2 * LONGEST_RUN),
        registers=registers_of(tile, element_bytes),
    )
