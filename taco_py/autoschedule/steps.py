"""What each loop of a term costs inside others, whatever their order.

A loop's iterations depend on which loops are around it, not on their order, so that most of what an
order costs is known of sets of indices. Sets are numbers, a bit an index. What is known here does
not depend on how a sparse result is stored, either: orders for results in several formats are
chosen by the same `Steps`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import inf, pow, prod

import numpy as np

from taco_py.autoschedule.locality import Locality, Touched
from taco_py.concrete.concretize import restricts
from taco_py.concrete.terms import Term
from taco_py.cost.estimate import Statistics
from taco_py.cost.machine import LEAP, LEAPS, MERGE, REACH, VECTOR
from taco_py.cost.shares import bits_of
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.nodes import Access, Expr, Reduce
from taco_py.notation.tree import walk
from taco_py.problem import Problem

FEW = 10
"""Loops up to which the least that those inside others cost is found for every set of loops."""


def may_leap(statistics: Statistics) -> bool:
    """Whether two sparse operands differ enough in their numbers of entries to leap through one."""
    sizes = [pattern.nnz for pattern in statistics.patterns.values() if pattern.sparse]
    return len(sizes) > 1 and max(sizes) >= LEAP * min(sizes)


def asked_of_steps(problem: Problem, term: Term, statistics: Statistics) -> Hashable:
    """All that the steps of a term's loops depend on."""
    found = dict.fromkeys(accesses(term.body))
    types = tuple(problem.type_of(access.tensor) for access in found)
    target = problem.assignment.target
    known = statistics.key(target, *found)
    result = problem.result
    stored = result if result.format.is_dense else _runs_along(problem, target)
    return Steps, term.body, target.indices, types, stored, known


def _runs_along(problem: Problem, access: Access) -> str | None:
    """The index along which the elements of an access are neighbours in memory, if there is one."""
    kind = problem.type_of(access.tensor)
    form = kind.format
    if not form.levels or not form.levels[-1].full or (form.is_dense and not kind.unit_stride):
        return None
    return access.indices[form.mode_order[-1]]


class Steps:
    """The costs of loops over each index inside loops over a set of others."""

    def __init__(self, problem: Problem, term: Term, statistics: Statistics) -> None:
        self.problem = problem
        self.term = term
        self.statistics = statistics
        self.accesses = tuple(dict.fromkeys(accesses(term.body)))
        inside = dict.fromkeys(i for a in self.accesses for i in a.indices)
        self.indices = tuple(dict.fromkeys((*problem.assignment.target.indices, *inside)))
        self.bits = {index: statistics.bits[index] for index in self.indices}
        self.every = self.bits_of(self.indices)
        self.after = {i: self.bits_of(needed) for i, needed in _inner_sums(term.body).items()}
        self.masks = [self.bits_of(a.indices) for a in self.accesses]
        self.rooted = [self._rooted(a) for a in self.accesses]
        self.walked = {i: self._walked(i) for i in self.indices}
        self.reads = {i: self._read_cost(i) for i in self.indices}
        self.used = self.bits_of(inside)
        self.sizes = [(bit, statistics.sizes[index]) for index, bit in self.bits.items()]
        self.share = statistics.share(term.body)
        self.shares = [statistics.access_share(a) for a in self.accesses]
        self.counts: dict[int, float] = {0: 1.0}
        self.needed = {k for k, a in enumerate(self.accesses) if restricts(term.body, a)}
        self.leap = may_leap(statistics)
        self.locality = Locality(tuple(self._touched()), self.every, self.count)
        self.known: dict[tuple[int, str], float] = {}
        self.least: dict[int, float] = {self.every: 0.0}

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
        found = self.counts.get(bound)
        if found is None:
            share = self.share(bound & self.used)
            found = prod([size for bit, size in self.sizes if bound & bit], start=share)
            self.counts[bound] = found
        return found

    def step(self, bound: int, index: str) -> float:
        """What the loop over `index` inside loops over `bound` costs, without what it entails.

        The innermost loop counts at its best, and what it costs where strides are not one.
        """
        key = (bound, index)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._step(bound, index)
        return found

    def _step(self, bound: int, index: str) -> float:
        bit = self.bits[index]
        whole = bound | bit
        count = cost = self.count(whole)
        if whole == self.every:
            cost *= VECTOR
        if self.walked[index]:
            cost = max(cost, MERGE * self.count(bound) * self._round(bound, index))
        if whole == self.every:
            cost += count * self.reads[index]
        return cost if self.locality.near else cost + self.locality.fetching(bound, bit)

    def nest(self, bound: int, inner: Sequence[str]) -> float:
        """What loops over `inner`, outermost first, cost inside loops over `bound`."""
        cost = 0.0
        for index in inner:
            cost += self.step(bound, index)
            bound |= self.bits[index]
        return cost

    def left(self, bound: int) -> float:
        """No more than all loops inside those over `bound` cost; the least without what they
        entail where there are few loops."""
        found = self.least.get(bound)
        if found is None:
            if len(self.indices) > FEW:
                return VECTOR * self.count(self.every)
            found = inf
            for index in self.open(bound):
                inside = self.left(bound | self.bits[index])
                found = min(found, self.step(bound, index) + inside)
            self.least[bound] = found
        return found

    def bits_of(self, names: Iterable[str]) -> int:
        """A set of indices as a number."""
        return bits_of(self.bits, names)

    def _walked(self, index: str) -> list[int]:
        """The accesses that a loop over `index` may have to walk together."""
        found = []
        for place, access in enumerate(self.accesses):
            form = self.problem.type_of(access.tensor).format
            if index in access.indices and not form.is_dense:
                found.append(place)
        return found if len(found) > 1 else []

    def _rooted(self, access: Access) -> bool:
        """Whether the outermost level of an access is iterated rather than counted through."""
        levels = self.problem.type_of(access.tensor).format.levels
        return bool(levels) and not levels[0].full

    def _round(self, bound: int, index: str) -> float:
        """The steps one round of a loop takes that walks several sparse levels together.

        Where all are needed and lengths differ much, the shortest leaps through the others.
        """
        walked = [k for k in self.walked[index] if self.rooted[k] or bound & self.masks[k]]
        if len(walked) < 2:
            return 0.0
        runs = sorted([self._run(place, bound, index) for place in walked])
        together = sum(runs)
        leaps = self.leap and self.needed.issuperset(walked)
        if not leaps or runs[-1] < LEAP * max(1.0, runs[0]):
            return together
        first = max(1.0, runs[0])
        return min(together, sum(LEAPS * first * pow(max(r / first, 1.0), REACH) for r in runs[1:]))

    def _run(self, place: int, bound: int, index: str) -> float:
        """How many coordinates of `index` an access has where its indices `bound` are bound."""
        share = self.shares[place]
        outer = max(share(bound), 1e-300)
        return self.statistics.sizes[index] * share(bound | self.bits[index]) / outer

    def _read_cost(self, last: str) -> float:
        """What an iteration costs more when the innermost loop does not run along unit strides."""
        everywhere = (*self.accesses, self.problem.assignment.target)
        unit = all(_runs_along(self.problem, a) == last for a in everywhere if last in a.indices)
        return 0.0 if unit else 1.0 - VECTOR

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


def _inner_sums(expr: Expr) -> dict[str, frozenset[str]]:
    """For each index of a sum inside the expression: the indices that must be bound before it."""
    inner: dict[str, frozenset[str]] = {}
    for node, _ in walk(expr):
        if isinstance(node, Reduce):
            inner[node.index] = inner.get(node.index, frozenset()) | set(free_indices(node))
    return inner
