"""A beam search for a first order of many loops, near which a better one is searched.

Loops are added one at a time to the few cheapest sets of loops. The cost is the number of
iterations of all loops, where the entries of operands are distributed evenly and independently:

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
"""Sets of equally many loops that are extended."""


Beam = dict[int, tuple[float, tuple[str, ...]]]
"""Sets of loops as numbers, a bit an index, with the cost of their best order, and that order."""


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
    early = {
        i: sum(bits[j] for j in prerequisites if j in bits) for i, prerequisites in after.items()
    }
    beam: Beam = {0: (0.0, ())}
    for _ in indices:
        candidates = _longer(beam, bits, early)
        counts = _counts(term, statistics, indices, candidates)
        costs = sorted(
            (cost + count, bound, order)
            for (bound, (cost, order)), count in zip(candidates.items(), counts, strict=True)
        )
        beam = {bound: (cost, order) for cost, bound, order in costs[:BEAM_SETS]}
    ((_, order),) = beam.values()
    return order


def target_first(
    term: Term,
    statistics: Statistics,
    order: tuple[str, ...],
    target: tuple[str, ...],
    write: float,
) -> tuple[str, ...]:
    """Return the order, or the order with the loops of the result outermost where this costs less.

    target  the indices of the result as it stores them
    write   the additional cost of an iteration where they do not come first
    """
    if order[: len(target)] == target:
        return order
    other = (*target, *(index for index in order if index not in target))
    bits = {index: 1 << row for row, index in enumerate(order)}
    prefixes = [*accumulate(bits[i] for i in order), *accumulate(bits[i] for i in other)]
    counts = _counts(term, statistics, order, prefixes)
    mine, its = counts[: len(order)], counts[len(order) :]
    return other if sum(its) < sum(mine) + write * mine[-1] else order


def _longer(beam: Beam, bits: Mapping[str, int], early: Mapping[str, int]) -> Beam:
    """Return the beam with one more loop, in every way; of orders of the same set the cheapest."""
    longer: Beam = {}
    for bound, (cost, order) in beam.items():
        for index, bit in bits.items():
            open_ = not bound & bit and not early.get(index, 0) & ~bound
            if open_ and cost < longer.get(bound | bit, (inf, ()))[0]:
                longer[bound | bit] = cost, (*order, index)
    return longer


def _counts(
    term: Term, statistics: Statistics, indices: tuple[str, ...], bounds: Collection[int]
) -> list[float]:
    """Return the numbers of iterations over sets of loops."""
    rows = range(len(indices))
    has = np.array([[bound >> row & 1 for bound in bounds] for row in rows], np.bool_)
    sets = Sets(indices, has)
    share = independent(term.body, sets, lambda access: statistics.access_share(access, sets))
    counts: list[float] = (share * statistics.volumes(sets)).tolist()
    return counts
