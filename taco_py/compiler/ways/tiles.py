"""Register tiles and blocks of a contraction of two dense tensors (`polyhedral`).

A product of matrices uses each element of left once for every column, and each of right once for
every row; loops alone are as fast where either is few, for then memory bandwidth is the limit.
Where the depth is small, they are if right is contiguous along the rows of the result; else the
innermost loop would be the sum of two or three terms. Where rows or columns are few but every loop
would stride through an array, and where loops could run along a batch, both are estimated
(`ways.dense_seconds`), and the clearly faster one is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from codegen.ir import Module
from codegen.machine.target import Target
from codegen.records import dataclass
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.dataflow.value_seconds import seconds_of_epilogue
from taco_py.compiler.lower.bindings import Bindings
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways.arrays import has_vectors, machine_of, product_arrays
from taco_py.compiler.ways.contraction_match import (
    contraction_of,
    matrix,
    ordered,
    product_of,
    products_at_most,
    reuse,
)
from taco_py.compiler.ways.dense_product import dense_product
from taco_py.compiler.ways.dense_seconds import seconds_in_tiles, seconds_of_loops, seconds_of_tiles
from taco_py.compiler.ways.epilogues.visited_tiles import lower_visited, visited_product
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.types import is_complex, is_real
from taco_py.language.notation.checks import all_indices
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from polyhedral.products.contraction import Contraction
    from polyhedral.products.contraction_plan import ContractionPlan
    from taco_py.compiler.schedule.schedule import Schedule

# ---------------------------------------------------------------- whether they pay


def can(question: Question) -> bool:
    """Tell whether a problem is a contraction of floats, perhaps with an epilogue."""
    if question.problem.side:
        return visited_product(question.problem) is not None
    product = question.recall(product_of)
    return product is not None and is_real(question.problem.result.dtype)


def choose(question: Question) -> Offer | None:
    """Return tiles for products with reuse that are worth compiling, unless loops along a batch
    are faster."""
    product, width = question.recall(product_of), question.recall(tile_width)
    if product is None or width is None or not can(question):
        return None
    least = question.stats.machine.dense.tile_compile_products
    if products_at_most(product, question.stats) < least or _along_batch(question):
        return None
    return Offer((width,) if width else ())


def tile_width(question: Question) -> int | None:
    """Return the most columns of a tile for a product of matrices, None where reuse is low."""
    product = question.recall(product_of)
    if product is None:
        return None
    stats, machine = question.stats, question.stats.machine
    rows, columns, depth = matrix(product, stats)
    if reuse(product, stats) < machine.dense.tile_reuse_products:
        return None
    few = machine.dense.tile_few_rows
    if min(rows, columns) <= few and not _strides(question):
        return None
    if depth <= few and columns >= machine.dense.loop_row_columns and _along_columns(product):
        return None
    filled = 1 << (int(columns).bit_length() - 1)
    if product.batch:
        return filled if columns < machine.dense.narrow_tile_columns else 0
    lanes = machine.dense.vector_bytes // np.dtype(question.problem.result.dtype).itemsize
    return min(filled, lanes) if columns < machine.dense.narrow_tile_ratio * lanes else 0


def _strides(question: Question) -> bool:
    """Tell whether every loop strides through an array, and tiles are clearly faster."""
    product = dense_product(question.problem, question.stats)
    if product is None or any(map(product.is_contiguous, product.indices)):
        return False
    gain = question.stats.machine.copies.dense_detour_gain
    return seconds_of_tiles(product) * gain < seconds_of_loops(product)


def _along_batch(question: Question) -> bool:
    """Tell whether loops along a batch are clearly faster than tiles.

    All arrays must store the same index of the batch last; tiles would pack each element.
    """
    product = dense_product(question.problem, question.stats)
    if product is None or not any(map(product.is_contiguous, product.batch)):
        return False
    gain = question.stats.machine.copies.dense_detour_gain
    return seconds_of_loops(product) * gain < seconds_of_tiles(product)


def _along_columns(product: Contraction) -> bool:
    """Tell whether right is contiguous along columns, as the result is.

    A sum of few such rows needs no copy in another order, and loops read it directly.
    """
    return any(loop in product.columns for loop in product.right.subscripts[-1].names)


def product_seconds(question: Question) -> float:
    """Return the seconds of the products; a product of complex numbers takes four real ones."""
    problem, stats = question.problem, question.stats
    real = 4 if is_complex(problem.result.dtype) else 1
    products = real * stats.volume(frozenset(all_indices(problem.assignment)))
    return products / stats.machine.calls.dense_products_per_second


# ---------------------------------------------------------------- how they are made


@dataclass(frozen=True, slots=True)
class Tiled:
    """A module whose last function is the kernel, the sources of its arguments, and the plan."""

    module: Module
    bindings: Bindings
    plan: ContractionPlan


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a contraction in tiles, with its epilogue."""
    visited = lower_visited(recipe, target, _sizes(recipe.schedule.make.parameters))
    if visited is not None:
        return visited
    tiled = tile(recipe.problem, target, recipe.phase, recipe.schedule.make.parameters)
    plan = str(tiled.plan)
    concrete = str(tiled.plan.contraction.statement)
    facts = dense_facts(recipe, "blocks of rows, or the batch", plan, concrete)
    module = replace(tiled.module, header=recipe.header(plan))
    vectors = has_vectors(recipe.problem, target)
    return LoweredRecipe(module, tiled.bindings, facts, vectors)


