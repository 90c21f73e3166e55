"""The cost of each loop of a term inside others, whatever their order.

A loop's iterations depend on which loops are around it, not on their order, so that most of the
cost of an order is a cost of sets of indices. Sets are numbers, a bit an index. Nor does this cost
depend on how a sparse result is stored: orders for results in several formats are chosen by the
same `Steps`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from math import inf

import numpy as np

from taco_py.compiler.concrete.inner_sums import around_loose, bound_in, loose_sums
from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.estimate import Statistics, result_size
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
"""The most loops of which all sets are priced. Of more loops, only sets that begin an order and add
some of the NEAR_ORDER_LOOPS loops after that beginning are priced."""
Next = tuple[str, float, float]
"""An index, the cost of the loop over it, and the least cost of all loops inside it."""


def steps_key(problem: Problem, term: Term, statistics: Statistics) -> Hashable:
    """Return a key of all that the steps of a term's loops depend on.

    Formats that differ in nothing that matters to them, such as `ss` and `ss:1,0`, are equal in it.
    """
    reads = dict.fromkeys(accesses(term.body))
    target = problem.assignment.target
    stored = tuple(_layout_of(problem, access) for access in (*reads, target))
    figures = statistics.stored(target, *reads)
    return Steps, term.body, target.indices, stored, _stored(problem), problem.vast, figures


def _stored(problem: Problem) -> frozenset[str]:
    """Return the indices of which the result stores coordinates."""
    form = problem.result.format
    levels = zip(form.stored(problem.assignment.target.indices), form.levels, strict=True)
    return frozenset(index for index, level in levels if not level.full)


def _layout_of(problem: Problem, access: Access) -> Hashable:
    """Return the properties of a tensor's storage that the steps of loops depend on."""
    kind = problem.type_of(access.tensor)
    contiguous, size = _runs_along(problem, access), np.dtype(kind.dtype).itemsize
    if is_full(kind.format):
        return contiguous, size, kind.format.mode_order
    if access == problem.assignment.target:
        return contiguous
    stored, unique = kind.format.stored(access.indices), kind.format.is_unique
    full = tuple(level.full for level in kind.format.levels)
    between = stored if any(full[1:]) else ()  # what is dense below lists, and of which
    return contiguous, size, np.dtype(kind.index_dtype).itemsize, full, unique, between


def _runs_along(problem: Problem, access: Access) -> str | None:
    """Return the index along which elements of an access are adjacent in memory, if there is
    one."""
    kind = problem.type_of(access.tensor)
    form = kind.format
    if not form.levels or not form.levels[-1].full or (is_full(form) and not kind.unit_stride):
        return None
    return access.indices[form.mode_order[-1]]


