"""Rows of operands that are looked up in a loop over the entries of others, instead of merged.

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

    row        of the index
    parents    the other indices of the access, as a set
    cost       of all rounds over each set, without filling the rows; infinite where no other
               operand is walked there, or no loops over its other indices are outside
    fill_cost  of filling a row in each round over each set
    least      the fill cost over its other indices alone
    """

    access: Access
    row: int
    parents: int
    cost: Numbers
    fill_cost: Numbers
    least: float


@dataclass(frozen=True, slots=True)
class Meeting:
    """The co-iteration of several operands by a loop, inside of others.

    more    the additional cost over rows that are filled as seldom as possible
    lookup  the access whose rows are looked up; None where all are merged
    cost    of all its rounds, and of filling the rows
    merged  the cost where no row is looked up
    """

    more: float
    lookup: Lookup | None
    cost: float
    merged: float


def lookups(walks: Walks) -> Iterator[Lookup]:
    """Yield the accesses whose rows may be looked up in the loops of a term."""
    for row, index in enumerate(walks.sets.names):
        operands, lengths = walks.lengths(row)
        if len(operands) > 1 and all(restricts(walks.body, walks.accesses[k]) for k in operands):
            for place, k in enumerate(operands):
                if _may(walks, walks.accesses[k], index):
                    yield _lookup(walks, walks.accesses[k], row, lengths, place)


def _lookup(walks: Walks, access: Access, row: int, lengths: Numbers, place: int) -> Lookup:
    """Return the look-up of rows of an access along an index.

    lengths  of the segments of all operands that are walked there
    place    of the access among these operands
    """
    index, size, machine = walks.sets.names[row], walks.sizes[row], walks.statistics.machine
    rows = [other for other, name in enumerate(walks.sets.names) if name in access.indices]
    rows.remove(row)
    possible = (lengths > 0.0).all(axis=0) & _scattered(walks, index) & ~walks.sets.has[row]
    possible &= walks.sets.has[rows].all(axis=0)
    round = _round(np.delete(lengths, place, axis=0), lengths[place] / size, size, machine)
    cost = np.where(possible, walks.counts * round, inf)
    fill_cost = (
        machine.loops.row_lookup_entry_steps * walks.counts * np.maximum(lengths[place], 0.0)
    )
    least = machine.loops.row_lookup_entry_steps * walks.entries(access, index)
    return Lookup(access, row, sum(1 << other for other in rows), cost, fill_cost, least)


def _may(walks: Walks, access: Access, index: str) -> bool:
    """Tell whether rows of an access along `index` can be looked up.

    Its entries come one by one, each coordinate once, and fit an array of the size of the
    dimension.
    """
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
    """Tell for each set of outer loops whether coordinates of `index` are not appended to the
    result."""
    form, target = walks.problem.result.format, walks.problem.assignment.target
    stored = zip(form.stored(target.indices), form.levels, strict=True)
    if all(level.full for name, level in stored if name == index):
        return np.ones(walks.sets.count, np.bool_)
    names = enumerate(walks.sets.names)
    summed = [row for row, name in names if name not in target.indices]
    scattered: Bits = np.logical_or.reduce(walks.sets.has[summed], axis=0)
    return scattered


def _round(lengths: Numbers, share: Numbers, size: float, machine: Machine) -> Numbers:
    """Return the cost of one round, in which each coordinate of the other operands is looked up.

    share  of the coordinates that are stored
    """
    stored = np.clip(share, 0.0, 1.0)
    rarer = np.minimum(stored, 1.0 - stored)
    entry_steps = machine.loops.row_lookup_steps + machine.loops.misprediction_steps * rarer
    if size > machine.loops.near_cache_bytes:
        entry_steps = entry_steps + machine.loops.line_steps
    if len(lengths) > 1:
        entry_steps = entry_steps + machine.loops.merge_steps
    steps: Numbers = machine.loops.row_lookup_loop_steps + entry_steps * lengths.sum(axis=0)
    return steps
