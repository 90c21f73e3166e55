"""Rows of operands that are looked up in a loop where others are walked, instead of merged.

    for i { for j of A[i,:] { for k of B[j,:] ∩ D[i,:] … } }
    → for i { w = D[i,:]; for j of A[i,:] { for k of B[j,:]: if k in w … } }

A merge goes through D's row again for each j. A row workspace is filled once for each i, which pays
where the loops between it and the merge, here that over j, have several iterations. (Workspaces
instead of merges: Kjolstad et al. 2019, Tensor Algebra Compilation with Workspaces, section 3.)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.cost.sets import Bits, Numbers
from taco_py.compiler.order.walk_counts import Walks
from taco_py.language.legal.absent import restricts
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access


@dataclass(frozen=True, slots=True)
class Lookup:
    """An access whose entries along one index may be looked up, in loops over sets of indices.

    row      of the index
    parents  its other indices, as a set
    cost     all rounds over each set, but for the rows that are written; infinite where other
             operands are not walked there, or loops over its other indices are not around
    written  what it costs to write a row in each round over each set
    least    the same over its other indices alone
    """

    access: Access
    row: int
    parents: int
    cost: Numbers
    written: Numbers
    least: float


@dataclass(frozen=True, slots=True)
class Meeting:
    """How a loop meets several operands, after some others.

    more    what it costs more than where rows are written as seldom as may be
    lookup  whose rows are looked up; None where they are merged
    cost    of all its rounds, and of writing the rows
    merged  the same where no row is looked up
    """

    more: float
    lookup: Lookup | None
    cost: float
    merged: float


def lookups(walks: Walks) -> Iterator[Lookup]:
    """What may be looked up in the loops of a term."""
    for row, index in enumerate(walks.sets.names):
        met, lengths = walks.lengths(row)
        if len(met) > 1 and all(restricts(walks.body, walks.accesses[k]) for k in met):
            for place, k in enumerate(met):
                if _may(walks, walks.accesses[k], index):
                    yield _lookup(walks, walks.accesses[k], row, lengths, place)


def _lookup(walks: Walks, access: Access, row: int, lengths: Numbers, place: int) -> Lookup:
    """Return rows of an access along an index, where several have these lengths, its own at a
    place."""
    index, size, machine = walks.sets.names[row], walks.sizes[row], walks.statistics.machine
    own = [other for other, name in enumerate(walks.sets.names) if name in access.indices]
    own.remove(row)
    around = (lengths > 0.0).all(axis=0) & _scattered(walks, index) & ~walks.sets.has[row]
    around &= walks.sets.has[own].all(axis=0)
    round = _round(np.delete(lengths, place, axis=0), lengths[place] / size, size, machine)
    cost = np.where(around, walks.counts * round, inf)
    written = machine.loops.row_lookup_entry_steps * walks.counts * np.maximum(lengths[place], 0.0)
    least = machine.loops.row_lookup_entry_steps * walks.entries(access, index)
    return Lookup(access, row, sum(1 << other for other in own), cost, written, least)


def _may(walks: Walks, access: Access, index: str) -> bool:
    """Tell whether rows along `index` can be looked up: of entries that come one by one, each
    coordinate once, in an array of the whole size."""
    form = walks.problem.type_of(access.tensor).format
    return (
        len(access.indices) > 1
        and len(set(access.indices)) == len(access.indices)
        and form.is_unique
        and not form.levels[-1].full
        and index not in walks.problem.vast
        and sum(other == access for other in accesses(walks.body)) == 1
    )


def _scattered(walks: Walks, index: str) -> Bits:
    """Where coordinates of `index` are not appended to the result in loops over each set."""
    form, target = walks.problem.result.format, walks.problem.assignment.target
    stored = zip(form.stored(target.indices), form.levels, strict=True)
    if all(level.full for name, level in stored if name == index):
        return np.ones(walks.sets.count, np.bool_)
    names = enumerate(walks.sets.names)
    summed = [row for row, name in names if name not in target.indices]
    found: Bits = np.logical_or.reduce(walks.sets.has[summed], axis=0)
    return found


def _round(others: Numbers, share: Numbers, size: float, machine: Machine) -> Numbers:
    """Return one round: each coordinate of the others is asked for.

    share  of the coordinates that are there
    """
    there = np.clip(share, 0.0, 1.0)
    rarer = np.minimum(there, 1.0 - there)
    each = machine.loops.row_lookup_steps + machine.loops.misprediction_steps * rarer
    if size > machine.loops.near_cache_bytes:
        each = each + machine.loops.line_steps
    if len(others) > 1:
        each = each + machine.loops.merge_steps
    found: Numbers = machine.loops.row_lookup_loop_steps + each * others.sum(axis=0)
    return found
