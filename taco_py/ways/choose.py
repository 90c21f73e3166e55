"""Which kernels are made of register tiles: contractions whose operands are used again enough.

A product of matrices uses each element of left once for every column, and each of right once for
every row; loops alone do as well where either is few, for then it is memory that takes the time.
Where the depth is little, they do where right lies along the rows of the result; across them, the
innermost loop would be the sum of two or three terms. Where rows or columns are few but every loop
would stride through an array, and where loops could run along a batch, both are estimated
(`ways.dense_seconds`), and what takes clearly less is taken.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from codegen.records import dataclass
from taco_py.cost.estimate import Statistics
from taco_py.legal.types import has_matrix_kernels, is_complex
from taco_py.problem import Problem
from taco_py.ways.dense_product import dense_product
from taco_py.ways.dense_seconds import seconds_of_loops, seconds_of_tiles
from taco_py.ways.library_choice import Libraries, library_reason
from taco_py.ways.staged_sum import staged_of
from taco_py.ways.strategy import Strategy
from taco_py.ways.tiles import contraction_of
from taco_py.ways.transpose import permutation_of

if TYPE_CHECKING:
    from polyhedral.products.contraction import Contraction


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy, and why where that is not known of it in general."""

    strategy: Strategy
    why: str = ""


def choose_strategy(
    problem: Problem, stats: Statistics, libraries: Libraries | None = None
) -> Choice:
    """For contractions with reuse what takes the least time, a library's routine among it where
    that may be called; else LOOPS."""
    found = contraction_of(problem, has_matrix_kernels)
    if found is None:
        return Choice(_turning(problem, stats))
    tiled = _tiled(found, stats, _strides(problem, stats))
    if tiled is None:
        return Choice(_turning(problem, stats))
    why = None if libraries is None else library_reason(problem, stats, libraries)
    if why is not None:
        return Choice(Strategy.LIBRARY, why)
    few = products_at_most(found, stats) < stats.machine.tile_compile_products
    plain = few or contraction_of(problem) is None or _along_batch(problem, stats)
    return Choice(Strategy.LOOPS if plain else tiled)


def in_tiles(problem: Problem, stats: Statistics, libraries: Libraries | None) -> bool:
    """Whether register tiles, or those of a library that may be called, make a product: complex
    numbers have the library's alone."""
    kind = choose_strategy(problem, stats).strategy.kind
    if kind == Strategy.LOOPS.kind and is_complex(problem.result.dtype):
        kind = choose_strategy(problem, stats, libraries).strategy.kind
    return kind in (Strategy.TILES.kind, Strategy.LIBRARY.kind)


def worth_apart(problem: Problem, stats: Statistics, libraries: Libraries | None) -> bool:
    """Whether a product is made in tiles, and so large and with so much reuse that what keeps it
    from them may take kernels of its own."""
    found, machine = contraction_of(problem, has_matrix_kernels), stats.machine
    if found is None or products_at_most(found, stats) < machine.own_kernel_products:
        return False
    enough = _reuse(found, stats) >= machine.own_kernel_reuse_products
    return enough and in_tiles(problem, stats, libraries)


def _strides(problem: Problem, stats: Statistics) -> bool:
    """Whether every loop strides through an array, and tiles take clearly less time."""
    product = dense_product(problem, stats)
    if product is None or any(map(product.along, product.indices)):
        return False
    return seconds_of_tiles(product) * stats.machine.dense_detour_gain < seconds_of_loops(product)


def _along_batch(problem: Problem, stats: Statistics) -> bool:
    """Whether all arrays store the same index of a batch last, and loops along it take clearly less
    than tiles, for which each element has to be brought near its matrix's others."""
    product = dense_product(problem, stats)
    if product is None or not any(map(product.along, product.batch)):
        return False
    return seconds_of_loops(product) * stats.machine.dense_detour_gain < seconds_of_tiles(product)


def products_at_most(found: Contraction, stats: Statistics) -> float:
    """The products of elements in problems of this size class: every size takes as many bits.

    Problems of one class share plans, so that they must not decide differently.
    """
    loops = (*found.batch, *found.rows, *found.columns, *found.depth)
    return prod((2.0 ** int(stats.sizes[loop]).bit_length() - 1 for loop in loops), start=1.0)


def _turning(problem: Problem, stats: Statistics) -> Strategy:
    """TRANSPOSE for copies in another order that fill tiles, STAGED for sums and products in
    another order that do, else LOOPS."""
    copy, filled = permutation_of(problem), stats.machine.transposed_tile_elements
    if copy is not None:
        fills = min(stats.sizes[x] for x in (copy.along, copy.across)) >= filled
        return Strategy.TRANSPOSE if fills else Strategy.LOOPS
    found = staged_of(problem)
    if found is None:
        return Strategy.LOOPS
    row = found.row if found.joined else (found.across,)
    loops = (found.along, *row) if found.even else row
    if prod(stats.sizes[loop] for loop in loops) < filled:
        return Strategy.LOOPS
    terms = prod((stats.sizes[loop] for loop in found.reduced), start=1.0)
    return Strategy.STAGED if stats.sizes[found.along] * terms >= filled else Strategy.LOOPS


def _tiled(found: Contraction, stats: Statistics, strides: bool) -> Strategy | None:
    """TILES with their width, None where there is too little reuse.

    strides  whether tiles take clearly less time than loops, which stride through an array
    """
    (rows, columns, depth), machine = _matrix(found, stats), stats.machine
    if _reuse(found, stats) < machine.tile_reuse_products:
        return None
    few = machine.tile_few_rows
    if min(rows, columns) <= few and not strides:
        return None
    if depth <= few and columns >= machine.loop_row_columns and _along_columns(found):
        return None
    if found.batch and columns < machine.narrow_tile_columns:
        return replace(Strategy.TILES, width=1 << (int(columns).bit_length() - 1))
    return Strategy.TILES


def _matrix(found: Contraction, stats: Statistics) -> tuple[float, float, float]:
    """Rows, columns and depth."""
    rows, columns, depth = (
        prod((stats.sizes[loop] for loop in loops), start=1.0)
        for loops in (found.rows, found.columns, found.depth)
    )
    return rows, columns, depth


def _reuse(found: Contraction, stats: Statistics) -> float:
    """Products for each element of the operands and the result."""
    rows, columns, depth = _matrix(found, stats)
    return rows * columns * depth / (rows * depth + depth * columns + rows * columns)


def _along_columns(found: Contraction) -> bool:
    """Whether neighbours of right are columns, as those of the result are: a sum of few such rows
    needs no copies of them in another order, and loops take it as they are."""
    return any(loop in found.columns for loop in found.right.subscripts[-1].names)
