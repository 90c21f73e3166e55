"""The number of iterations of outer loops to jam inside the innermost one.

For a product C[i,j] += A[i,k] * B[k,j] with j innermost, 2 iterations of i and 4 of k together read
4 vectors of B and 2 of C, and write 2, for 8 multiplications: two loads and one store a cycle keep
two multiplications a cycle busy. Elements that do not change along j stay in registers, which must
suffice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from polyhedral.band_schedule import Row, Schedule
from polyhedral.model import Access, Statement
from polyhedral.nests.tile_size import changes

FACTORS = (1, 2, 4, 8)
LARGEST = 16
"""The most jammed iterations: code grows with them."""

SPARE = 3
"""Registers for temporaries."""


def choose_factors(
    statement: Statement,
    outer: Sequence[str],
    vector: str,
    registers: int,
    iterations: Mapping[str, int] | None = None,
) -> tuple[int, ...]:
    """Return a factor for each loop of `outer`, 1 for a loop that is not jammed.

    iterations  of loops, where they are known, as upper bounds of factors
    """
    most = iterations or {}
    best, best_factors = cost(statement, dict.fromkeys(outer, 1), vector), (1,) * len(outer)
    for factors in product(FACTORS, repeat=len(outer)):
        sizes = dict(zip(outer, factors, strict=True))
        if any(size > max(1, most.get(loop, size)) for loop, size in sizes.items()):
            continue
        if prod(factors) > LARGEST or _registers(statement, sizes, vector) + SPARE > registers:
            continue
        candidate = cost(statement, sizes, vector)
        if candidate < best:
            best, best_factors = candidate, factors
    return best_factors


def cost(statement: Statement, sizes: Mapping[str, int], vector: str) -> tuple[float, float]:
    """Return cycles and memory operations an iteration: 2 loads, 1 store or 2 products a cycle."""
    loads = sum(
        _copies(access, sizes)
        for access in _different(statement)
        if changes(access, vector) and (access.reads)
    )
    stores = sum(
        _copies(access, sizes)
        for access in _different(statement)
        if changes(access, vector) and access.writes
    )
    jammed = prod(sizes.values())
    cycles = max(loads / 2, stores, jammed / 2)
    return cycles / jammed, (loads + stores) / jammed


def _registers(statement: Statement, sizes: Mapping[str, int], vector: str) -> int:
    """Return the number of values that stay in registers during the innermost loop."""
    return sum(
        _copies(access, sizes) for access in _different(statement) if not changes(access, vector)
    )


def _different(statement: Statement) -> tuple[Access, ...]:
    return tuple(dict.fromkeys(statement.accesses))


def _copies(access: Access, sizes: Mapping[str, int]) -> int:
    """Return the number of different elements that the jammed iterations use."""
    return prod(size for loop, size in sizes.items() if changes(access, loop))


def jammed_at_most(schedule: Schedule, most: int) -> Schedule:
    """Return the same order with at most `most` jammed loops above each statement, the
    innermost."""
    return Schedule(tuple((name, _fewer(rows, most)) for name, rows in schedule.rows))


def _fewer(rows: Sequence[Row], most: int) -> tuple[Row, ...]:
    jammed = [place for place, row in enumerate(rows) if row.unroll > 1]
    plain = jammed[: max(0, len(jammed) - most)]
    return tuple(replace(row, unroll=1) if at in plain else row for at, row in enumerate(rows))
