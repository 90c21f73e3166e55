"""The partition of the most saved bytes of a large graph, part by part (Chen et al. 2024, EVT,
algorithms 1 and 2).

1. Edges that no group can hold are deleted: those with something apart on paths between their ends.
   What is left falls into weakly connected parts; a group that pays lies within one.
2. Each part is a problem of its own. What borders on it is a partition by itself, so all that the
   part has to know is which of its primitives wait for others through what is around it:

    0 → 1 → 2 → 3, 0 → 4 → 3, 4 apart from all   →   the part {0, 1, 2, 3}, 0 before 3 around it

Parts are solved one after another, those with the most bytes first. Around a part, the groups of
parts before it are as they were chosen, all other primitives by themselves: so the whole can run.
A part may then save less than it could, for groups around it join paths. The bound is what it saves
where there is no group around it. Where these agree for all parts, the partition is the optimum.

The paper takes all edges around a part that could be fused as fused at once; that cuts off more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from taco_py.graph.orchestrate.convexity import contract
from taco_py.graph.orchestrate.dag import Dag, bits, mask_of
from taco_py.graph.orchestrate.partition.edge_program import solve_by_cuts
from taco_py.graph.orchestrate.partition.traffic_problem import (
    Partition,
    TrafficProblem,
    can_be_fused,
    connected_parts,
    contracted,
    expand_groups,
    forced_groups,
)

Solver = Callable[[TrafficProblem, float], Partition]
"""From a problem and seconds to a partition."""

Pairs = tuple[tuple[int, int], ...]


def solve_by_parts(
    problem: TrafficProblem, seconds: float = 10.0, solver: Solver = solve_by_cuts
) -> Partition:
    """Find a partition that saves many bytes, part by part; it says whether it is the optimum.

    seconds  for all parts
    solver   of a part

    Raises ScheduleError where no partition keeps together and apart what it has to.
    """
    inner, order = contracted(problem, forced_groups(problem))
    end = time.perf_counter() + seconds
    part_groups: list[int] = []
    missed, rounds = 0.0, 0
    parts = _parts(inner)
    for number, part in enumerate(parts):
        share = (end - time.perf_counter()) / (len(parts) - number)
        constrained, names = part_of(inner, part, part_groups)
        partition = solver(constrained, share)
        free, _ = part_of(inner, part, ())
        bound, rounds = partition.bound, rounds + partition.rounds
        if _paths(constrained, names) != _paths(free, tuple(bits(part))):
            freely = solver(free, share)
            bound, rounds = freely.bound, rounds + freely.rounds
        missed += max(0.0, bound - partition.saved)
        part_groups += [mask_of(names[p] for p in bits(group)) for group in partition.groups]
    alone = (1 << p for p in bits(inner.dag.all & ~sum(part_groups)))
    groups = expand_groups((*part_groups, *alone), order)
    saved = problem.saved(groups)
    return Partition(groups, saved, saved + missed, rounds)


def _parts(problem: TrafficProblem) -> list[int]:
    """Return the parts of several primitives that edges connect which a group can hold."""
    dag = problem.dag
    edges = [(i, j) for i, j, _ in problem.edges if can_be_fused(problem, dag, i, j)]
    weights = {(i, j): weight for i, j, weight in problem.edges}
    savings = {part: 0.0 for part in connected_parts(edges, dag.all) if part.bit_count() > 1}
    place = {p: part for part in savings for p in bits(part)}
    for edge in edges:
        savings[place[edge[0]]] += weights[edge]
    return sorted(savings, key=lambda part: (-savings[part], part & -part))


def part_of(
    problem: TrafficProblem, part: int, groups: Sequence[int]
) -> tuple[TrafficProblem, tuple[int, ...]]:
    """Return the problem of a part while these groups run around it, and its primitives in order.

    groups  outside of the part; the other primitives outside are by themselves
    """
    dag = problem.dag
    pairs = paths_around(dag, part, groups)
    order = contract(dag, groups) or ()
    names = tuple(p for group in order for p in bits(group & part))
    place = {p: n for n, p in enumerate(names)}
    paths = {(i, j) for i, j in problem.paths if part >> i & part >> j & 1}
    outside_paths = tuple(sorted((place[a], place[b]) for a, b in {*pairs, *paths}))
    inside = [edge for edge in problem.edges if part >> edge[0] & part >> edge[1] & 1]
    return TrafficProblem(
        len(names),
        tuple(sorted((place[i], place[j], weight) for i, j, weight in inside)),
        tuple(
            sorted(mask_of(place[p] for p in bits(a)) for a in problem.conflicts if not a & ~part)
        ),
        (),
        _irreducible_paths(outside_paths, [(place[i], place[j]) for i, j, _ in inside]),
    ), names


def paths_around(dag: Dag, part: int, groups: Sequence[int]) -> set[tuple[int, int]]:
    """Return the pairs of a part between which a path leads outside of the part."""
    starts: dict[int, int] = {}
    pairs = set()
    for group in contract(dag, groups) or ():
        before = dag.reads(group)
        reached = 0
        for other, ends in starts.items():
            if other & before:
                reached |= ends
        if group & part:
            pairs |= {(a, group.bit_length() - 1) for a in bits(reached)}
        else:
            starts[group] = reached | before & part
    return pairs


def _irreducible_paths(paths: Pairs, edges: Sequence[tuple[int, int]]) -> Pairs:
    """Leave out a path around where others with one around it lead from its start to its end.

    1 → 0 around and 0 → 2 inside: a group of 1 and 2 would hold 0, or wait for it and it for the
    group; so a path around from 1 to 2 says nothing more.
    """
    size = 1 + max((end for _, end in paths), default=-1)
    after = [0] * size
    for i, j in (*paths, *edges):
        if j < size:
            after[i] |= 1 << j
    for p in reversed(range(size)):
        for q in bits(after[p]):
            after[p] |= after[q]
    outside = [mask_of(b for a, b in paths if a == p) for p in range(size)]

    def implied(a: int, b: int) -> bool:
        first = any(after[c] >> b & 1 for c in bits(outside[a] & ~(1 << b)))
        return first or any(outside[c] >> b & 1 for c in bits(after[a]))

    return tuple(pair for pair in paths if not implied(*pair))


def _paths(problem: TrafficProblem, names: Sequence[int]) -> set[tuple[int, int]]:
    """Return the paths around of a part's problem, by the names of its primitives."""
    return {(names[a], names[b]) for a, b in problem.paths}
