"""Which kernels are made of register tiles: contractions whose operands are used again enough.

A product of matrices uses each element of left once for every column, and each of right once for
every row; loops alone do as well where either is few, for then it is memory that takes the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from taco_py.cost.estimate import Statistics
from taco_py.lower.tiled import contraction_of
from taco_py.problem import Problem
from taco_py.strategy import Strategy

REUSE = 1.3
"""Products for each element of the operands and the result from which on tiles pay."""
FEW = 3
"""Rows, columns or depth that are too few to fill tiles."""
NARROW = 32
"""Columns of the matrices of a batch below which tiles are no wider than these."""


def choose_strategy(problem: Problem, stats: Statistics) -> Strategy:
    """TILES for contractions with reuse, else LOOPS."""
    found = contraction_of(problem)
    if found is None:
        return Strategy.LOOPS

    def size(loops: Iterable[str]) -> float:
        return prod((stats.sizes[loop] for loop in loops), start=1.0)

    rows, columns, depth = size(found.rows), size(found.columns), size(found.depth)
    moved = rows * depth + depth * columns + rows * columns
    if min(rows, columns, depth) <= FEW or rows * columns * depth < REUSE * moved:
        return Strategy.LOOPS
    if found.batch and columns < NARROW:
        return replace(Strategy.TILES, width=1 << (int(columns).bit_length() - 1))
    return Strategy.TILES
