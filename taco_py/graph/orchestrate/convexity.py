"""Whether regions can each run as one step: the one predicate that all searches ask.

A region is convex where no path leaves it and enters it again. Regions that are each convex may
still wait for each other: with p → s and r → q, {p, q} and {r, s} are convex, but neither can run
first. What has to hold is that the graph is acyclic after each region became one node:

    find_violation(dag, regions) is None   ⇔   the contracted graph is acyclic

For one region this is convexity. A violation names the edges of a shortest cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from codegen.records import dataclass
from taco_py.graph.orchestrate.dag import Dag, bits
from taco_py.language.diagnostics.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class Violation:
    """Regions that wait for each other.

    edges  each (from, to), from one group to the next; the last one enters the first group
    """

    dag: Dag
    regions: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        """Show the path: `→` is an edge, `…` stays inside of a region."""
        text = self.dag.label(self.edges[0][0])
        for (_, end), (start, _) in pairwise((*self.edges, self.edges[0])):
            text += f" → {self.dag.label(end)}"
            if end != start and (end, start) != (self.edges[-1][1], self.edges[0][0]):
                text += f" … {self.dag.label(start)}"
        return text


def contract(dag: Dag, regions: Sequence[int]) -> tuple[int, ...] | None:
    """Return all groups in an order in which they can run, None where none exists.

    Groups are the regions, and each primitive outside of them by itself.
    Raises ScheduleError where two regions share a primitive.
    """
    groups, reads = _grouped(dag, regions)
    order: list[int] = []
    waiting, executed = list(range(len(groups))), 0
    while waiting:
        left = []
        for group in waiting:
            if reads[group] & ~executed:
                left.append(group)
            else:
                order.append(groups[group])
                executed |= groups[group]
        if len(left) == len(waiting):
            return None
        waiting = left
    return tuple(order)


def is_convex(dag: Dag, region: int) -> bool:
    """Return whether no path leaves the region and enters it again."""
    return not dag.before(region) & dag.after(region) & ~region


def find_violation(dag: Dag, regions: Sequence[int]) -> Violation | None:
    """Return a shortest cycle between groups, None where the contracted graph is acyclic."""
    return min(find_violations(dag, regions), key=lambda cycle: len(cycle.edges), default=None)


def find_violations(dag: Dag, regions: Sequence[int]) -> tuple[Violation, ...]:
    """Return a shortest cycle through each region that is on one; none where all can run."""
    if contract(dag, regions) is not None:
        return ()
    cycles = (_cycle_through(dag, regions, region) for region in regions)
    return tuple(Violation(dag, tuple(regions), cycle) for cycle in cycles if cycle is not None)


def check_regions(dag: Dag, regions: Sequence[int]) -> None:
    """Refuse regions that cannot each run as one step, with the path that shows it.

    Raises ScheduleError.
    """
    violation = find_violation(dag, regions)
    if violation is not None:
        several = len({_region_of(regions, p) for edge in violation.edges for p in edge} - {-1}) > 1
        what = "regions that do not wait for each other" if several else "a convex region"
        raise ScheduleError(
            f"Expected {what}, found the path {violation}",
            hint="put all primitives of the path into one region, or split a region on it",
        )


def _grouped(dag: Dag, regions: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the groups, by their first primitives, and the primitives that each reads of
    others.
    """
    covered = 0
    for region in regions:
        if region & covered:
            shared = dag.label(next(bits(region & covered)))
            raise ScheduleError(f"Expected disjoint regions, found {shared} in two of them")
        covered |= region
    groups = [region for region in regions if region]
    groups += [1 << p for p in bits(dag.all & ~covered)]
    groups.sort(key=lambda group: group & -group)
    return groups, [dag.reads(group) for group in groups]


def _region_of(regions: Sequence[int], primitive: int) -> int:
    """Return the place of the region that a primitive is in, -1 where it is in none."""
    return next((n for n, region in enumerate(regions) if region >> primitive & 1), -1)


def _cycle_through(
    dag: Dag, regions: Sequence[int], start: int
) -> tuple[tuple[int, int], ...] | None:
    """Return the edges of a shortest cycle that leaves a region and enters it again."""
    came: dict[int, tuple[int, int, int]] = {}
    wave = [start]
    while wave:
        after = []
        for group in wave:
            for p in bits(group):
                for q in bits(dag.successors[p] & ~group):
                    place = _region_of(regions, q)
                    target = regions[place] if place >= 0 else 1 << q
                    if target == start:
                        return _edges_back(came, start, (group, p, q))
                    if target not in came:
                        came[target] = (group, p, q)
                        after.append(target)
        wave = after
    return None


def _edges_back(
    came: dict[int, tuple[int, int, int]], start: int, last: tuple[int, int, int]
) -> tuple[tuple[int, int], ...]:
    edges = [last[1:]]
    group = last[0]
    while group != start:
        group, p, q = came[group]
        edges.append((p, q))
    return tuple(reversed(edges))
