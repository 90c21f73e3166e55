"""The partition of the most saved bytes by a small program that grows: a variable for each edge.

A binary variable fₑ says that the ends of edge e are in one group. Groups are what such edges
connect: a group that hangs together by none can be split, and saves as much.

    maximize  Σ bytesₑ fₑ
    fₑ ≤ f_d                      d between two of the hull of e: on paths between its ends
    Σ f over T  ≤  |T| - 1        T a tree of edges that connects a set that is apart
    Σ f over T  ≤  |T| - 1 + fₑ   groups that T connects wait for each other, by edge e and others

Rows of the last two kinds are added for what the last solution breaks, and the program is solved
again, until it breaks none: then no partition saves more. It has the optimum of the published
program (tests/graph/traffic_program.py), without the partitions' n! names: ten primitives take
milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf

from codegen.records import dataclass
from taco_py.graph.orchestrate.convexity import find_violations
from taco_py.graph.orchestrate.dag import Dag, bits
from taco_py.graph.orchestrate.linear_rows import Minimum, Row, minimize
from taco_py.graph.orchestrate.partition.traffic_problem import (
    SCALE,
    TOLERANCE,
    Groups,
    Partition,
    TrafficProblem,
    can_be_fused,
    connected_parts,
    contracted,
    expand_groups,
    forced_groups,
    hull,
    merge_greedily,
)

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Fusible:
    """A problem in which nothing is together, with the edges that a group may hold.

    numbers  of these edges' variables
    """

    problem: TrafficProblem
    dag: Dag
    numbers: Mapping[Edge, int]


def solve_by_cuts(problem: TrafficProblem, seconds: float = 10.0) -> Partition:
    """Find the partition that saves the most bytes, or the best that is found in so many seconds.

    Raises ScheduleError where no partition keeps together and apart what it has to.
    """
    inner, order = contracted(problem, forced_groups(problem))
    groups, lost, rounds = _solve(inner, seconds)
    partition = expand_groups(groups, order)
    saved = problem.saved(partition)
    return Partition(partition, saved, saved + lost, rounds)


def _solve(problem: TrafficProblem, seconds: float) -> tuple[Groups, float, int]:
    """Return the best groups, the bytes others may save besides, and the number of
    programs solved.
    """
    dag = problem.dag
    weights = {(i, j): w for i, j, w in problem.edges if can_be_fused(problem, dag, i, j)}
    edges = _Fusible(problem, dag, {edge: n for n, edge in enumerate(weights)})
    bound = sum(weights.values())
    best = merge_greedily(problem, tuple(1 << p for p in range(problem.size)))
    saved = problem.saved(best)
    rows = list(_hull_rows(edges))
    end, rounds = time.perf_counter() + seconds, 0
    while saved < bound * (1 - TOLERANCE) and (left := end - time.perf_counter()) > 0:
        rounds += 1
        scale = SCALE / sum(weights.values())
        minimum = minimize([-w * scale for w in weights.values()], rows, left)
        bound = min(bound, -minimum.bound / scale)
        if minimum.values is None:
            break
        groups, selected = _connected(edges, minimum)
        cuts = list(_cuts(edges, groups, selected))
        if cuts:
            groups = merge_greedily(problem, tuple(1 << p for p in range(problem.size)), selected)
            rows += cuts
        if problem.saved(groups) > saved:
            best, saved = groups, problem.saved(groups)
        if not cuts and minimum.proven:
            bound = saved
    return best, max(0.0, bound - saved), rounds


def _hull_rows(edges: _Fusible) -> Iterator[Row]:
    """Yield rows by which a group that holds an edge holds all edges on paths between its ends."""
    for (i, j), number in edges.numbers.items():
        path_hull = hull(edges.dag, 1 << i | 1 << j)
        for (p, q), other in edges.numbers.items():
            if other != number and path_hull >> p & path_hull >> q & 1:
                yield Row(((number, 1.0), (other, -1.0)), -inf, 0.0)


def _connected(edges: _Fusible, minimum: Minimum) -> tuple[Groups, tuple[Edge, ...]]:
    """Return the groups of a solution, and its edges."""
    values = minimum.values or ()
    selected = tuple(edge for edge, n in edges.numbers.items() if values[n] > 0.5)
    return tuple(connected_parts(selected, edges.dag.all)), selected


def _cuts(edges: _Fusible, groups: Groups, selected: Sequence[Edge]) -> Iterator[Row]:
    """Yield the rows that a solution breaks."""
    for members in edges.problem.never:
        if any(not members & ~group for group in groups):
            tree = _tree(selected, tuple(bits(members)))
            yield Row(_weights(edges, tree), -inf, len(tree) - 1.0)
    for violation in find_violations(edges.dag, groups):
        ends = pairwise((*violation.edges, violation.edges[0]))
        tree = {e for (_, end), (start, _) in ends for e in _tree(selected, (end, start))}
        inside = [edge for edge in violation.edges if edge in edges.numbers]
        if len(inside) < len(violation.edges):
            yield Row(_weights(edges, tree), -inf, len(tree) - 1.0)
        else:
            for edge in inside:
                weights = (*_weights(edges, tree), (edges.numbers[edge], -1.0))
                yield Row(weights, -inf, len(tree) - 1.0)


def _weights(edges: _Fusible, tree: Iterable[Edge]) -> tuple[tuple[int, float], ...]:
    return tuple((edges.numbers[edge], 1.0) for edge in sorted(tree))


def _tree(selected: Sequence[Edge], members: Sequence[int]) -> set[Edge]:
    """Return edges that connect primitives: shortest paths from the first to each other one."""
    near: dict[int, list[tuple[int, Edge]]] = {}
    for edge in selected:
        i, j = edge
        near.setdefault(i, []).append((j, edge))
        near.setdefault(j, []).append((i, edge))
    first = members[0]
    came: dict[int, tuple[int, Edge]] = {}
    wave = [first]
    while wave:
        after = []
        for p in wave:
            for q, edge in near.get(p, ()):
                if q != first and q not in came:
                    came[q] = (p, edge)
                    after.append(q)
        wave = after
    tree = set()
    for p in members[1:]:
        while p != first:
            p, edge = came[p]
            tree.add(edge)
    return tree
