"""How many coordinates the loops of a term walk of its sparse accesses, alone and together.

A loop over k that merges B[j,k] and D[i,k] takes as many steps as both have coordinates there, in
each round: those of the rows that the outer loops visit. Where the distribution of the operands'
entries is known (`cost.joint`), long rows are visited more often than short ones.
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

NONE, LOCATED = -1.0, 0.0
"""Coordinates of a level that is not walked, and of a dense one in which coordinates of others are
located, with nothing below some of them."""


def may_leap(statistics: Statistics) -> bool:
    """Tell whether two sparse operands differ enough in nnz to gallop through one of them."""
    sizes = [pattern.nnz for pattern in statistics.patterns.values() if pattern.sparse]
    return len(sizes) > 1 and max(sizes) >= statistics.machine.loops.gallop_ratio * min(sizes)


def meet(accesses: Iterable[Access]) -> bool:
    """Tell whether any loop may have to co-iterate several accesses."""
    walked = [index for access in accesses for index in dict.fromkeys(access.indices)]
    return len(set(walked)) < len(walked)


@dataclass(slots=True)
class Walks:
    """The sparse `accesses` of a term's `body`, in loops over each of some sets of indices.

    sizes   of the indices, as the `sets` have them
    shares  for each access the share of coordinates over each set under which it stores something
    counts  the iterations over each set
    runs    for each access the rows of its indices, and for each of these how many coordinates it
            has inside loops over each set; or NONE, LOCATED
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
        for access in self.accesses:
            if self.statistics.stores_few_rows(access) and restricts(self.body, access):
                self._reduce_beside(access)

    def _reduce_beside(self, access: Access) -> None:
        """Reduce the runs of all other accesses beside one whose rows are mostly empty.

        A loop that needs both ends at once where a row of one is empty.
        """
        reached = self.statistics.access_share(access, self.sets, visited=False)
        full = np.minimum(1.0, reached / np.maximum(self.shares[access], 1e-300))
        for other, (rows, runs) in zip(self.accesses, self.runs, strict=True):
            if other != access:
                shared = [k for k, row in enumerate(rows) if self.sets.names[row] in access.indices]
                walked = runs[shared]
                runs[shared] = np.where(walked > 0.0, walked * full, walked)

    def rounds(self) -> Numbers:
        """Return the steps of one round of a loop that merges several sparse levels.

        0 where it walks one alone; a row for each index. Where all levels are needed and lengths
        differ much, the shortest gallops through the others.
        """
        steps, walkers = np.zeros(self.lattice.has.shape), np.zeros(self.lattice.has.shape, np.int8)
        if may_leap(self.statistics):
            return self._leaping()
        for rows, run in self.runs:
            steps[rows] += np.maximum(run, 0.0)
            walkers[rows] += run >= 0.0
        steps[walkers <= 1] = 0.0
        return steps

    def lengths(self, row: int) -> tuple[list[int], Numbers]:
        """Return which accesses have an index, and how many coordinates of it each has over each
        set."""
        operands = [k for k, (rows, _) in enumerate(self.runs) if row in rows]
        return operands, np.array([self.runs[k][1][self.runs[k][0].index(row)] for k in operands])

    def entries(self, access: Access, index: str) -> float:
        """Count the entries that loops over all other indices visit in an access's rows along
        one."""
        outer = One(frozenset(access.indices) - {index})
        full = One(frozenset(access.indices))
        rounds = self.statistics.iterations(self.body, outer.names)
        product = self._joint_product(access, index) or access
        outer_share, below = (float(self.statistics.share(product, some)) for some in (outer, full))
        return float(rounds * self.statistics.sizes[index] * below / max(outer_share, 1e-300))

    def _leaping(self) -> Numbers:
        """Return `rounds` for operands of very different lengths."""
        steps = np.zeros(self.lattice.has.shape)
        required = [restricts(self.body, access) for access in self.accesses]
        for row in range(len(self.sets.names)):
            operands, lengths = self.lengths(row)
            if len(operands) > 1:
                steps[row] = _merged(
                    lengths, [required[k] for k in operands], self.statistics.machine
                )
        return steps

    def _runs(self, access: Access) -> tuple[list[int], Numbers]:
        """Return the rows of an access's indices, and how many coordinates of each it has.

        These are numbers inside loops over each set; NONE where the loop counts through
        coordinates.
        """
        indices = tuple(dict.fromkeys(access.indices))
        rows = [self.sets.names.index(index) for index in indices]
        shares = np.array([self._shares_along(access, index) for index in indices])
        counts: Numbers = np.take_along_axis(shares, self.lattice.inside[rows], axis=1)
        counts *= self.sizes[rows][:, None] / np.maximum(shares, 1e-300)
        if self.problem.type_of(access.tensor).format.levels[0].full:
            counts[:, self.sets.code(indices) == 0] = NONE
        counts[(counts >= 0.0) & self._dense_in_copies(access, rows)] = LOCATED
        for row, count, usable in self._dense_as_stored(access):
            counts[row, usable] = np.minimum(counts[row, usable], count)
        return rows, counts

    def _dense_as_stored(self, access: Access) -> Iterator[tuple[int, float, Bits]]:
        """Yield the dense levels below the first, whose elements others' coordinates locate.

        Each is the row of its index among those of the access, what it counts as, and for which
        sets: as long as no sparse level comes before one above it, for a copy has more sparse
        levels. Without other operands the loop runs through all of them, which it counts in any
        case.
        """
        form = self.problem.type_of(access.tensor).format
        if all(not level.full for level in form.levels[1:]) or not restricts(self.body, access):
            return
        indices = tuple(dict.fromkeys(access.indices))
        code = self.sets.code(indices)
        stored = [1 << indices.index(index) for index in form.stored(access.indices)]
        usable = np.ones(self.sets.count, np.bool_)
        for depth, level in enumerate(form.levels):
            if not level.full:
                above = sum({*stored[:depth]})
                usable &= (code & stored[depth] == 0) | (~code & above == 0)
        for depth, level in enumerate(form.levels[1:], 1):
            if level.full:
                count = NONE if depth >= form.depth else LOCATED
                yield stored[depth].bit_length() - 1, count, usable

    def _shares_along(self, access: Access, index: str) -> Numbers:
        """Return the shares of the coordinates over each set at which an access has entries.

        Others that are not walked along `index` have entries there too: loops visit long rows more
        often.
        """
        product = self._joint_product(access, index)
        if product is None:
            return self.shares[access]
        shares = self.statistics.share(product, self.sets, self.shares.__getitem__)
        return shares * np.ones(self.sets.count)

    def _joint_product(self, access: Access, index: str) -> Expr | None:
        """Return an access times all others that are not walked along `index`.

        None where their joint distribution is unknown, or none is left out.
        """
        siblings = [a for a in self.accesses if a != access]
        outer = [a for a in siblings if index not in a.indices and restricts(self.body, a)]
        if len(outer) == len(siblings) or not self.statistics.joint(self.body).pairs:
            return None
        product: Expr = access
        for other in outer:
            product = Call(MUL, (product, other))
        return product

    def _dense_in_copies(self, access: Access, rows: Sequence[int]) -> Bits:
        """Tell for which sets a level of an access is dense in a copy, where it is located.

        Such levels lie between the first and the last, and others' coordinates lead to them at
        least as often as they have positions. (`plan.make_kernel` makes such copies.) A row for
        each index of the access.
        """
        dense = np.zeros((len(rows), self.sets.count), np.bool_)
        leaders = [a for a in self.accesses if a != access and restricts(self.body, a)]
        if len(rows) < 3 or not leaders:
            return dense
        visits = self.statistics.volumes(self.sets) * np.prod(
            [self.shares[a] for a in leaders], axis=0
        )
        indices = tuple(dict.fromkeys(access.indices))
        code, places = self.sets.code(indices), {index: 1 << k for k, index in enumerate(indices)}
        form = self.problem.type_of(access.tensor).format
        stored = [places[index] for index in form.stored(access.indices)]
        below = [
            (bit, sum({*stored[:k]})) for k, bit in enumerate(stored) if not form.levels[k].full
        ]
        positions = np.where(self.lattice.has[rows], self.sizes[rows][:, None], 1.0).prod(axis=0)
        for k, row in enumerate(rows):
            if any(indices[k] in a.indices for a in leaders):
                inside = self.lattice.inside[row]
                bound = code[inside]
                middle = (code != 0) & (bound != (1 << len(indices)) - 1) & ~self.lattice.has[row]
                copied = np.any([(bound & i > 0) & (~bound & above > 0) for i, above in below], 0)
                dense[k] = middle & copied & (positions[inside] <= visits[inside])
        return dense


def _merged(runs: Numbers, required: Sequence[bool], machine: Machine) -> Numbers:
    """Return the steps of merging runs of coordinates; a row for each operand.

    required  without which the product is zero: all that are walked, where they leap
    """
    walked = runs > 0.0
    lengths = np.where(walked, runs, 0.0)
    shared = (runs >= 0.0).sum(axis=0) > 1
    steps: Numbers = np.where(shared, lengths.sum(axis=0), 0.0)
    first = np.maximum(1.0, np.where(walked, runs, inf).min(axis=0))
    extra = walked[~np.array(required, np.bool_)].any(axis=0)
    leaps = (
        (lengths.max(axis=0) >= machine.loops.gallop_ratio * first)
        & (walked.sum(axis=0) > 1)
        & ~extra
    )
    gallop_steps = np.where(
        walked, np.maximum(lengths / first, 1.0) ** machine.loops.gallop_exponent, 0.0
    )
    least = np.minimum(
        steps, machine.loops.gallop_merge_steps * first * (gallop_steps.sum(axis=0) - 1.0)
    )
    steps = np.where(leaps, least, steps)
    return steps
