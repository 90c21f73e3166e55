"""The partition of the most saved bytes as a program with whole numbers (Chen et al. 2024, EVT,
equations 3a to 3j).

There are as many partitions as primitives, most of them empty at the end. Binary variables: xᵢₛ,
primitive i is in partition s; zᵢⱼₛ, both are; yₛₜ, an edge leads from s to t. πₛ orders partitions.

    maximize  Σ bytesᵢⱼ zᵢⱼₛ
    Σₛ xᵢₛ = 1                                  each primitive is in one partition
    xᵢₛ + xⱼₛ ≤ 1                               for i, j apart; ≤ |P| - 1 for a set P
    Σₛ zᵢⱼₛ = 1                                 for i, j together
    zᵢⱼₛ ≤ xᵢₛ,  zᵢⱼₛ ≤ xⱼₛ
    xᵢₛ + xⱼₜ - 1 ≤ yₛₜ                         for each edge (i, j), s ≠ t
    πₛ - πₜ + n yₛₜ ≤ n - 1                     no cycle (Miller, Tucker, Zemlin 1960)
    Σᵢ xᵢₛ ≥ Σᵢ xᵢₜ,  t = s + 1                 the larger first: one of the same in other orders

Only x has to be declared whole: z is then the lesser of two, and y and π can be rounded. Names of
partitions are interchangeable, so this takes seconds for ten primitives: it is what `edge_program`,
which chooses, is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from codegen.records import dataclass
from taco_py.graph.orchestrate.dag import bits, mask_of
from taco_py.graph.orchestrate.linear_rows import Row, minimize
from taco_py.graph.orchestrate.partition.traffic_problem import (
    SCALE,
    TOLERANCE,
    Groups,
    Partition,
    TrafficProblem,
    can_be_fused,
    forced_groups,
    merge_greedily,
)


@dataclass(frozen=True, slots=True)
class _Variables:
    """The numbers of the variables: x by primitive and partition, then z, y and π."""

    size: int
    inside: tuple[tuple[int, int, float], ...]

    def x(self, i: int, s: int) -> int:
        return i * self.size + s

    def z(self, edge: int, s: int) -> int:
        return self.size * (self.size + edge) + s

    def y(self, s: int, t: int) -> int:
        return self.size * (self.size + len(self.inside) + s) + t

    def order(self, s: int) -> int:
        return self.size * (2 * self.size + len(self.inside)) + s


def solve_program(problem: TrafficProblem, seconds: float = 10.0) -> Partition:
    """Find the partition that saves the most bytes, or the best that is found in so many seconds.

    Raises ScheduleError where no partition keeps together and apart what it has to.
    """
    least = forced_groups(problem)
    first = merge_greedily(problem, least)
    saved, total = problem.saved(first), sum(weight for *_, weight in problem.edges)
    if saved >= total * (1 - TOLERANCE):
        return Partition(first, saved, saved)
    variables = _Variables(problem.size, tuple(_inside(problem)))
    most = sum(weight for *_, weight in variables.inside)
    scale = SCALE / total
    n, count = problem.size, variables.order(problem.size)
    costs = [0.0] * count
    for edge, (*_, weight) in enumerate(variables.inside):
        for s in range(n):
            costs[variables.z(edge, s)] = -weight * scale
    limits = [1.0] * variables.order(0) + [n - 1.0] * n
    whole = [variable < n * n for variable in range(count)]
    rows = list(_rows(problem, variables))
    found = minimize(costs, rows, seconds, most=limits, ints=whole)
    bound = min(most, -found.bound / scale)
    if found.values is not None:
        groups = _groups(variables, found.values)
        if problem.saved(groups) > saved:
            first, saved = groups, problem.saved(groups)
    return Partition(first, saved, saved if found.proven else max(bound, saved))


def _inside(problem: TrafficProblem) -> Iterator[tuple[int, int, float]]:
    """Yield the edges that may be inside of a partition, and pairs that have to be."""
    dag = problem.dag
    for i, j, weight in problem.edges:
        if weight > 0 and can_be_fused(problem, dag, i, j):
            yield i, j, weight
    for i, j in problem.required_pairs:
        yield i, j, 0.0


def _rows(problem: TrafficProblem, variables: _Variables) -> Iterator[Row]:
    """Yield the constraints, in the order of the equations."""
    n = problem.size
    for i in range(n):
        yield Row(tuple((variables.x(i, s), 1.0) for s in range(n)), 1.0, 1.0)
    for members in problem.never:
        for s in range(n):
            weights = tuple((variables.x(i, s), 1.0) for i in bits(members))
            yield Row(weights, 0.0, members.bit_count() - 1.0)
    for edge in range(len(variables.inside) - len(problem.required_pairs), len(variables.inside)):
        yield Row(tuple((variables.z(edge, s), 1.0) for s in range(n)), 1.0, 1.0)
    for edge, (i, j, _) in enumerate(variables.inside):
        for s in range(n):
            for p in (i, j):
                yield Row(((variables.z(edge, s), 1.0), (variables.x(p, s), -1.0)), -inf, 0.0)
    yield from _order_rows(problem, variables)
    for s in range(n - 1):
        larger = tuple((variables.x(i, s), 1.0) for i in range(n))
        yield Row((*larger, *((variables.x(i, s + 1), -1.0) for i in range(n))), 0.0, inf)


def _order_rows(problem: TrafficProblem, variables: _Variables) -> Iterator[Row]:
    """Yield the constraints by which partitions do not wait for each other."""
    n = problem.size
    pairs = [(s, t) for s in range(n) for t in range(n) if s != t]
    for i, j in (*((i, j) for i, j, _ in problem.edges), *problem.paths):
        for s, t in pairs:
            one, other = variables.x(i, s), variables.x(j, t)
            yield Row(((one, 1.0), (other, 1.0), (variables.y(s, t), -1.0)), -inf, 1.0)
    for s, t in pairs:
        before, after = variables.order(s), variables.order(t)
        yield Row(((before, 1.0), (after, -1.0), (variables.y(s, t), float(n))), -inf, n - 1.0)


def _groups(variables: _Variables, values: Sequence[float]) -> Groups:
    """Return the partitions that are not empty."""
    n = variables.size
    own = (mask_of(i for i in range(n) if values[variables.x(i, s)] > 0.5) for s in range(n))
    return tuple(sorted((group for group in own if group), key=lambda group: group & -group))
