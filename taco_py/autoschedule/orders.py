"""Loop orders by expected cost: the default adviser.

For each additive term all orders of its indices are searched by depth-first branch and bound. The
cost of an order is the expected number of iterations of each of its loops, plus what the order
makes necessary: copies of operands that are stored the other way round, workspaces for a result
that is met out of order, strides that are not one in the innermost loop. A budget of search nodes
bounds the time; the best order found until then is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations
from math import inf

from taco_py.concrete.concretize import Order, copies_pattern, result_order
from taco_py.concrete.terms import Term
from taco_py.cost.estimate import Pattern, Statistics
from taco_py.iteration.graph import conflicts, sparse_levels
from taco_py.iteration.lattice import build_lattice
from taco_py.iteration.region import Regions
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.nodes import Access, Expr, Reduce
from taco_py.notation.tree import walk
from taco_py.problem import Problem

# Costs in units of one innermost scalar operation.
CONVERSION = 15.0  # an entry of a matrix that is copied into another order
SORTING = 60.0  # an entry of a tensor of three or more modes, whose coordinates must be sorted
ROW = 2.0  # an accumulation into a row workspace
HASH = 25.0  # an accumulation into a hash workspace
VECTOR = 0.3  # an iteration of an innermost loop that vectorises
MERGE = 2.0  # a step of a loop that walks several sparse levels together: it is hard to foresee
SCATTER = 1.3  # an accumulation into memory instead of a register
STRAY = 0.01  # an element of a dense array that outer loops do not run through as it is stored
NODES = 4000  # search nodes a term


def copying(pattern: Pattern) -> float:
    """What a copy of an operand in another order costs."""
    return (CONVERSION if pattern.format.order < 3 else SORTING) * pattern.nnz


@dataclass(frozen=True, slots=True)
class Ranked:
    """A loop order with its expected cost."""

    order: Order
    cost: float


def best_order(problem: Problem, term: Term, statistics: Statistics) -> Ranked:
    """The cheapest order over the term's and the result's indices."""
    search = _Search(problem, term, statistics)
    return search.run()


def order_cost(problem: Problem, term: Term, statistics: Statistics, order: Order) -> float:
    """The expected cost of one order; infinite where a loop would come before those it needs."""
    found = _Search(problem, term, statistics).priced(order)
    return inf if found is None else found.cost


def ranked_orders(
    problem: Problem, term: Term, statistics: Statistics, count: int
) -> tuple[Ranked, ...]:
    """The `count` cheapest orders, the best first, of those that a search of NODES orders sees."""
    search = _Search(problem, term, statistics)
    seen = islice(permutations(search.indices), NODES)
    known = [found for order in seen if (found := search.priced(order)) is not None]
    return tuple(sorted(known, key=lambda ranked: ranked.cost)[:count])


class _Search:
    """Depth-first branch and bound over orders of one term."""

    def __init__(self, problem: Problem, term: Term, statistics: Statistics) -> None:
        self.problem = problem
        self.term = term
        self.statistics = statistics
        self.result = result_order(problem)
        inside = dict.fromkeys(i for a in accesses(term.body) for i in a.indices)
        self.indices = tuple(dict.fromkeys((*self.result, *inside)))
        self.after = _inner_sums(term.body)
        self.accesses = tuple(dict.fromkeys(accesses(term.body)))
        self.best = Ranked((), float("inf"))
        self.nodes = 0
        self.counts: dict[frozenset[str], float] = {}
        self.steps: dict[tuple[frozenset[str], str], float] = {}
        self.copies: dict[tuple[int, Order], bool] = {}

    def run(self) -> Ranked:
        self._visit((), 1.0, 0.0)
        return self.best

    def priced(self, whole: Order) -> Ranked | None:
        """What one order costs; None where a loop would come before those it depends on."""
        cost, outer = 0.0, 1.0
        for place, index in enumerate(whole):
            steps = {i: (step, count) for step, i, count in self._steps(whole[:place], outer)}
            if index not in steps:
                return None
            step, outer = steps[index]
            cost += step
        return Ranked(whole, cost + self._consequences(whole, outer))

    def _visit(self, order: Order, outer: float, cost: float) -> None:
        self.nodes += 1
        if cost >= self.best.cost or (self.nodes > NODES and self.best.order):
            return
        if len(order) == len(self.indices):
            total = cost + self._consequences(order, outer)
            if total < self.best.cost:
                self.best = Ranked(order, total)
            return
        for step, index, count in sorted(self._steps(order, outer)):
            self._visit((*order, index), count, cost + step)

    def _steps(self, order: Order, outer: float) -> Iterator[tuple[float, str, float]]:
        """Each index that may come next: the cost of its loop, and how often its body runs.

        The innermost loop counts at its best here, so that no cost below is less than this one.
        """
        weight = VECTOR if len(order) + 1 == len(self.indices) else 1.0
        for index in self.indices:
            if index in order or not self.after.get(index, frozenset()) <= set(order):
                continue
            count = self._count(frozenset((*order, index)))
            step = max(weight * count, MERGE * outer * self._round(order, index))
            yield step, index, count

    def _count(self, bound: frozenset[str]) -> float:
        """The iterations over `bound`, in any order."""
        if bound not in self.counts:
            self.counts[bound] = self.statistics.iterations(self.term.body, bound)
        return self.counts[bound]

    def _round(self, order: Order, index: str) -> float:
        """`_merged`, which depends on which loops are outside, not on their order."""
        key = (frozenset(order), index)
        if key not in self.steps:
            self.steps[key] = self._merged(order, index)
        return self.steps[key]

    def _merged(self, order: Order, index: str) -> float:
        """The steps one round of a loop takes that walks several sparse levels together."""
        before = frozenset(order)
        walked = [
            self.statistics.sizes[index]
            * self.statistics.access_fraction(a, before | {index})
            / max(self.statistics.access_fraction(a, before), 1e-300)
            for a in self.accesses
            if index in a.indices and self._iterates(a, index, order)
        ]
        return sum(walked) if len(walked) > 1 else 0.0

    def _iterates(self, access: Access, index: str, order: Order) -> bool:
        form = self.problem.type_of(access.tensor).format
        if form.is_dense:
            return False
        first = not any(i in order for i in access.indices)
        return not (first and form.levels[0].full)

    # ------------------------------------------------------------ what an order entails

    def _consequences(self, order: Order, innermost: float) -> float:
        copies = sum(
            copying(self.statistics.patterns[a.tensor])
            for place, a in enumerate(self.accesses)
            if self._needs_copy(place, order)
        )
        each = self._write_cost(order) + self._read_cost(order) + STRAY * self._strays(order)
        return copies + innermost * each

    def _needs_copy(self, place: int, order: Order) -> bool:
        """`needs_copy`, which depends on the order of the access's own indices alone."""
        access = self.accesses[place]
        key = (place, tuple(i for i in order if i in access.indices))
        if key not in self.copies:
            self.copies[key] = needs_copy(self.problem, self.term, access, order)
        return self.copies[key]

    def _write_cost(self, order: Order) -> float:
        rest = self._scattered(order)
        if not rest:
            return 0.0
        levels = self.problem.result.format.levels
        outer = 1 if len(rest) == len(levels) > 1 else 0  # an array is made and its rows gathered
        if all(level.full for level in levels[len(levels) - len(rest) + outer :]):
            return SCATTER - 1.0
        return ROW if len(rest) == 1 else HASH

    def _scattered(self, order: Order) -> Order:
        """The result's indices that come after a summed one, or out of storage order."""
        sparse = not self.problem.result.format.is_dense
        kept = 0
        for index in order:
            if index not in self.result or (sparse and index != self.result[kept]):
                break
            kept += 1
        return tuple(i for i in self.result if i not in order[:kept])

    def _read_cost(self, order: Order) -> float:
        """What an iteration costs more when the innermost loop does not run along unit strides."""
        if not order:
            return 0.0
        last = order[-1]
        everywhere = [*self.accesses]
        if last in self.result:
            everywhere.append(self.problem.assignment.target)
        unit = all(self._unit(a, last) for a in everywhere if last in a.indices)
        return 0.0 if unit else 1.0 - VECTOR

    def _strays(self, order: Order) -> int:
        """How many arrays of a dense kernel the loops around the innermost one do not run through
        in the order of storage."""
        everywhere = (*self.accesses, self.problem.assignment.target)
        if not all(self.problem.type_of(a.tensor).format.is_dense for a in everywhere):
            return 0
        return sum(
            stored != sorted(stored, key=order.index)
            for a in everywhere
            for stored in [[i for i in self._stored(a) if i in order[:-1]]]
        )

    def _stored(self, access: Access) -> Order:
        return tuple(
            access.indices[mode] for mode in self.problem.type_of(access.tensor).format.mode_order
        )

    def _unit(self, access: Access, index: str) -> bool:
        kind = self.problem.type_of(access.tensor)
        form = kind.format
        stored_last = access.indices[form.mode_order[-1]] == index
        return form.levels[-1].full and stored_last and (not form.is_dense or kind.unit_stride)


def _inner_sums(expr: Expr) -> dict[str, frozenset[str]]:
    """For each index of a sum inside the expression: the indices that must be bound before it."""
    inner: dict[str, frozenset[str]] = {}
    for node, _ in walk(expr):
        if isinstance(node, Reduce):
            inner[node.index] = inner.get(node.index, frozenset()) | set(free_indices(node))
    return inner


def needs_copy(problem: Problem, term: Term, access: Access, order: Order) -> bool:
    """Whether `access` cannot be walked as it is stored when loops run in this order.

    Either a sparse level comes before one above it, or a level that may repeat coordinates is
    merged with another, or appended from.
    """
    if conflicts(problem, access, order):
        return True
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
