"""The least seconds of a kernel on a GPU, from the data sheet of what is there.

operations / (peak · WBRatio)      blocks of tiles are whole, and multiprocessors run whole ones
bytes / bandwidth                  each array moves once, but for what the shared cache may keep
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from typing import TYPE_CHECKING

from codegen.machine.gpu import NOMINAL_GPU, Gpu, gpu_named
from taco_py.compiler.devices import device_of, devices
from taco_py.compiler.ways.contraction_match import contraction_of
from taco_py.compiler.ways.ways import way_of
from taco_py.language.diagnostics.memory_errors import bytes_text
from taco_py.language.legal.types import has_tiles_on_gpu
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.report.limits.gpu_formulas import BlockResources, balance_ratio, has_room
from taco_py.report.limits.kernel_bound import Bound, Limit
from taco_py.report.limits.kernel_work import Work, work_of_step

if TYPE_CHECKING:
    from polyhedral.products.gpu_tile import GpuTile


def gpu_here() -> Gpu | None:
    """Return the GPU of this machine, the nominal one if there is none; None if it is not in the
    table."""
    if devices().why_not("cuda"):
        return NOMINAL_GPU
    facts = getattr(device_of("cuda"), "facts", None)
    return None if facts is None else gpu_named(str(facts.name))


def gpu_bound(
    step: KernelStep,
    facts: Mapping[str, Operand],
    gpu: Gpu,
    memory: Mapping[str, str] | None = None,
) -> Bound:
    """Return the least seconds of a kernel on a GPU.

    memory  behind each of its operands, None if each has its own
    """
    work = work_of_step(step, facts, memory)
    limits = [*_limits(step, work, gpu)]
    if not limits:
        return Bound(0.0, "nothing", "nothing is known of it", work.flops, work.bytes)
    limits.sort(key=lambda limit: -limit.seconds)
    first = limits[0]
    return Bound(first.seconds, first.name, first.reason, work.flops, work.bytes, tuple(limits))


def _limits(step: KernelStep, work: Work, gpu: Gpu) -> list[Limit]:
    limits = []
    traffic = max(0.0, work.bytes - gpu.cache_bytes)
    if traffic:
        reason = f"{bytes_text(round(traffic))} must come from the memory of the {gpu.name}"
        limits.append(
            Limit(
                "memory",
                traffic / gpu.memory_bytes_per_second,
                traffic,
                gpu.memory_bytes_per_second,
                reason,
            )
        )
    peak = gpu.peak(work.problem.result.dtype)
    if peak and work.flops:
        share, reason = _balance(step, work, gpu)
        peak_reason = f"its {work.flops:.3g} operations take as long on the {gpu.name}{reason}"
        rate = peak * share
        seconds = work.flops / rate if rate else float("inf")
        limits.append(Limit("peak", seconds, work.flops, rate, peak_reason))
    return limits


def _balance(step: KernelStep, work: Work, gpu: Gpu) -> tuple[float, str]:
    """Return the share of a GPU that blocks of tiles can keep busy, and why."""
    way = way_of(step.schedule.make)
    if way.in_loops or not way.on_gpu:
        return 1.0, ""
    from polyhedral.products.gpu_tile import GpuProduct, GpuTile, blocks_of

    contraction = contraction_of(step.problem, has_tiles_on_gpu)
    if contraction is None:
        return 1.0, ""
    tile = GpuTile(*step.schedule.make.parameters)
    of = GpuProduct(*(prod(work.sizes[i] for i in loops) for loops in contraction.of_classes))
    blocks = blocks_of(tile, of)
    if not has_room(block_resources(tile, 4), gpu):
        return 0.0, ", which has no room for a block of its tiles"
    tiles = ceil(of.rows / tile.rows) * tile.rows * ceil(of.columns / tile.columns) * tile.columns
    full = of.rows * of.columns / tiles
    share = balance_ratio(blocks, gpu.multiprocessors) * full
    busy = (
        f"; {blocks} blocks of tiles keep {share:.0%} of its {gpu.multiprocessors} multiprocessors"
    )
    return share, f"{busy} busy"


def block_resources(tile: GpuTile, element_bytes: int) -> BlockResources:
    """Return the resources of a multiprocessor that a block of tiles needs."""
    from polyhedral.products.gpu_tile import LONGEST_RUN, registers_of, shared_bytes_of

    return BlockResources(
        threads=tile.threads,
        shared_bytes=shared_bytes_of(tile, element_bytes, 2 * LONGEST_RUN),
        registers=registers_of(tile, element_bytes),
    )
