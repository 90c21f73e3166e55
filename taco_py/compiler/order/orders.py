"""Loop orders by expected cost: the default adviser.

For each additive term all orders of its indices are searched by depth-first branch and bound. The
cost of an order is the expected number of iterations of each of its loops, plus what the order
makes necessary: copies of operands that are stored the other way round, workspaces for a result
that is met out of order, strides that are not one in the innermost loop (`loop_costs`), lines that
come from beyond the near caches (`locality`).

    visit loops (i,k):  cost so far + the least that loops inside i and k cost  ≥  best  →  leave

Nor are loops followed twice over the same indices, with the same copies, where the first way there
cost no more. A number of search nodes, and a budget of seconds where there is one, bound the time;
the best order found until then is used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice, permutations
from math import factorial, inf

from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import Order, result_order
from taco_py.compiler.concrete.terms import Term
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.iteration.graph import conflicts
from taco_py.compiler.order.beam import first_order, target_first
from taco_py.compiler.order.loop_costs import (
    LoopCosts,
    Outside,
    State,
    cost_key,
    order_matters,
    repeats_matter,
)
from taco_py.compiler.order.steps import EVERY_SET_LOOPS, Steps, loops_of, steps_key
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem

SEARCH_NODES = 4000
"""Search nodes a term."""
NEAR_ROUNDS, BETTER_SHARE = 3, 0.99
"""The most rounds of search near the best order of many loops, and the share of the previous cost
below which another round follows."""
EQUAL_SHARE = 1e-9
"""Costs that differ by this share are equal."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A loop order with its expected cost."""

    order: Order
    cost: float


_NO_ORDER = Ranked((), inf)


def best_order(
    problem: Problem, term: Term, statistics: Statistics, effort: Effort | None = None
) -> Ranked:
    """Return the cheapest order over the term's and the result's indices.

    effort  results known already, and the time left; None for as long as it takes
    """
    if effort is None:
        effort = Effort()
    key = cost_key(problem, term, statistics)
    return effort.recall(key, lambda: _search_order(problem, term, statistics, effort))


def _search_order(problem: Problem, term: Term, statistics: Statistics, effort: Effort) -> Ranked:
    """Search the cheapest order of a term's loops.

    For many loops, search orders near the best so far, until none is clearly better.
    """
    steps = known_steps(problem, term, statistics, effort)
    costs = LoopCosts(problem, term, statistics, steps, effort.rows)
    if steps.lattice.full:
        return _Search(costs, effort).run()
    before = _priced(costs, steps.indices)
    best = _Search(costs, effort, Ranked(steps.indices, before)).run()
    for _ in range(NEAR_ROUNDS):
        if best.cost > BETTER_SHARE * before:
            break
        before = best.cost
        steps = _steps_near(problem, term, statistics, effort, best.order)
        costs = LoopCosts(problem, term, statistics, steps, effort.rows)
        best = _Search(costs, effort, best).run()
    effort.near[_alike(problem, steps.indices, statistics)] = best.order
    every = f"{factorial(len(steps.indices))} orders of {','.join(steps.indices)}"
    effort.parts.append(f"only orders near {','.join(best.order)} were compared, not all {every}")
    return best


def known_steps(problem: Problem, term: Term, statistics: Statistics, effort: Effort) -> Steps:
    """Return the costs of a term's loops inside others, computed once for a plan.

    For many loops, only sets near an order: that of the same loops before, or else the first order.
    """
    key = steps_key(problem, term, statistics)
    indices, inner = loops_of(problem, term)
    if len(indices) <= EVERY_SET_LOOPS:
        return effort.recall(key, lambda: Steps(problem, term, statistics))
    near = effort.near.get(_alike(problem, indices, statistics))
    if near is None:
        target, dense = result_order(problem), is_full(problem.result.format)
        machine = statistics.machine
        write = machine.loops.row_workspace_steps
        if dense:
            write = machine.loops.scatter_steps - 1.0
        elif len(target) > 1:
            write = machine.loops.hash_workspace_steps + machine.loops.hash_key_steps
        first = effort.recall(
            (first_order, key), lambda: first_order(term, statistics, indices, inner)
        )
        near = target_first(term, statistics, first, target, write)
    return _steps_near(problem, term, statistics, effort, near)


def _steps_near(
    problem: Problem, term: Term, statistics: Statistics, effort: Effort, order: Order
) -> Steps:
    """Return the costs of a term's loops for sets near one order."""
    key = order, steps_key(problem, term, statistics)
    return effort.recall(key, lambda: Steps(problem, term, statistics, order))


