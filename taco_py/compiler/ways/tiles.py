"""Register tiles and blocks of a contraction of two dense tensors (`polyhedral`).

A product of matrices uses each element of left once for every column, and each of right once for
every row; loops alone do as well where either is few, for then it is memory that takes the time.
Where the depth is little, they do where right lies along the rows of the result; across them, the
innermost loop would be the sum of two or three terms. Where rows or columns are few but every loop
would stride through an array, and where loops could run along a batch, both are estimated
(`ways.dense_seconds`), and what takes clearly less is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.ir import Module
from codegen.machine.target import Target
from codegen.records import dataclass
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
from taco_py.compiler.ways.dense_seconds import seconds_of_loops, seconds_of_tiles
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
    """Tell whether a problem is a contraction of floats, or one and values of its elements."""
    if question.problem.side:
        return visited_product(question.problem) is not None
    found = question.recall(product_of)
    return found is not None and is_real(question.problem.result.dtype)


def choose(question: Question) -> Offer | None:
    """Return tiles for products with reuse that are worth compiling, unless loops along a batch
    take less."""
    found, width = question.recall(product_of), question.recall(tile_width)
    if found is None or width is None or not can(question):
        return None
    least = question.stats.machine.dense.tile_compile_products
    if products_at_most(found, question.stats) < least or _along_batch(question):
        return None
    return Offer((width,) if width else ())


def tile_width(question: Question) -> int | None:
    """Return columns of a tile at most for a product of matrices, None where there is too little
    reuse.

    0 for as many as suit the machine; a batch of small matrices wants tiles that these fill.
    """
    found = question.recall(product_of)
    if found is None:
        return None
    stats, machine = question.stats, question.stats.machine
    rows, columns, depth = matrix(found, stats)
    if reuse(found, stats) < machine.dense.tile_reuse_products:
        return None
    few = machine.dense.tile_few_rows
    if min(rows, columns) <= few and not _strides(question):
        return None
    if depth <= few and columns >= machine.dense.loop_row_columns and _along_columns(found):
        return None
    if found.batch and columns < machine.dense.narrow_tile_columns:
        return 1 << (int(columns).bit_length() - 1)
    return 0


def _strides(question: Question) -> bool:
    """Tell whether every loop strides through an array, and tiles take clearly less time."""
    product = dense_product(question.problem, question.stats)
    if product is None or any(map(product.along, product.indices)):
        return False
    gain = question.stats.machine.copies.dense_detour_gain
    return seconds_of_tiles(product) * gain < seconds_of_loops(product)


def _along_batch(question: Question) -> bool:
    """Tell whether all arrays store the same index of a batch last, and loops along it take clearly
    less than tiles, for which each element has to be brought near its matrix's others."""
    product = dense_product(question.problem, question.stats)
    if product is None or not any(map(product.along, product.batch)):
        return False
    gain = question.stats.machine.copies.dense_detour_gain
    return seconds_of_loops(product) * gain < seconds_of_tiles(product)


def _along_columns(found: Contraction) -> bool:
    """Tell whether neighbours of right are columns, as those of the result are: a sum of few such
    rows needs no copies of them in another order, and loops take it as they are."""
    return any(loop in found.columns for loop in found.right.subscripts[-1].names)


def product_seconds(question: Question) -> float:
    """What the products take; one of complex numbers is four of real ones."""
    problem, stats = question.problem, question.stats
    real = 4 if is_complex(problem.result.dtype) else 1
    products = real * stats.volume(frozenset(all_indices(problem.assignment)))
    return products / stats.machine.calls.dense_products_per_second


# ---------------------------------------------------------------- how they are made


@dataclass(frozen=True, slots=True)
class Tiled:
    """A module whose last function is the kernel, where its arguments come from, and the plan."""

    module: Module
    bindings: Bindings
    plan: ContractionPlan


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a contraction in tiles, and of what is done with its elements
    besides."""
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
    """What the parameters of make(tiles,…) are: columns of a tile at most, as `tile_width` gives
    them; its rows; terms of a block. 0, or left out, for what suits the machine."""
    return dict(zip(("width", "height", "depth"), parameters, strict=False))


def tile(problem: Problem, target: Target, name: str, parameters: tuple[int, ...] = ()) -> Tiled:
    """Return the kernel called `name` of a problem that `contraction_of` knows, in tiles as
    `_sizes` has them."""
    from polyhedral.products.contraction_code import to_functions
    from polyhedral.products.contraction_plan import plan_contraction

    found = contraction_of(problem)
    if found is None:
        raise InternalError(f"Expected a contraction of two dense tensors, found {problem}")
    machine = machine_of(target, problem.result.dtype)
    plan = plan_contraction(found, machine, dict(problem.static), **_sizes(parameters))
    given, operands = product_arrays(problem, *ordered(problem, found), name)
    module = to_functions(found, plan.tile, plan.blocks, operands, given.head, given.names)
    return Tiled(module, given.bindings, plan)


def traffic(problem: Problem, make: Make, sizes: Mapping[str, int], target: Target) -> str:
    """Return the bytes that move between caches, as the plan of the contraction says."""
    from polyhedral.products.contraction_plan import plan_contraction

    found = contraction_of(problem)
    if found is None:
        return ""
    machine = machine_of(target, problem.result.dtype)
    plan = plan_contraction(found, machine, sizes, **_sizes(make.parameters))
    return next((line for line in plan.reasons if line.startswith("traffic")), "")


def with_epilogue(problem: Problem, schedule: Schedule) -> Make | None:
    """Return the same tiles, where a problem is a product and values of its elements."""
    return None if visited_product(problem) is None else schedule.make


WIDTHS, HEIGHTS, DEPTHS = (8, 16, 32, 64), (2, 4, 6, 8, 12), (64, 128, 256, 512)
"""Columns of a tile at most, its rows, and terms of a block, as tuning tries them."""
TRIED = (
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
    tried=TRIED,
    epilogue=with_epilogue,
)
