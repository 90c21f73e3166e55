"""The partition of a graph that leaves the most bytes inside of kernels, as a way to choose.

    price {i, j} = ∞, or a rule forbids it   →   i and j apart
    value p of 8 bytes that q reads          →   edge (p, q, 8)
    the optimum by parts, else as a whole    →   a kernel for each group

No primitive is computed twice. Prices only tell what cannot be made: where a kernel cannot, none
with more primitives is taken to be. A group that turns out to be one is forbidden, and the rest
solved again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from codegen.records import dataclass
from taco_py.graph.orchestrate.candidate_kernels import RULES, Candidates, Limits, make_kernel
from taco_py.graph.orchestrate.convexity import is_convex
from taco_py.graph.orchestrate.dag import Dag, bits, mask_of
from taco_py.graph.orchestrate.kernel_choice import (
    Choice,
    ChoiceStatistics,
    Price,
    PriceList,
    is_finite,
    make_choice,
    refuse_unmade,
)
from taco_py.graph.orchestrate.partition.fusible_parts import Solver, solve_by_parts
from taco_py.graph.orchestrate.partition.solution_notes import NotedSolutions
from taco_py.graph.orchestrate.partition.traffic_problem import (
    Groups,
    Partition,
    TrafficProblem,
    connected_parts,
    forced_groups,
    hull,
)
from taco_py.language.diagnostics.errors import OperandError, ScheduleError

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Forbidden:
    """What no kernel of a graph may hold, found out as it is asked for."""

    dag: Dag
    limits: Limits
    prices: PriceList
    verdicts: dict[int, bool] = field(default_factory=dict)

    def by_rule(self, members: int) -> bool:
        """Tell whether a rule of candidates forbids a kernel, of however many primitives."""
        return not all(r.keeps(self.dag, members, self.limits) for r in RULES if r.grows)

    def __call__(self, members: int) -> bool:
        """Tell whether a rule or the price forbids a kernel of a convex set."""
        if members not in self.verdicts:
            self.verdicts[members] = self.by_rule(members) or not is_finite(
                self.prices.of(make_kernel(self.dag, members))
            )
        return self.verdicts[members]

    def least(self, members: int) -> int:
        """Return a convex part of a forbidden set that is forbidden, but not with one member
        less."""
        for p in bits(members):
            less = members & ~(1 << p)
            if less.bit_count() > 1 and is_convex(self.dag, less) and self(less):
                return self.least(less)
        return members


def choose_partition(
    dag: Dag,
    candidates: Candidates,
    price: Price,
    *,
    traffic: Sequence[float] | None = None,
    required_pairs: Iterable[Pair] = (),
    limits: Limits | None = None,
    solver: Solver | None = None,
    seconds: float = 5.0,
) -> Choice:
    """Choose the partition into kernels inside of which the most bytes stay, when each can be made.

    traffic         the bytes of each primitive's value; one for each where they are left out
    required_pairs  pairs that are in one kernel, where there is a kernel for them
    limits          the heavy primitives of a kernel; how many it has of all is not limited
    solver          of the problem of a part; one that solves equal parts once, where it is left out
    seconds         for the programs; after it the best answer that was found, with its gap

    Raises ScheduleError where a primitive has no finite price by itself.
    """
    start = time.perf_counter()
    if traffic is not None and len(traffic) != dag.size:
        raise OperandError(f"Expected the bytes of {dag.size} values, found {len(traffic)}")
    most = replace(limits if limits is not None else Limits(), primitives=dag.size)
    prices = PriceList(dag, price, {})
    forbidden = _Forbidden(dag, most, prices)
    without = mask_of(p for p in bits(dag.live) if not is_finite(_alone(dag, p, prices)))
    if without:
        raise refuse_unmade(dag, without)
    problem = _problem(dag, traffic or (1.0,) * dag.size, forbidden, tuple(required_pairs))
    end = time.perf_counter() + seconds
    partition, rounds = _solved(dag, problem, forbidden, solver or NotedSolutions(), end)
    groups = [part for group in partition.groups for part in _parts(problem, group & dag.live)]
    total = sum(weight for *_, weight in problem.edges)
    saving = f"{partition.saved:.3g} of {total:.3g} {'values' if traffic is None else 'bytes'}"
    statistics = ChoiceStatistics(
        f"partition, {saving} stay in kernels",
        dag.live.bit_count(),
        candidates.states,
        len(candidates.kernels),
        len(prices.costs),
        len(problem.edges),
        rounds,
        0.0 if partition.optimal else 1 - partition.saved / partition.bound,
        time.perf_counter() - start,
    )
    return make_choice(dag, [make_kernel(dag, group) for group in groups], prices, statistics)


def _alone(dag: Dag, primitive: int, prices: PriceList) -> float:
    return prices.of(make_kernel(dag, 1 << primitive))


def _problem(
    dag: Dag, traffic: Sequence[float], forbidden: _Forbidden, required_pairs: Sequence[Pair]
) -> TrafficProblem:
    """Return the problem of the primitives that results need; others have no edges in it."""
    pairs = [(p, q) for p in bits(dag.live) for q in bits(dag.successors[p] & dag.live)]
    edges = tuple((p, q, float(traffic[p])) for p, q in pairs)
    conflicts = {e: None for e in pairs if forbidden(hull(dag, mask_of(e)))}
    for part in connected_parts((e for e in pairs if e not in conflicts), dag.live):
        members = tuple(bits(part))
        near = ((p, q) for p in members for q in members if p < q)
        conflicts |= {pair: None for pair in near if forbidden.by_rule(mask_of(pair))}
    sets = tuple(sorted(map(mask_of, conflicts)))
    required: tuple[Pair, ...] = ()
    for pair in required_pairs:
        if _can_be(TrafficProblem(dag.size, edges, sets, (*required, pair)), forbidden):
            required = (*required, pair)
    return TrafficProblem(dag.size, edges, sets, required)


def _can_be(problem: TrafficProblem, forbidden: _Forbidden) -> bool:
    """Tell whether kernels can be made in which the required pairs are together."""
    try:
        groups = forced_groups(problem)
    except ScheduleError:
        return False
    return not any(group.bit_count() > 1 and forbidden(group) for group in groups)


def _solved(
    dag: Dag, problem: TrafficProblem, forbidden: _Forbidden, solver: Solver, end: float
) -> tuple[Partition, int]:
    """Solve until all groups can be made; where the time is over, split those that cannot."""
    forced, rounds = forced_groups(problem), 0
    while True:
        partition = _best(problem, solver, end)
        rounds += partition.rounds
        wrong = tuple(_unmade(dag, problem, partition.groups, forbidden))
        if not wrong or time.perf_counter() > end:
            break
        sets = {forbidden.least(group): group for group in wrong}
        cuts = (g if any(not s & ~f for f in forced) else s for s, g in sets.items())
        problem = replace(problem, conflicts=tuple(sorted({*problem.conflicts, *cuts})))
    if wrong:
        affected = sum(wrong)
        rest = [group for group in partition.groups if not group & affected]
        rest += [group for group in forced if group & affected]
        partition = replace(partition, groups=tuple(rest), saved=problem.saved(rest))
    return partition, rounds


def _best(problem: TrafficProblem, solver: Solver, end: float) -> Partition:
    """Solve by parts; as a whole where parts may save less than that and there is time."""
    parts = solve_by_parts(problem, max(0.05, end - time.perf_counter()), solver)
    left = end - time.perf_counter()
    if parts.optimal or left < 0:
        return parts
    full = solver(problem, left)
    better = max(parts, full, key=lambda candidate: candidate.saved)
    bound = max(better.saved, min(parts.bound, full.bound))
    return replace(better, bound=bound, rounds=parts.rounds + full.rounds)


def _unmade(
    dag: Dag, problem: TrafficProblem, groups: Groups, forbidden: _Forbidden
) -> Iterator[int]:
    """Yield the connected parts of groups that no kernel can be made for."""
    for group in groups:
        for part in _parts(problem, group & dag.live):
            if part.bit_count() > 1 and forbidden(part):
                yield part


def _parts(problem: TrafficProblem, group: int) -> Iterator[int]:
    """Yield the parts of a group that edges and required pairs connect."""
    edges = (*((i, j) for i, j, _ in problem.edges), *problem.required_pairs)
    return connected_parts(edges, group)