def _alike(problem: Problem, indices: Iterable[str], statistics: Statistics) -> Hashable:
    """Return a key of terms whose best orders are near each other."""
    return (
        statistics.machine,
        frozenset(indices),
        is_full(problem.result.format) or result_order(problem),
    )


def order_cost(
    problem: Problem, term: Term, statistics: Statistics, order: Order, rows: bool = False
) -> float:
    """Return the expected cost of one order in which operands are merged.

    Infinite where a loop would come before the loops that it needs outside.

    rows  whether rows of operands are looked up where that costs less
    """
    steps = Steps(problem, term, statistics, order)
    return _priced(LoopCosts(problem, term, statistics, steps, rows=rows), order)


def ranked_orders(
    problem: Problem, term: Term, statistics: Statistics, count: int
) -> tuple[Ranked, ...]:
    """Return the `count` cheapest orders in which operands are merged, the best first.

    At most SEARCH_NODES orders are compared.
    """
    costs = LoopCosts(problem, term, statistics, rows=False)
    orders = islice(permutations(costs.steps.indices), SEARCH_NODES)
    finite = [Ranked(order, cost) for order in orders if (cost := _priced(costs, order)) < inf]
    return tuple(sorted(finite, key=lambda ranked: ranked.cost)[:count])


def _priced(costs: LoopCosts, order: Order) -> float:
    """Return the cost of one order; infinite where a loop would come before those it needs."""
    outside = costs.start()
    for index in order:
        if index not in costs.steps.open(outside.bound):
            return inf
        outside = costs.inside(outside, index)
    return outside.cost


class _Search:
    """Depth-first branch and bound over the orders of one term's loops.

    best  the order to improve on
    """

    def __init__(self, costs: LoopCosts, effort: Effort, best: Ranked = _NO_ORDER) -> None:
        self.costs = costs
        self.effort = effort
        self.best = best
        self.nodes = 0
        self.orders = 0 if best.cost == inf else 1
        self.met: dict[State, float] = {}
        self.limit = best.cost * (1 - EQUAL_SHARE) - EQUAL_SHARE

    def run(self) -> Ranked:
        steps = self.costs.steps
        complete = self._visit(self.costs.start())
        if not complete:
            every = f"{factorial(len(steps.indices))} orders of {','.join(steps.indices)}"
            self.effort.cut(f"after {self.orders} of {every}")
        return self.best

    def _visit(self, outside: Outside) -> bool:
        """Search all orders that begin with `outside`; return False if time did not suffice for
        all.

        Without any time left, the most promising loop comes next until one order is complete.
        """
        self.nodes += 1
        if outside.bound == self.costs.steps.every:
            self.orders += 1
            self.best = Ranked(outside.order, outside.cost)
            self.limit = outside.cost * (1 - EQUAL_SHARE) - EQUAL_SHARE
            return True
        complete = True
        for bound, inner in self._next(outside):
            if bound >= self.limit or self._is_dominated(inner):
                continue
            if self.orders and (self.nodes > SEARCH_NODES or self.effort.over):
                return False
            complete = self._visit(inner) and complete
        return complete

    def _next(self, outside: Outside) -> list[tuple[float, Outside]]:
        """Return `outside` with each possible next loop, and a lower bound of such orders' cost.

        Only where this bound is below the best. The least comes first; of equal ones, the cheaper
        loop.
        """
        inner_states = []
        for index, step, left in self.costs.steps.following(outside.bound):
            if outside.cost + step + left < self.limit:
                inner = self.costs.inside(outside, index)
                inner_states.append((inner.cost + left, step, inner))
        near = (
            min((bound for bound, *_ in inner_states), default=0.0) * (1 + EQUAL_SHARE)
            + EQUAL_SHARE
        )
        inner_states.sort(key=lambda entry: (max(entry[0], near), entry[1], entry[2].order))
        return [(bound, inner) for bound, _, inner in inner_states]

    def _is_dominated(self, outside: Outside) -> bool:
        """Tell whether the same loops, with the same entailed work, were visited at no more
        cost."""
        if self.met.get(outside.state, inf) <= outside.cost:
            return True
        self.met[outside.state] = outside.cost
        return False


def needs_copy(problem: Problem, term: Term, access: Access, order: Order) -> bool:
    """Tell whether `access` cannot be walked in its stored order when loops run in this order.

    Either a sparse level comes before one above it, or a level that may repeat coordinates, or has
    them in no order, is merged with another, or appended from.
    """
    if conflicts(problem, access, order) or repeats_matter(problem, term, access, order):
        return True
    return order_matters(problem, term, access)