class Steps:
    """The costs of loops over each index inside loops over a set of others.

    outer  an order whose prefixes are among the sets where there are too many for all
    """

    def __init__(
        self, problem: Problem, term: Term, statistics: Statistics, outer: Sequence[str] = ()
    ) -> None:
        self.problem = problem
        self.term = term
        self.statistics = statistics
        self.machine = statistics.machine
        self.accesses = tuple(dict.fromkeys(accesses(term.body)))
        rest, inner = loops_of(problem, term)
        self.indices = tuple(dict.fromkeys((*outer, *rest)))
        self.rows = {index: row for row, index in enumerate(self.indices)}
        self.bits = {index: 1 << row for row, index in enumerate(self.indices)}
        self.every = (1 << len(self.indices)) - 1
        self.after = {i: self.bits_of(prerequisites) for i, prerequisites in inner.items()}
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
        """Reduce the iterations of loops of sums in a divisor, or beside other terms."""
        for sum_ in self.loose:
            sum_rows = [row for index, row in self.rows.items() if index in bound_in(sum_)]
            some = self.sets.has[sum_rows].any(axis=0)
            other_terms = around_loose(self.term.body, (sum_,))
            share = self.statistics.share(other_terms, self.sets, self.shares.__getitem__)
            counts = share * self.statistics.volumes(self.sets)
            self.counts[some] = np.minimum(self.counts, counts)[some]

    @cached_property
    def fresh(self) -> float:
        """Return the share of the innermost iterations that visit an element of the result
        first."""
        indices = self.problem.assignment.target.indices
        stored = result_size(self.statistics, self.term.body, indices)
        return min(1.0, stored / max(self.count(self.every), 1.0))

    def open(self, bound: int) -> list[str]:
        """Return the indices whose loop may come next inside loops over `bound`."""
        after = self.after
        return [
            index
            for index, bit in self.bits.items()
            if not bound & bit and (not after or not after.get(index, 0) & ~bound)
        ]

    def following(self, bound: int) -> tuple[Next, ...]:
        """Return the loops that may come next and whose sets are priced."""
        if bound not in self.next:
            place = self.lattice.place[bound]
            costs = self.steps[:, place].tolist()
            least = self.least[self.lattice.inside[:, place]].tolist()
            places = self.lattice.place
            self.next[bound] = tuple(
                (index, costs[row], least[row])
                for index in self.open(bound)
                if bound | self.bits[index] in places
                for row in (self.rows[index],)
            )
        return self.next[bound]

    def count(self, bound: int) -> float:
        """Return the iterations over a set of indices, in any order."""
        place = self.lattice.place.get(bound)
        if place is None:
            order = self._names_of(bound)
            other = self._steps_for(order)
            return other.count(other.bits_of(order))
        return float(self.counts[place])

    def step(self, bound: int, index: str) -> float:
        """Return the cost of the loop over `index` inside loops over `bound`, without further work
        for it.

        The innermost loop counts at its best, with the cost of strides that are not one.
        """
        place = self.lattice.place.get(bound)
        is_priced = self.lattice.full or bound | self.bits[index] in self.lattice.place
        if place is None or not is_priced:
            return self.nest(self._names_of(bound), (index,))
        if place not in self.columns:
            self.columns[place] = self.steps[:, place].tolist()
        return self.columns[place][self.rows[index]]

    def meeting(self, bound: int, index: str, filled: Sequence[int]) -> Meeting | None:
        """Return how the loop over `index` inside loops over `bound` co-iterates operands.

        None where no rows may be looked up.

        filled  for each of the `lookups` the loops around the filling of its row; 0 where its
                indices are not bound, none at all where no rows are looked up
        """
        row, places = self.rows[index], self.lattice.place
        if self.merges is None or bound not in places:
            return None
        place = places[bound]
        may = enumerate(self.lookups)
        candidates = [
            (n, lookup) for n, lookup in may if lookup.row == row and lookup.cost[place] < inf
        ]
        if not candidates:
            return None
        least = best = merged = float(self.merges[row, place])
        best_lookup = None
        for number, lookup in candidates:
            cost = float(lookup.cost[place])
            least = min(least, cost + lookup.least)
            loops = filled[number] if filled else 0
            if loops and loops != bound and loops in places:
                cost += float(lookup.fill_cost[places[loops]])
                if cost < best:
                    best, best_lookup = cost, lookup
        return Meeting(best - least, best_lookup, best, merged)

    def _steps_for(self, order: tuple[str, ...]) -> Steps:
        """Return the steps of an order some of whose prefixes are not among the sets."""
        if order not in self.others:
            self.others[order] = Steps(self.problem, self.term, self.statistics, order)
        return self.others[order]

    def nest(self, outer: Iterable[str], inner: Sequence[str], in_vectors: bool = False) -> float:
        """Return the cost of loops over `inner`, outermost first, inside loops over `outer`.

        in_vectors  whether the last of them may run in vectors though other loops are left: those
                    of other sums, which run beside it
        """
        order = tuple(dict.fromkeys(outer))
        steps = self if self.lattice.full else self._steps_for((*order, *inner))
        cost, bound = 0.0, steps.bits_of(order)
        for index in inner:
            cost += steps.step(bound, index)
            bound |= steps.bits[index]
        if in_vectors and inner and bound != steps.every and self.in_vectors(inner[-1]):
            cost -= (1.0 - self.vector) * steps.count(bound)
        return cost

    def bits_of(self, names: Iterable[str]) -> int:
        """Return a set of indices as a number."""
        return sum(self.bits[index] for index in set(names).intersection(self.bits))

    # ------------------------------------------------------------ all sets at a time

    def reached_of(self, sets: Sets) -> Numbers:
        """Return the iterations over each set that reach an innermost one.

        Loops visit the empty rows of a matrix too, but read and write nothing for these.
        """
        stats = self.statistics
        counts = self.counts if sets is self.sets else self.count_of(sets)
        if not any(map(stats.stores_few_rows, self.accesses)):
            return counts
        ones = np.ones(sets.count)
        shares = {a: ones * stats.access_share(a, sets, visited=False) for a in self.accesses}
        share = stats.share(self.term.body, sets, shares.__getitem__)
        return np.minimum(counts, share * stats.volumes(sets))

    def count_of(self, sets: Sets) -> Numbers:
        """Return the numbers of iterations over each of some other sets."""
        return self.statistics.share(self.term.body, sets) * self.statistics.volumes(sets)

    def _steps(self) -> Numbers:
        """Return `step` for each index, a row each, and each set."""
        steps, machine = self.counts[self.lattice.inside], self.machine
        innermost = steps[self.lattice.innermost]
        sparse = tuple(filter(self._sparse, self.accesses))
        mixed = [access for access in sparse if not restricts(self.body, access)]
        self.vector = vector = (
            machine.loops.vector_steps if sparse and not mixed else machine.loops.dense_vector_steps
        )
        steps[self.lattice.innermost] = vector * innermost
        for access in mixed:
            self._price_tests(access, steps)
        if meet(sparse):
            steps = np.maximum(steps, self._merge_costs(sparse))
        reads = np.array([0.0 if self.in_vectors(i) else 1.0 - vector for i in self.indices])
        rows, sets = self.lattice.innermost
        steps[self.lattice.innermost] += innermost * reads[rows]
        steps[self.lattice.innermost] += self._across_lanes()[rows] * self.counts[sets]
        arrays = tuple(self._touched())
        reached = self.reached_of(self.sets)
        locality = Locality(machine, self.lattice, self.sets, arrays, reached, self.reached_of)
        if not locality.near:
            steps += locality.fetching()
        steps[self.lattice.ends] = inf
        for index, prerequisites in self.after.items():
            early = ~self.sets.of(self._names_of(prerequisites)).all(axis=0)
            steps[self.rows[index], early] = inf
        return steps

    def _price_tests(self, access: Access, steps: Numbers) -> None:
        """Price loops over all coordinates that test at each whether a tensor has an entry there.

        For A in (A[i,j] - d[j]) * x[j], these are the loops over the last of its indices, which
        merge.
        """
        for index in dict.fromkeys(access.indices):
            row = self.rows[index]
            siblings = [i for i in access.indices if i != index]
            last = self.sets.of(siblings).all(axis=0)
            merged = self.machine.loops.merge_steps * self.counts[self.lattice.inside[row]]
            steps[row, last] = np.maximum(steps[row, last], merged[last])

    def _across_lanes(self) -> Numbers:
        """Return the cost of adding up the lanes of innermost loops over summed indices.

        A row for each index, inside loops over each set; 0 where the loop does not run in vectors.
        """
        target = self.problem.assignment.target.indices
        summed = [index not in target and self.in_vectors(index) for index in self.indices]
        steps: Numbers = np.where(summed, self.machine.lane_sum_steps, 0.0)
        return steps

    def _least(self) -> Numbers:
        """Return the least cost of all loops inside the loops over each set, without further
        work."""
        least = np.zeros(len(self.lattice.sets))
        for level in self.lattice.levels:
            inside = self.lattice.inside[:, level]
            least[level] = (self.steps[:, level] + least[inside]).min(axis=0)
        return least

    def _names_of(self, bound: int) -> tuple[str, ...]:
        return tuple(index for index, bit in self.bits.items() if bound & bit)

    def _sparse(self, access: Access) -> bool:
        return is_sparse(self.problem.type_of(access.tensor).format)

    def _merge_costs(self, sparse: tuple[Access, ...]) -> Numbers:
        """Return the cost of loops that merge several sparse levels, or look up rows of one.

        Rows are filled as seldom as possible. A row for each index.
        """
        figures = self.statistics, self.lattice, self.sets, self.sizes, self.shares, self.counts
        walks = Walks(self.problem, self.body, sparse, *figures)
        costs: Numbers = self.machine.loops.merge_steps * self.counts * walks.rounds()
        self.lookups = tuple(lookups(walks))
        if self.lookups:
            self.merges = costs.copy()
        for lookup in self.lookups:
            costs[lookup.row] = np.minimum(costs[lookup.row], lookup.cost + lookup.least)
        return costs

    def in_vectors(self, last: str) -> bool:
        """Tell whether an innermost loop over this index runs along unit strides."""
        everywhere = (*self.accesses, self.problem.assignment.target)
        return all(_runs_along(self.problem, a) == last for a in everywhere if last in a.indices)

    def _touched(self) -> Iterable[Touched]:
        """Yield the arrays of the operands, and of a dense result, which is read and written."""
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
    """Return the indices of a term's loops, and the indices that loops of inner sums need
    outside."""
    inner = _inner_sums(term.body)
    read = (i for access in dict.fromkeys(accesses(term.body)) for i in access.indices)
    return _ordered((*problem.assignment.target.indices, *read), inner), inner


def _inner_sums(expr: Expr) -> dict[str, frozenset[str]]:
    """Return, for each index of a sum inside the expression, the indices bound outside of it."""
    inner: dict[str, frozenset[str]] = {}
    for node, _ in walk(expr):
        if isinstance(node, Reduce):
            inner[node.index] = inner.get(node.index, frozenset()) | set(free_indices(node))
    return inner


def _ordered(names: Iterable[str], inner: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return the names in their order, indices of inner sums after all indices that they need."""
    rest = list(dict.fromkeys(names))
    ordered: list[str] = []
    while rest:
        ready = (i for i in rest if not inner.get(i, frozenset()).intersection(rest))
        ordered.append(next(ready, rest[0]))
        rest.remove(ordered[-1])
    return tuple(ordered)
