"""Tiles in shared memory and registers of a contraction of two dense tensors, on a GPU.

    C[i,j] = sum(k, A[i,k] * B[k,j]), large   →   make(cuda_tiles,128,128,16,8,8)

A block computes 128 by 128 elements of C, a thread 8 by 8 of them; 16 columns of A and rows of B at
a time are in shared memory. Loops read two elements for each product; tiles pay where that takes
longer, by estimates of both.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from codegen.machine.gpu import Gpu
from codegen.machine.target import Target
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.ways.arrays import product_arrays
from taco_py.compiler.ways.contraction_match import contraction_of, ordered
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.tiles import product_seconds
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.types import has_tiles_on_gpu, is_complex

if TYPE_CHECKING:
    from polyhedral.products.contraction import Contraction
    from polyhedral.products.gpu_tile import GpuArithmetic, GpuProduct, GpuTile
    from taco_py.compiler.cost.estimate import Statistics
    from taco_py.compiler.schedule.schedule import Schedule
    from taco_py.language.problem import Problem


# ---------------------------------------------------------------- whether they pay


def product_on_gpu(question: Question) -> Contraction | None:
    """Return the problem as a contraction of numbers that threads of a GPU multiply."""
    return contraction_of(question.problem, has_tiles_on_gpu)


def best_on_gpu(question: Question) -> tuple[GpuTile, str] | None:
    """Return the tile of the least expected time, and a comparison with loops.

    None where loops are expected to take no longer.
    """
    from polyhedral.products.gpu_tile import best_tile, seconds_of

    contraction = question.recall(product_on_gpu)
    if contraction is None:
        return None
    stats = question.stats
    machine = arithmetic_of(question.problem.result.dtype, stats.machine.target.gpu)
    product = _product(contraction, machine, stats)
    tile = best_tile(machine, product)
    tiles, loops = seconds_of(tile, machine, product), _seconds_of_loops(product, stats.machine)
    few = min(product.rows, product.columns) <= stats.machine.dense.tile_few_rows
    if few or loops <= tiles:
        return None
    return tile, (
        f"{tile}: {tiles * 1e6:.1f} µs expected\n"
        f"not a thread for each element: {loops * 1e6:.1f} µs"
    )


def priced(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the expected seconds of a kernel in tiles."""
    from polyhedral.products.gpu_tile import GpuTile, seconds_of

    contraction = contraction_of(problem, has_tiles_on_gpu)
    if contraction is None:
        return None
    machine = arithmetic_of(problem.result.dtype, stats.machine.target.gpu)
    tile = GpuTile(*schedule.make.parameters)
    return seconds_of(tile, machine, _product(contraction, machine, stats))


def _product(contraction: Contraction, machine: GpuArithmetic, stats: Statistics) -> GpuProduct:
    """Return the sizes of a contraction."""
    from polyhedral.products.gpu_tile import GpuProduct

    batch, rows, columns, depth = (
        prod((stats.sizes[loop] for loop in loops), start=1.0) for loops in contraction.of_classes
    )
    spread = _spread(contraction, machine)
    return GpuProduct(batch, rows, columns, depth, spread)


def _spread(contraction: Contraction, machine: GpuArithmetic) -> float:
    """Return how many times the bytes of operands are read where the batch runs along their
    lines."""
    sides = (contraction.left, contraction.right)
    lasts = [last for side in sides for last in side.subscripts[-1:]]
    batched = sum(any(loop in contraction.batch for loop in last.names) for last in lasts)
    sector = max(1.0, machine.gpu.sector_bytes / machine.element_bytes)
    return 1.0 + batched / 2 * (sector - 1.0)


def _seconds_of_loops(of: GpuProduct, machine: Machine) -> float:
    """Return the seconds of a thread for each element: its instructions, or the latency of its
    sum."""
    gpu = machine.target.gpu
    iterations = of.batch * of.rows * of.columns * of.depth / gpu.warp_threads
    issued = iterations * machine.units.iteration_instructions / gpu.instructions_per_second
    return max(issued, of.depth * machine.units.iteration_latency_seconds)


def arithmetic_of(dtype: str, gpu: Gpu) -> GpuArithmetic:
    """Return the properties of a GPU and an element type that tiles depend on."""
    from polyhedral.products.gpu_tile import GpuArithmetic

    size = np.dtype(dtype).itemsize
    return GpuArithmetic(gpu, size, max(1, size // 4) * (2 if is_complex(dtype) else 1))


# ---------------------------------------------------------------- how they are made


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a contraction in tiles."""
    from polyhedral.products.gpu_code import to_gpu_module
    from polyhedral.products.gpu_plan import plan_on_gpu
    from polyhedral.products.gpu_tile import GpuTile

    problem = recipe.problem
    contraction = contraction_of(problem, has_tiles_on_gpu)
    if contraction is None:
        raise InternalError(f"Expected a contraction of two dense tensors, found {problem}")
    machine = arithmetic_of(problem.result.dtype, target.gpu)
    tile = GpuTile(*recipe.schedule.make.parameters)
    plan = plan_on_gpu(contraction, machine, tile, dict(problem.static))
    left, right = ordered(problem, contraction)
    arrays, operands = product_arrays(problem, left, right, recipe.phase)
    module = to_gpu_module(plan, operands, arrays.head, arrays.names)
    facts = dense_facts(recipe, "blocks share tiles", str(plan), str(contraction.statement))
    return LoweredRecipe(replace(module, header=recipe.header(str(plan))), arrays.bindings, facts)


def can(question: Question) -> bool:
    """Tell whether a problem is a contraction that is planned for a GPU."""
    planned = question.statistics is not None and question.stats.machine.is_gpu
    return planned and question.recall(product_on_gpu) is not None


def choose(question: Question) -> Offer | None:
    """Return the offer of the best tile where it is expected to take less time than loops."""
    best = question.recall(best_on_gpu) if can(question) else None
    if best is None:
        return None
    tile, comparison = best
    sizes = (tile.rows, tile.columns, tile.depth, tile.thread_rows, tile.thread_columns)
    return Offer((*sizes, tile.parts) if tile.parts > 1 else sizes, comparison)


WAY = Way(
    "cuda_tiles",
    can,
    choose,
    lower,
    reuses=True,
    seconds=product_seconds,
    on_gpu=True,
    priced=priced,
)
