"""What loops in some order are expected to cost, added up from the outermost to the innermost.

    cost = Σ iterations of each loop + copies of operands that are stored the other way round
         + lines fetched from beyond the near caches (`locality`)
         + innermost iterations · (a result met out of order + strides that are not one
                                   + dense arrays that are not run through as they are stored)

A loop's iterations depend on which loops are around it, not on their order, so that most of this is
known of sets of indices. Sets are numbers, a bit an index.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, pow, prod

import numpy as np

from taco_py.autoschedule.locality import Locality, Touched
from taco_py.concrete.concretize import copies_pattern, restricts, result_order
from taco_py.concrete.nodes import Forall, Statement, Where
from taco_py.concrete.terms import Term
from taco_py.cost.estimate import Pattern, Statistics
from taco_py.cost.machine import (
    CONVERSION,
    FOLDING,
    HASH,
    LEAP,
    LEAPS,
    MERGE,
    REACH,
    ROW,
    SCATTER,
    SORTING,
    STRAY,
    VECTOR,
)
from taco_py.iteration.graph import sparse_levels
from taco_py.iteration.lattice import build_lattice
from taco_py.iteration.region import Regions
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.nodes import Access, Expr, Reduce
from taco_py.notation.tree import walk
from taco_py.problem import Problem

FEW = 10
"""Loops up to which the least that those inside others cost is found for every set of loops."""


State = tuple[int, int, int, float | None]


def copying(pattern: Pattern) -> float:
    """What a copy of an operand in another order costs."""
    sorts = pattern.format.order > 2 or pattern.format.is_coo
    return (SORTING if sorts else CONVERSION) * pattern.nnz


def may_leap(statistics: Statistics) -> bool:
    """Whether two sparse operands differ enough in their numbers of entries to leap through one."""
    sizes = [pattern.nnz for pattern in statistics.patterns.values() if pattern.sparse]
    return len(sizes) > 1 and max(sizes) >= LEAP * min(sizes)


@dataclass(frozen=True, slots=True)
class Outside:
    """The loops so far, outermost first, and what they have made necessary.

    copied  the accesses whose operands must be copied, a bit each
    strayed  the dense arrays that these loops do not run through as they are stored, a bit each
    write   what an innermost iteration costs more for the result; None while its indices come first
            and in order
    """

    order: tuple[str, ...]
    bound: int
    cost: float
    copied: int
    strayed: int
    write: float | None

    @property
    def state(self) -> State:
        """What the cost of the loops inside depends on."""
        return self.bound, self.copied, self.strayed, self.write


def asked(problem: Problem, term: Term, statistics: Statistics) -> Hashable:
    """All that the costs of a term's loops depend on."""
    found = dict.fromkeys(accesses(term.body))
    types = tuple(problem.type_of(access.tensor) for access in found)
    target = problem.assignment.target
    known = statistics.key(target, *found)
    return term.body, target.indices, types, problem.result, copies_pattern(problem), known