def _sizes(parameters: tuple[int, ...]) -> dict[str, int]:
    """Return the parameters of make(tiles,…) by their names.

    They are the most columns of a tile, as from `tile_width`, its rows, and the terms of a block;
    0, or left out, for the machine's choice.
    """
    return dict(zip(("width", "height", "depth"), parameters, strict=False))


def tile(problem: Problem, target: Target, name: str, parameters: tuple[int, ...] = ()) -> Tiled:
    """Return the kernel called `name` of a contraction, in tiles with these parameters of
    `_sizes`."""
    from polyhedral.products.contraction_code import to_functions
    from polyhedral.products.contraction_plan import plan_contraction

    product = contraction_of(problem)
    if product is None:
        raise InternalError(f"Expected a contraction of two dense tensors, found {problem}")
    machine = machine_of(target, problem.result.dtype)
    plan = plan_contraction(product, machine, dict(problem.static), **_sizes(parameters))
    arguments, operands = product_arrays(problem, *ordered(problem, product), name)
    module = to_functions(
        product, plan.tile, plan.blocks, operands, arguments.head, arguments.names
    )
    return Tiled(module, arguments.bindings, plan)


def traffic(problem: Problem, make: Make, sizes: Mapping[str, int], target: Target) -> str:
    """Return explain()'s line of the bytes that move between caches."""
    from polyhedral.products.contraction_plan import plan_contraction

    product = contraction_of(problem)
    if product is None:
        return ""
    machine = machine_of(target, problem.result.dtype)
    plan = plan_contraction(product, machine, sizes, **_sizes(make.parameters))
    return next((line for line in plan.reasons if line.startswith("traffic")), "")


def priced(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the seconds of the tiles and of the epilogue."""
    match = visited_product(problem)
    alone = problem if match is None else match[0].problem
    product = dense_product(alone, stats)
    if product is None:
        return None
    after = 0.0 if match is None else seconds_of_epilogue(match[0], stats)
    (width, *_) = (*schedule.make.parameters, 0)
    return seconds_in_tiles(product, width) + after


def with_epilogue(problem: Problem, schedule: Schedule) -> Make | None:
    """Return the same tiles, where a problem is a product with an epilogue."""
    return None if visited_product(problem) is None else schedule.make


WIDTHS, HEIGHTS, DEPTHS = (8, 16, 32, 64), (2, 4, 6, 8, 12), (64, 128, 256, 512)
"""The most columns of a tile, its rows, and the terms of a block that tuning tries."""
TUNING_PARAMETERS = (
    *((width,) for width in WIDTHS),
    *((0, height) for height in HEIGHTS),
    *((0, 0, depth) for depth in DEPTHS),
)
WAY = Way(
    "tiles",
    can,
    choose,
    lower,
    reuses=True,
    seconds=product_seconds,
    traffic=traffic,
    tuning_parameters=TUNING_PARAMETERS,
    epilogue=with_epilogue,
    priced=priced,
)
