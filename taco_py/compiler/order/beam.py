"""A first order for many loops, near which a better one is looked for.

Loops are added one at a time to the few sets of them that were cheapest to come to, by how often
all loops run where operands are spread evenly and independently:

    {}  →  {i} 100, {k} 300  →  {i,j} 100 + 500, {i,k} 100 + 30000, {k,l} 300 + 900  →  …

(Beam search: Lowerre 1976.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import accumulate
from math import inf

import numpy as np

from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.cost.sets import Sets
from taco_py.compiler.cost.shares import independent

BEAM_SETS = 8
"""Sets of as many loops each that are followed."""


Beam = dict[int, tuple[float, tuple[str, ...]]]
"""Sets of loops as numbers, a bit an index, with what it costs to come to them, and in which order
that is."""


def first_order(
    term: Term,
    statistics: Statistics,
    indices: tuple[str, ...],
    after: Mapping[str, frozenset[str]],
) -> tuple[str, ...]:
    """Return an order of loops over these indices that is expected to run few iterations.

    after  the indices that must come before another
    """
    bits = {index: 1 << row for row, index in enumerate(indices)}
    early = {i: sum(bits[j] for j in needed if j in bits) for i, needed in after.items()}
    beam: Beam = {0: (0.0, ())}
    for _ in indices:
        found = _longer(beam, bits, early)
        counts = _counts(term, statistics, indices, found)
        costs = sorted(
            (cost + count, bound, order)
            for (bound, (cost, order)), count in zip(found.items(), counts, strict=True)
        )
        beam = {bound: (cost, order) for cost, bound, order in costs[:BEAM_SETS]}
    ((_, order),) = beam.values()
    return order


def written_first(
    term: Term,
    statistics: Statistics,
    order: tuple[str, ...],
    kept: tuple[str, ...],
    write: float,
) -> tuple[str, ...]:
    """Return the order, or that with the loops of the result outside the others where this costs
    less.

    kept   the indices of the result as it stores them
    write  what an iteration costs more where they do not come first
    """
    if order[: len(kept)] == kept:
        return order
    other = (*kept, *(index for index in order if index not in kept))
    bits = {index: 1 << row for row, index in enumerate(order)}
    around = [*accumulate(bits[i] for i in order), *accumulate(bits[i] for i in other)]
    counts = _counts(term, statistics, order, around)
    mine, its = counts[: len(order)], counts[len(order) :]
    return other if sum(its) < sum(mine) + write * mine[-1] else order


def _longer(beam: Beam, bits: Mapping[str, int], early: Mapping[str, int]) -> Beam:
    """Return one loop more, in every way; of ways to the same set the cheapest."""
    found: Beam = {}
    for bound, (cost, order) in beam.items():
        for index, bit in bits.items():
            open_ = not bound & bit and not early.get(index, 0) & ~bound
            if open_ and cost < found.get(bound | bit, (inf, ()))[0]:
                found[bound | bit] = cost, (*order, index)
    return found


def _counts(
    term: Term, statistics: Statistics, indices: tuple[str, ...], found: Collection[int]
) -> list[float]:
    """Return the iterations over some sets."""
    rows = range(len(indices))
    has = np.array([[bound >> row & 1 for bound in found] for row in rows], np.bool_)
    sets = Sets(indices, has)
    share = independent(term.body, sets, lambda access: statistics.access_share(access, sets))
    counts: list[float] = (share * statistics.volumes(sets)).tolist()
    return counts