class LoopCosts:
    """The costs of the loops of one term."""

    def __init__(self, problem: Problem, term: Term, statistics: Statistics) -> None:
        self.problem = problem
        self.term = term
        self.statistics = statistics
        self.result = result_order(problem)
        self.accesses = tuple(dict.fromkeys(accesses(term.body)))
        inside = dict.fromkeys(i for a in self.accesses for i in a.indices)
        self.indices = tuple(dict.fromkeys((*self.result, *inside)))
        self.bits = {index: 1 << place for place, index in enumerate(self.indices)}
        self.every = (1 << len(self.indices)) - 1
        self.after = {i: self.bits_of(needed) for i, needed in _inner_sums(term.body).items()}
        self.sparse_result = not problem.result.format.is_dense
        self.masks = [self.bits_of(a.indices) for a in self.accesses]
        self.above = [self._above(a) for a in self.accesses]
        self.below = self._below()
        self.copies = [copying(statistics.patterns[a.tensor]) for a in self.accesses]
        self.folded = [self._folded(a) for a in self.accesses]
        self.walked = {i: self._walked(i) for i in self.indices}
        self.reads = {i: self._read_cost(i) for i in self.indices}
        self.used = self.bits_of(frozenset(inside))
        self.sizes = [(bit, statistics.sizes[index]) for index, bit in self.bits.items()]
        self.shares: dict[int, float] = {}
        self.counts: dict[int, float] = {0: 1.0}
        self.needed = {k for k, a in enumerate(self.accesses) if restricts(term.body, a)}
        self.leap = may_leap(statistics)
        self.locality = Locality(tuple(self._touched()), self.every, self.count)
        self.rounds: dict[tuple[int, str, int], float] = {}
        self.steps: dict[tuple[int, str], float] = {}
        self.least: dict[int, float] = {self.every: 0.0}

    def start(self) -> Outside:
        """No loop yet, with the copies that every order needs."""
        return Outside((), 0, sum(self.folded), 0, 0, None)

    def open(self, bound: int) -> list[str]:
        """The indices whose loop may come next."""
        after = self.after
        return [
            index
            for index, bit in self.bits.items()
            if not bound & bit and (not after or not after.get(index, 0) & ~bound)
        ]

    def count(self, bound: int) -> float:
        """The iterations over a set of indices, in any order."""
        if bound not in self.counts:
            used = bound & self.used
            if used not in self.shares:
                inside = frozenset([i for i, bit in self.bits.items() if used & bit])
                self.shares[used] = self.statistics.fraction(self.term.body, inside)
            sizes = [size for bit, size in self.sizes if bound & bit]
            self.counts[bound] = prod(sizes, start=self.shares[used])
        return self.counts[bound]

    def step(self, bound: int, index: str) -> float:
        """What the loop over `index` inside loops over `bound` costs, without what it entails.

        The innermost loop counts at its best, and what it costs where strides are not one.
        """
        key = (bound, index)
        if key not in self.steps:
            whole = bound | self.bits[index]
            count = cost = self.count(whole)
            if whole == self.every:
                cost *= VECTOR
            if self.walked[index]:
                cost = max(cost, MERGE * self.count(bound) * self._round(bound, index))
            if whole == self.every:
                cost += count * self.reads[index]
            self.steps[key] = cost + self.locality.fetching(bound, self.bits[index])
        return self.steps[key]

    def nest(self, bound: int, inner: Sequence[str]) -> float:
        """What loops over `inner`, outermost first, cost inside loops over `bound`."""
        cost = 0.0
        for index in inner:
            cost += self.step(bound, index)
            bound |= self.bits[index]
        return cost

    def fused(self, statement: Statement, order: Sequence[str]) -> float:
        """What loops cost whose temporaries are made inside them, with what they make necessary.

        order  all of them, those of each maker and its reader merged
        """
        outside = self.start()
        for index in order:
            outside = self.inside(outside, index)
        copied = sum(
            copy if outside.copied >> place & 1 else folded
            for place, (copy, folded) in enumerate(zip(self.copies, self.folded, strict=True))
        )
        rounds, innermost = self._rounds_of(statement, 0)
        return copied + rounds + (outside.write or 0.0) * self.count(innermost)

    def _rounds_of(self, statement: Statement, bound: int) -> tuple[float, int]:
        """What the loops of a statement cost, and those around its assignment to the result."""
        match statement:
            case Forall(index, body):
                cost, innermost = self._rounds_of(body, bound | self.bits[index])
                return self.step(bound, index) + cost, innermost
            case Where(workspace, consumer, producer):
                made, filled = self._rounds_of(producer, bound)
                used, innermost = self._rounds_of(consumer, bound)
                kept = ROW if workspace.indices else 0.0
                return made + kept * self.count(filled) + used, innermost
            case _:
                return 0.0, bound

    def left(self, bound: int) -> float:
        """No more than all loops inside those over `bound` cost; the least without what they
        entail where there are few loops."""
        if bound not in self.least:
            if len(self.indices) > FEW:
                return VECTOR * self.count(self.every)
            found = inf
            for index in self.open(bound):
                whole = bound | self.bits[index]
                inside = self.least[whole] if whole in self.least else self.left(whole)
                found = min(found, self.step(bound, index) + inside)
            self.least[bound] = found
        return self.least[bound]

    def inside(self, outside: Outside, index: str) -> Outside:
        """One loop more."""
        bit = self.bits[index]
        bound = outside.bound | bit
        copied = outside.copied
        cost = outside.cost + self.step(outside.bound, index)
        for place, above in enumerate(self.above):
            if above.get(bit, 0) & ~bound and not copied >> place & 1:
                copied |= 1 << place
                cost += self.copies[place] - self.folded[place]
        write = outside.write
        if write is None and not self._goes_on(outside, index):
            rest = tuple(i for i in self.result if not self.bits[i] & outside.bound)
            write = self._write_cost(rest)
            cost += self.count(self.every) * write
        strayed = outside.strayed if bound == self.every else self._strayed(outside, bit)
        cost += STRAY * (strayed.bit_count() - outside.strayed.bit_count()) * self.count(self.every)
        return Outside((*outside.order, index), bound, cost, copied, strayed, write)

    def _folded(self, access: Access) -> float:
        """What a copy costs that an access needs in any order; 0 where it needs none."""
        needed = repeats_matter(self.problem, self.term, access)
        return FOLDING * self.statistics.patterns[access.tensor].nnz if needed else 0.0

    def _strayed(self, outside: Outside, bit: int) -> int:
        """The arrays that are not run through as they are stored with this loop, not innermost."""
        found = outside.strayed
        for place, below in enumerate(self.below):
            if below.get(bit, 0) & outside.bound:
                found |= 1 << place
        return found

    # ------------------------------------------------------------ operands

    def bits_of(self, names: Iterable[str]) -> int:
        """A set of indices as a number."""
        return sum(self.bits[index] for index in set(names).intersection(self.bits))

    def _touched(self) -> Iterable[Touched]:
        """The arrays of the operands, and of a dense result, which is read and written."""
        target = self.problem.assignment.target
        for access in (*self.accesses, target):
            type = self.problem.type_of(access.tensor)
            indices = [access.indices[mode] for mode in type.format.mode_order]
            stored = tuple(self.bits[index] for index in indices)
            size = np.dtype(type.dtype).itemsize
            if not type.format.is_dense:
                if access != target:
                    yield Touched(stored, size + np.dtype(type.index_dtype).itemsize, ())
                continue
            sizes = tuple(float(self.statistics.sizes[index]) for index in indices)
            yield Touched(stored, size, sizes, 2 if access == target else 1)

    def _above(self, access: Access) -> dict[int, int]:
        """For each index of a sparse level the indices of the levels above it."""
        form = self.problem.type_of(access.tensor).format
        found: dict[int, int] = {}
        stored = [self.bits[access.indices[mode]] for mode in form.mode_order]
        for place, level in enumerate(form.levels):
            if not level.full:
                bit = stored[place]
                found[bit] = found.get(bit, 0) | (sum(set(stored[:place])) & ~bit)
        return found

    def _below(self) -> list[dict[int, int]]:
        """For each array of a dense kernel and each of its indices, those stored inside it."""
        everywhere = (*self.accesses, self.problem.assignment.target)
        forms = [self.problem.type_of(a.tensor).format for a in everywhere]
        if not all(form.is_dense for form in forms):
            return []
        found = []
        for access, form in zip(everywhere, forms, strict=True):
            stored = [self.bits[access.indices[mode]] for mode in form.mode_order]
            found.append({bit: sum(stored[place + 1 :]) for place, bit in enumerate(stored)})
        return found

    def _walked(self, index: str) -> list[int]:
        """The accesses that a loop over `index` may have to walk together."""
        found = []
        for place, access in enumerate(self.accesses):
            form = self.problem.type_of(access.tensor).format
            if index in access.indices and not form.is_dense:
                found.append(place)
        return found if len(found) > 1 else []

    def _round(self, bound: int, index: str) -> float:
        """The steps one round of a loop takes that walks several sparse levels together.

        Where all are needed and lengths differ much, the shortest leaps through the others.
        """
        walked = [place for place in self.walked[index] if self._iterates(place, bound)]
        if len(walked) < 2:
            return 0.0
        runs = sorted(self._run(place, bound & self.masks[place], index) for place in walked)
        leaps = self.leap and self.needed.issuperset(walked)
        if not leaps or runs[-1] < LEAP * max(1.0, runs[0]):
            return sum(runs)
        first = max(1.0, runs[0])
        return min(
            sum(runs), sum(LEAPS * first * pow(max(r / first, 1.0), REACH) for r in runs[1:])
        )

    def _run(self, place: int, bound: int, index: str) -> float:
        """How many coordinates of `index` an access has where its indices `bound` are bound."""
        key = (place, index, bound)
        if key not in self.rounds:
            known, access = self.statistics, self.accesses[place]
            before = frozenset(i for i in access.indices if self.bits[i] & bound)
            share = known.access_fraction(access, before | {index})
            outer = max(known.access_fraction(access, before), 1e-300)
            self.rounds[key] = known.sizes[index] * share / outer
        return self.rounds[key]

    def _iterates(self, place: int, bound: int) -> bool:
        form = self.problem.type_of(self.accesses[place].tensor).format
        return bool(bound & self.masks[place]) or not form.levels[0].full

    def _read_cost(self, last: str) -> float:
        """What an iteration costs more when the innermost loop does not run along unit strides."""
        everywhere = [*self.accesses]
        if last in self.result:
            everywhere.append(self.problem.assignment.target)
        unit = all(self._unit(a, last) for a in everywhere if last in a.indices)
        return 0.0 if unit else 1.0 - VECTOR

    def _unit(self, access: Access, index: str) -> bool:
        kind = self.problem.type_of(access.tensor)
        form = kind.format
        stored_last = access.indices[form.mode_order[-1]] == index
        return form.levels[-1].full and stored_last and (not form.is_dense or kind.unit_stride)

    # ------------------------------------------------------------ the result

    def _goes_on(self, outside: Outside, index: str) -> bool:
        """Whether the result's indices still come first and, if it is sparse, as it stores them."""
        kept = len(outside.order)
        if kept >= len(self.result):
            return True  # none is left to come late
        return index == self.result[kept] if self.sparse_result else index in self.result

    def _write_cost(self, rest: tuple[str, ...]) -> float:
        """What an iteration costs more where these indices of the result come late."""
        levels = self.problem.result.format.levels
        outer = 1 if len(rest) == len(levels) > 1 else 0  # an array is made and its rows gathered
        if all(level.full for level in levels[len(levels) - len(rest) + outer :]):
            return SCATTER - 1.0
        return ROW if len(rest) == 1 else HASH


def _inner_sums(expr: Expr) -> dict[str, frozenset[str]]:
    """For each index of a sum inside the expression: the indices that must be bound before it."""
    inner: dict[str, frozenset[str]] = {}
    for node, _ in walk(expr):
        if isinstance(node, Reduce):
            inner[node.index] = inner.get(node.index, frozenset()) | set(free_indices(node))
    return inner


def repeats_matter(problem: Problem, term: Term, access: Access) -> bool:
    """Whether levels of `access` that may repeat coordinates are merged, or appended from."""
    form = problem.type_of(access.tensor).format
    if all(level.unique for level in form.levels):
        return False
    if not problem.result.format.is_dense:
        return not copies_pattern(problem)
    levels = {a: sparse_levels(problem, a) for a in accesses(term.body)}
    regions = Regions(levels, frozenset())
    for index in access.indices:
        lattice = build_lattice(regions.expression(term.body, index))
        if len(lattice.iterators) > 1 or lattice.full:
            return True
    return False
