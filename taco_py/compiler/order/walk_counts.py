"""How the loops of a term walk its sparse accesses: how many coordinates of each, and together.

A loop over k that walks B[j,k] and D[i,k] together takes as many steps as both have coordinates
there, in each round: those of the rows that the loops around it come to. Where that is known of the
operands (`cost.joint`), these are rather their long rows than their short ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from math import inf

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.cost.sets import Bits, Lattice, Numbers, One, Sets
from taco_py.language.legal.absent import restricts
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.operators import MUL
from taco_py.language.problem import Problem

NONE, ASKED = -1.0, 0.0
"""Coordinates of a level that is not walked, and of one that is dense and asked for others' that
may have none below it."""


def may_leap(statistics: Statistics) -> bool:
    """Tell whether two sparse operands differ enough in their numbers of entries to leap through
    one."""
    sizes = [pattern.nnz for pattern in statistics.patterns.values() if pattern.sparse]
    return len(sizes) > 1 and max(sizes) >= statistics.machine.loops.gallop_ratio * min(sizes)


def meet(accesses: Iterable[Access]) -> bool:
    """Tell whether any loop may have to walk several accesses together."""
    walked = [index for access in accesses for index in dict.fromkeys(access.indices)]
    return len(set(walked)) < len(walked)


@dataclass(slots=True)
class Walks:
    """The sparse `accesses` of a term's `body`, in loops over each of some sets of indices.

    sizes   of the indices, as the `sets` have them
    shares  for each access the share of coordinates over each set under which it stores something
    counts  the iterations over each set
    runs    for each access the rows of its indices, and for each of these how many coordinates it
            has inside loops over each set; or NONE, ASKED
    """

    problem: Problem
    body: Expr
    accesses: tuple[Access, ...]
    statistics: Statistics
    lattice: Lattice
    sets: Sets
    sizes: Numbers
    shares: Mapping[Access, Numbers]
    counts: Numbers
    runs: list[tuple[list[int], Numbers]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs = [self._runs(access) for access in self.accesses]

    def rounds(self) -> Numbers:
        """Return the steps one round of a loop takes that walks several sparse levels together,
        none where it walks one alone; a row for each index.

        Where all are needed and lengths differ much, the shortest leaps through the others.
        """
        found, each = np.zeros(self.lattice.has.shape), np.zeros(self.lattice.has.shape, np.int8)
        if may_leap(self.statistics):
            return self._leaping()
        for rows, run in self.runs:
            found[rows] += np.maximum(run, 0.0)
            each[rows] += run >= 0.0
        found[each <= 1] = 0.0
        return found

    def lengths(self, row: int) -> tuple[list[int], Numbers]:
        """Which accesses have an index, and how many coordinates of it each has over each set."""
        met = [k for k, (rows, _) in enumerate(self.runs) if row in rows]
        return met, np.array([self.runs[k][1][self.runs[k][0].index(row)] for k in met])

    def entries(self, access: Access, index: str) -> float:
        """Count how many entries loops over all others of its indices come to in its rows along
        one."""
        around = One(frozenset(access.indices) - {index})
        whole = One(frozenset(access.indices))
        rounds = self.statistics.iterations(self.body, around.names)
        product = self._along(access, index) or access
        there, below = (float(self.statistics.share(product, some)) for some in (around, whole))
        return float(rounds * self.statistics.sizes[index] * below / max(there, 1e-300))

    def _leaping(self) -> Numbers:
        """Return `rounds` where lengths differ much."""
        found = np.zeros(self.lattice.has.shape)
        needed = [restricts(self.body, access) for access in self.accesses]
        for row in range(len(self.sets.names)):
            met, lengths = self.lengths(row)
            if len(met) > 1:
                found[row] = _merged(lengths, [needed[k] for k in met], self.statistics.machine)
        return found

    def _runs(self, access: Access) -> tuple[list[int], Numbers]:
        """Return the rows of an access's indices, and how many coordinates of each it has inside
        loops over each set; NONE where it counts through its coordinates rather than walk them."""
        own = tuple(dict.fromkeys(access.indices))
        rows = [self.sets.names.index(index) for index in own]
        shares = np.array([self._shares_along(access, index) for index in own])
        found: Numbers = np.take_along_axis(shares, self.lattice.inside[rows], axis=1)
        found *= self.sizes[rows][:, None] / np.maximum(shares, 1e-300)
        if self.problem.type_of(access.tensor).format.levels[0].full:
            found[:, self.sets.code(own) == 0] = NONE
        found[(found >= 0.0) & self._dense_in_copies(access, rows)] = ASKED
        for row, asked, kept in self._dense_as_stored(access):
            found[row, kept] = np.minimum(found[row, kept], asked)
        return rows, found

    def _dense_as_stored(self, access: Access) -> Iterator[tuple[int, float, Bits]]:
        """Of each dense level below the first the place of its index among the access's own, what
        it counts as, and where: as long as no sparse level has come before one above it, for a
        copy has lists.

        Its elements are at hand where others' coordinates lead to them. Without others the loop
        runs through all of them, which is what it counts in any case.
        """
        form = self.problem.type_of(access.tensor).format
        if all(not level.full for level in form.levels[1:]) or not restricts(self.body, access):
            return
        own = tuple(dict.fromkeys(access.indices))
        code = self.sets.code(own)
        stored = [1 << own.index(index) for index in form.stored(access.indices)]
        kept = np.ones(self.sets.count, np.bool_)
        for depth, level in enumerate(form.levels):
            if not level.full:
                above = sum({*stored[:depth]})
                kept &= (code & stored[depth] == 0) | (~code & above == 0)
        for depth, level in enumerate(form.levels[1:], 1):
            if level.full:
                asked = NONE if depth >= form.depth else ASKED
                yield stored[depth].bit_length() - 1, asked, kept

    def _shares_along(self, access: Access, index: str) -> Numbers:
        """Return the shares of the coordinates over each set that an access has, where all others
        have theirs that are not walked along `index`: loops come to its long rows more often."""
        product = self._along(access, index)
        if product is None:
            return self.shares[access]
        found = self.statistics.share(product, self.sets, self.shares.__getitem__)
        return found * np.ones(self.sets.count)

    def _along(self, access: Access, index: str) -> Expr | None:
        """Return an access times all others that are not walked along `index`; None where nothing
        is known of them together, or none is left out."""
        others = [a for a in self.accesses if a != access]
        around = [a for a in others if index not in a.indices and restricts(self.body, a)]
        if len(around) == len(others) or not self.statistics.joint(self.body).pairs:
            return None
        product: Expr = access
        for other in around:
            product = Call(MUL, (product, other))
        return product

    def _dense_in_copies(self, access: Access, rows: Sequence[int]) -> Bits:
        """Where a level of an access is dense, for a copy is read in which it is rather looked up
        than merged: between the first level and the last, and led by others to no less coordinates
        than there are. (`plan.make_kernel` makes copies so.)

        A row for each of its indices, as they come.
        """
        found = np.zeros((len(rows), self.sets.count), np.bool_)
        leaders = [a for a in self.accesses if a != access and restricts(self.body, a)]
        if len(rows) < 3 or not leaders:
            return found
        led = self.statistics.volumes(self.sets) * np.prod(
            [self.shares[a] for a in leaders], axis=0
        )
        own = tuple(dict.fromkeys(access.indices))
        code, places = self.sets.code(own), {index: 1 << k for k, index in enumerate(own)}
        form = self.problem.type_of(access.tensor).format
        stored = [places[index] for index in form.stored(access.indices)]
        below = [
            (bit, sum({*stored[:k]})) for k, bit in enumerate(stored) if not form.levels[k].full
        ]
        positions = np.where(self.lattice.has[rows], self.sizes[rows][:, None], 1.0).prod(axis=0)
        for k, row in enumerate(rows):
            if any(own[k] in a.indices for a in leaders):
                inside = self.lattice.inside[row]
                bound = code[inside]
                middle = (code != 0) & (bound != (1 << len(own)) - 1) & ~self.lattice.has[row]
                copied = np.any([(bound & i > 0) & (~bound & above > 0) for i, above in below], 0)
                found[k] = middle & copied & (positions[inside] <= led[inside])
        return found


def _merged(runs: Numbers, needed: Sequence[bool], machine: Machine) -> Numbers:
    """Return the steps of walking runs of coordinates together; a row for each operand.

    needed  without which the product is zero: all that are walked, where they leap
    """
    walked = runs > 0.0
    lengths = np.where(walked, runs, 0.0)
    met = (runs >= 0.0).sum(axis=0) > 1
    found: Numbers = np.where(met, lengths.sum(axis=0), 0.0)
    first = np.maximum(1.0, np.where(walked, runs, inf).min(axis=0))
    others = walked[~np.array(needed, np.bool_)].any(axis=0)
    leaps = (
        (lengths.max(axis=0) >= machine.loops.gallop_ratio * first)
        & (walked.sum(axis=0) > 1)
        & ~others
    )
    each = np.where(walked, np.maximum(lengths / first, 1.0) ** machine.loops.gallop_exponent, 0.0)
    least = np.minimum(found, machine.loops.gallop_merge_steps * first * (each.sum(axis=0) - 1.0))
    found = np.where(leaps, least, found)
    return found
