"""What each loop of a term costs inside others, whatever their order.

A loop's iterations depend on which loops are around it, not on their order, so that most of what an
order costs is known of sets of indices. Sets are numbers, a bit an index. What is known here does
not depend on how a sparse result is stored, either: orders for results in several formats are
chosen by the same `Steps`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import inf

import numpy as np

from taco_py.compiler.concrete.inner_sums import around_loose, bound_in, loose_sums
from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.cost.sets import Lattice, Numbers, Sets, every_set, sets_near
from taco_py.compiler.order.locality import Locality, Touched
from taco_py.compiler.order.lookups import Lookup, Meeting, lookups
from taco_py.compiler.order.walk_counts import Walks, meet
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Expr, Reduce
from taco_py.language.notation.tree import walk
from taco_py.language.problem import Problem

EVERY_SET_LOOPS, NEAR_ORDER_LOOPS = 11, 7
"""The most loops of which all sets are known. Of more loops, a set is known that begins an order
and adds some of the NEAR_ORDER_LOOPS loops after that beginning."""
Next = tuple[str, float, float]
"""An index, what the loop over it costs, and the least that all loops inside it cost."""


def asked_of_steps(problem: Problem, term: Term, statistics: Statistics) -> Hashable:
    """Return all that the steps of a term's loops depend on: formats that differ in nothing that
    matters to them, as `ss` and `ss:1,0`, are one."""
    found = dict.fromkeys(accesses(term.body))
    target = problem.assignment.target
    stored = tuple(_seen(problem, access) for access in (*found, target))
    known = statistics.stored(target, *found)
    return Steps, term.body, target.indices, stored, _stored(problem), problem.vast, known


def _stored(problem: Problem) -> frozenset[str]:
    """Return the indices of which the result stores coordinates."""
    form = problem.result.format
    levels = zip(form.stored(problem.assignment.target.indices), form.levels, strict=True)
    return frozenset(index for index, level in levels if not level.full)


def _seen(problem: Problem, access: Access) -> Hashable:
    """What the steps of loops depend on of how a tensor is stored."""
    kind = problem.type_of(access.tensor)
    along, size = _runs_along(problem, access), np.dtype(kind.dtype).itemsize
    if is_full(kind.format):
        return along, size, kind.format.mode_order
    if access == problem.assignment.target:
        return along
    stored, once = kind.format.stored(access.indices), kind.format.is_unique
    full = tuple(level.full for level in kind.format.levels)
    between = stored if any(full[1:]) else ()  # what is dense below lists, and of which
    return along, size, np.dtype(kind.index_dtype).itemsize, full, once, between


def _runs_along(problem: Problem, access: Access) -> str | None:
    """Return the index along which the elements of an access are neighbours in memory, if there is
    one."""
    kind = problem.type_of(access.tensor)
    form = kind.format
    if not form.levels or not form.levels[-1].full or (is_full(form) and not kind.unit_stride):
        return None
    return access.indices[form.mode_order[-1]]


class Steps:
    """The costs of loops over each index inside loops over a set of others.

    around  an order whose beginnings are among the sets where these are too many for all
    """

    def __init__(
        self, problem: Problem, term: Term, statistics: Statistics, around: Sequence[str] = ()
    ) -> None:
        self.problem = problem
        self.term = term
        self.statistics = statistics
        self.machine = statistics.machine
        self.accesses = tuple(dict.fromkeys(accesses(term.body)))
        rest, inner = loops_of(problem, term)
        self.indices = tuple(dict.fromkeys((*around, *rest)))
        self.rows = {index: row for row, index in enumerate(self.indices)}
        self.bits = {index: 1 << row for row, index in enumerate(self.indices)}
        self.every = (1 << len(self.indices)) - 1
        self.after = {i: self.bits_of(needed) for i, needed in inner.items()}
        self.sizes = np.array([statistics.sizes[index] for index in self.indices])
        self.lattice = _sets_of(len(self.indices))
        self.sets = Sets(self.indices, self.lattice.has, self.lattice.weighs)
        ones = np.ones(self.sets.count)
        self.shares = {a: ones * statistics.access_share(a, self.sets) for a in self.accesses}
        share = statistics.share(term.body, self.sets, self.shares.__getitem__)
        self.counts = share * statistics.volumes(self.sets)
        self.loose = loose_sums(term.body)
        self.body = around_loose(term.body, self.loose)
        self._count_in_sums()
        self.others: dict[tuple[str, ...], Steps] = {}
        self.lookups: tuple[Lookup, ...] = ()
        self.merges: Numbers | None = None
        self.steps = self._steps()
        self.least = self._least()
        self.columns: dict[int, list[float]] = {}
        self.next: dict[int, tuple[Next, ...]] = {}

    def _count_in_sums(self) -> None:
        """Loops of a sum in a divisor, or beside other terms, run where its body is stored and what
        is around it is."""
        for sum_ in self.loose:
            within = [row for index, row in self.rows.items() if index in bound_in(sum_)]
            some = self.sets.has[within].any(axis=0)
            own = around_loose(self.term.body, (sum_,))
            share = self.statistics.share(own, self.sets, self.shares.__getitem__)
            found = share * self.statistics.volumes(self.sets)
            self.counts[some] = np.minimum(self.counts, found)[some]

    def open(self, bound: int) -> list[str]:
        """Return the indices whose loop may come next."""
        after = self.after
        return [
            index
            for index, bit in self.bits.items()
            if not bound & bit and (not after or not after.get(index, 0) & ~bound)
        ]

    def following(self, bound: int) -> tuple[Next, ...]:
        """Return the loops that may come next with which the set is one that is known."""
        if bound not in self.next:
            place = self.lattice.place[bound]
            costs = self.steps[:, place].tolist()
            least = self.least[self.lattice.inside[:, place]].tolist()
            known = self.lattice.place
            self.next[bound] = tuple(
                (index, costs[row], least[row])
                for index in self.open(bound)
                if bound | self.bits[index] in known
                for row in (self.rows[index],)
            )
        return self.next[bound]

    def count(self, bound: int) -> float:
        """Return the iterations over a set of indices, in any order."""
        place = self.lattice.place.get(bound)
        if place is None:
            order = self._named(bound)
            other = self._beside(order)
            return other.count(other.bits_of(order))
        return float(self.counts[place])

    def step(self, bound: int, index: str) -> float:
        """What the loop over `index` inside loops over `bound` costs, without what it entails.

        The innermost loop counts at its best, and what it costs where strides are not one.
        """
        place = self.lattice.place.get(bound)
        known = self.lattice.whole or bound | self.bits[index] in self.lattice.place
        if place is None or not known:
            return self.nest(self._named(bound), (index,))
        if place not in self.columns:
            self.columns[place] = self.steps[:, place].tolist()
        return self.columns[place][self.rows[index]]

    def meeting(self, bound: int, index: str, written: Sequence[int]) -> Meeting | None:
        """Return how the loop over `index` inside loops over `bound` meets operands that may be
        looked up; None where there are none.

        written  for each of the `lookups` the loops around the writing of its row; 0 where its
                 indices are not bound, none at all where no rows are looked up
        """
        row, places = self.rows[index], self.lattice.place
        if self.merges is None or bound not in places:
            return None
        place = places[bound]
        may = enumerate(self.lookups)
        met = [(n, each) for n, each in may if each.row == row and each.cost[place] < inf]
        if not met:
            return None
        least = best = merged = float(self.merges[row, place])
        found = None
        for number, each in met:
            cost = float(each.cost[place])
            least = min(least, cost + each.least)
            around = written[number] if written else 0
            if around and around != bound and around in places:
                cost += float(each.written[places[around]])
                if cost < best:
                    best, found = cost, each
        return Meeting(best - least, found, best, merged)

    def _beside(self, order: tuple[str, ...]) -> Steps:
        """Return the steps of an order some of whose beginnings are not among the sets."""
        if order not in self.others:
            self.others[order] = Steps(self.problem, self.term, self.statistics, order)
        return self.others[order]

    def nest(self, around: Iterable[str], inner: Sequence[str]) -> float:
        """What loops over `inner`, outermost first, cost inside loops `around` them."""
        order = tuple(dict.fromkeys(around))
        known = self if self.lattice.whole else self._beside((*order, *inner))
        cost, bound = 0.0, known.bits_of(order)
        for index in inner:
            cost += known.step(bound, index)
            bound |= known.bits[index]
        return cost

    def bits_of(self, names: Iterable[str]) -> int:
        """Return a set of indices as a number."""
        return sum(self.bits[index] for index in set(names).intersection(self.bits))

    # ------------------------------------------------------------ all sets at a time

    def count_of(self, sets: Sets) -> Numbers:
        """Return the iterations over each of some other sets."""
        return self.statistics.share(self.term.body, sets) * self.statistics.volumes(sets)

    def _steps(self) -> Numbers:
        """Return `step` for each index, a row each, and each set."""
        found, machine = self.counts[self.lattice.inside], self.machine
        innermost = found[self.lattice.innermost]
        sparse = tuple(filter(self._sparse, self.accesses))
        mixed = [access for access in sparse if not restricts(self.body, access)]
        vector = (
            machine.loops.vector_steps if sparse and not mixed else machine.loops.dense_vector_steps
        )
        found[self.lattice.innermost] = vector * innermost
        for access in mixed:
            self._ask_at_each(access, found)
        if meet(sparse):
            found = np.maximum(found, self._met(sparse))
        reads = np.array([0.0 if self.in_vectors(i) else 1.0 - vector for i in self.indices])
        rows, sets = self.lattice.innermost
        found[self.lattice.innermost] += innermost * reads[rows]
        found[self.lattice.innermost] += self._across_lanes()[rows] * self.counts[sets]
        arrays = tuple(self._touched())
        locality = Locality(machine, self.lattice, self.sets, arrays, self.counts, self.count_of)
        if not locality.near:
            found += locality.fetching()
        found[self.lattice.ends] = inf
        for index, needed in self.after.items():
            early = ~self.sets.of(self._named(needed)).all(axis=0)
            found[self.rows[index], early] = inf
        return found

    def _ask_at_each(self, access: Access, found: Numbers) -> None:
        """Loops over all coordinates that ask at each whether a tensor has an entry there, as A in
        (A[i,j] - d[j]) * x[j], merge: those over the last of its indices, whose lists it walks."""
        for index in dict.fromkeys(access.indices):
            row = self.rows[index]
            others = [i for i in access.indices if i != index]
            last = self.sets.of(others).all(axis=0)
            merged = self.machine.loops.merge_steps * self.counts[self.lattice.inside[row]]
            found[row, last] = np.maximum(found[row, last], merged[last])

    def _across_lanes(self) -> Numbers:
        """What adding up the lanes costs of innermost loops over each summed index that run in
        vectors, a row each, inside loops over each set."""
        kept = self.problem.assignment.target.indices
        summed = [index not in kept and self.in_vectors(index) for index in self.indices]
        steps: Numbers = np.where(summed, self.machine.lane_sum_steps, 0.0)
        return steps

    def _least(self) -> Numbers:
        """Return the least that all loops inside those over each set cost, without what they
        entail."""
        found = np.zeros(len(self.lattice.sets))
        for level in self.lattice.levels:
            inside = self.lattice.inside[:, level]
            found[level] = (self.steps[:, level] + found[inside]).min(axis=0)
        return found

    def _named(self, bound: int) -> tuple[str, ...]:
        return tuple(index for index, bit in self.bits.items() if bound & bit)

    def _sparse(self, access: Access) -> bool:
        return is_sparse(self.problem.type_of(access.tensor).format)

    def _met(self, sparse: tuple[Access, ...]) -> Numbers:
        """What loops cost that walk several sparse levels together, or look up the rows of one,
        written as seldom as may be; a row for each index."""
        known = self.statistics, self.lattice, self.sets, self.sizes, self.shares, self.counts
        walks = Walks(self.problem, self.body, sparse, *known)
        found: Numbers = self.machine.loops.merge_steps * self.counts * walks.rounds()
        self.lookups = tuple(lookups(walks))
        if self.lookups:
            self.merges = found.copy()
        for each in self.lookups:
            found[each.row] = np.minimum(found[each.row], each.cost + each.least)
        return found

    def in_vectors(self, last: str) -> bool:
        """Tell whether an innermost loop over this index runs along unit strides."""
        everywhere = (*self.accesses, self.problem.assignment.target)
        return all(_runs_along(self.problem, a) == last for a in everywhere if last in a.indices)

    def _touched(self) -> Iterable[Touched]:
        """Return the arrays of the operands, and of a dense result, which is read and written."""
        target = self.problem.assignment.target
        for access in (*self.accesses, target):
            type = self.problem.type_of(access.tensor)
            indices = type.format.stored(access.indices)
            stored = tuple(self.rows[index] for index in indices)
            size = np.dtype(type.dtype).itemsize
            sizes = tuple(float(self.statistics.sizes[index]) for index in indices)
            if is_sparse(type.format):
                if access != target:
                    block = sizes[type.format.depth :]
                    yield Touched(stored, size + np.dtype(type.index_dtype).itemsize, block)
                continue
            yield Touched(stored, size, sizes, 2 if access == target else 1)


def _sets_of(count: int) -> Lattice:
    return every_set(count) if count <= EVERY_SET_LOOPS else sets_near(count, NEAR_ORDER_LOOPS)


def loops_of(problem: Problem, term: Term) -> tuple[tuple[str, ...], Mapping[str, frozenset[str]]]:
    """Return the indices of a term's loops, and those that must come before the ones of its inner
    sums."""
    inner = _inner_sums(term.body)
    met = (i for access in dict.fromkeys(accesses(term.body)) for i in access.indices)
    return _in_turn((*problem.assignment.target.indices, *met), inner), inner


def _inner_sums(expr: Expr) -> dict[str, frozenset[str]]:
    """For each index of a sum inside the expression: the indices that must be bound before it."""
    inner: dict[str, frozenset[str]] = {}
    for node, _ in walk(expr):
        if isinstance(node, Reduce):
            inner[node.index] = inner.get(node.index, frozenset()) | set(free_indices(node))
    return inner


def _in_turn(names: Iterable[str], inner: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return the names as they come, those of sums inside the expression after all that they
    need."""
    rest = list(dict.fromkeys(names))
    found: list[str] = []
    while rest:
        ready = (i for i in rest if not inner.get(i, frozenset()).intersection(rest))
        found.append(next(ready, rest[0]))
        rest.remove(found[-1])
    return tuple(found)
