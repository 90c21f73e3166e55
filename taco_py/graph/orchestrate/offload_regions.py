"""Regions of a graph that other code generators compute (Chen et al. 2021, BYOC, section 3).

    patterns        composites that a target computes as one
    annotation      single primitives that it supports
    merging         both become regions, as large as they can be while the graph stays acyclic
    cost            regions too large are split, those that would not pay stay on the host

A region is maximal: no other set of regions of its target that hang together could be one. For, if
one could, some edge between two of them would be their only path, and these two would be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from codegen.records import dataclass
from taco_py.graph.orchestrate.convexity import check_regions, contract
from taco_py.graph.orchestrate.dag import Dag, bits, mask_of
from taco_py.graph.orchestrate.execution_states import depth_first
from taco_py.graph.orchestrate.region_patterns import CompositePattern, Match, group_composites
from taco_py.language.diagnostics.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class OffloadCost:
    """When a region pays: its gain and slack have to be more than its launch and what is moved.

    gain             seconds that the target saves for a region, without launch and transfer
    transfer         seconds to move what a region reads and writes
    launch           seconds to call a region
    most_primitives  primitives of a region, beyond which it is split
    slack            seconds by which a region may take longer, as one of a target that is preferred
    """

    gain: Callable[[int], float]
    transfer: Callable[[int], float]
    launch: float = 0.0
    most_primitives: int | None = None
    slack: Callable[[int], float] = lambda members: 0.0

    def __post_init__(self) -> None:
        if self.most_primitives is not None and self.most_primitives < 1:
            raise ScheduleError(
                f"Expected regions of at least 1 primitive, found {self.most_primitives}"
            )


@dataclass(frozen=True, slots=True)
class OffloadTarget:
    """What a code generator computes: composites, single primitives, and when it pays."""

    name: str
    patterns: tuple[CompositePattern, ...] = ()
    supports: Callable[[Dag, int], bool] = lambda dag, primitive: False
    cost: OffloadCost | None = None


@dataclass(frozen=True, slots=True)
class Atom:
    """What is in one region or on the host, never in two: a composite or a primitive."""

    target: str
    members: int
    match: Match | None = None


@dataclass(frozen=True, slots=True)
class OffloadRegion:
    """Primitives that a target computes by one call, made of these atoms."""

    target: str
    members: int
    atoms: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class RegionDecision:
    """What became of a region, and why."""

    region: OffloadRegion
    keep: bool
    reason: str

    def __str__(self) -> str:
        members = ", ".join(map(str, bits(self.region.members)))
        return f"{self.region.target} {{{members}}}: {self.reason}"


@dataclass(frozen=True, slots=True)
class GraphPartition:
    """A graph as calls in order: regions of targets, and primitives of the host between them.

    order  the members of each call
    """

    regions: tuple[OffloadRegion, ...]
    order: tuple[int, ...]
    decisions: tuple[RegionDecision, ...]

    def region_of(self, members: int) -> OffloadRegion | None:
        """Return the region with these members, None where they are the host's."""
        return next((region for region in self.regions if region.members == members), None)


def partition_graph(dag: Dag, targets: Sequence[OffloadTarget]) -> GraphPartition:
    """Choose the regions of all targets: what two could compute goes to the first of them."""
    costs = {target.name: target.cost for target in targets}
    decisions: list[RegionDecision] = []
    for region in merge_regions(dag, annotate(dag, targets)):
        decisions += _decide(dag, region, costs[region.target])
    regions = tuple(decision.region for decision in decisions if decision.keep)
    return GraphPartition(regions, run_regions(dag, regions), tuple(decisions))


def run_regions(dag: Dag, regions: Sequence[OffloadRegion]) -> tuple[int, ...]:
    """Return all calls in order, when regions, a user's say, can each be one.

    Raises ScheduleError with the path that shows where they cannot.
    """
    sets = [region.members for region in regions]
    check_regions(dag, sets)
    order = contract(dag, sets)
    assert order is not None
    return order


def annotate(dag: Dag, targets: Sequence[OffloadTarget]) -> tuple[Atom, ...]:
    """Return the composites and the primitives that targets compute, by the first one that can."""
    free, atoms = dag.live, list[Atom]()
    for target in targets:
        for match in group_composites(dag, target.patterns, free):
            atoms.append(Atom(target.name, match.members, match))
            free &= ~match.members
        for p in bits(free):
            if target.supports(dag, p):
                atoms.append(Atom(target.name, 1 << p))
                free &= ~(1 << p)
    return tuple(sorted(atoms, key=lambda atom: atom.members & -atom.members))


def merge_regions(dag: Dag, atoms: Sequence[Atom]) -> tuple[OffloadRegion, ...]:
    """Merge atoms of one target along edges until no two regions can be one."""
    owners = {atom.members: atom.target for atom in atoms}
    regions = list(owners)
    while (merged := _merge_two(dag, regions, owners)) is not None:
        regions = merged
    return tuple(
        OffloadRegion(owners[members], members, tuple(a for a in atoms if a.members & members))
        for members in regions
    )


def _merge_two(dag: Dag, regions: list[int], owners: dict[int, str]) -> list[int] | None:
    """Return the regions with the first two merged that can be, None where none can."""
    for left in regions:
        read = dag.after(left) & ~left
        for right in regions:
            if right == left or not right & read or owners[left] != owners[right]:
                continue
            if not dag.reads(right) & left:
                continue
            merged = [other for other in regions if other not in (left, right)] + [left | right]
            if contract(dag, merged) is not None:
                owners[left | right] = owners[left]
                return sorted(merged, key=lambda members: members & -members)
    return None


def _decide(dag: Dag, region: OffloadRegion, cost: OffloadCost | None) -> list[RegionDecision]:
    """Split a region that is too large, and keep the parts that pay."""
    if cost is None:
        return [RegionDecision(region, True, "no cost rule")]
    parts = list(split_region(dag, region, cost.most_primitives))
    count = region.members.bit_count()
    split = f"one of {len(parts)} parts of {count} primitives, " if len(parts) > 1 else ""
    decisions = []
    for part in parts:
        gain, transfer = cost.gain(part.members), cost.transfer(part.members)
        pays = gain > cost.launch + transfer
        as_long = gain + cost.slack(part.members) > cost.launch + transfer
        word = "pays" if pays else "preferred, as it takes as long" if as_long else "host"
        reason = f"saves {gain:.3g} s, launch {cost.launch:.3g} s, transfer {transfer:.3g} s"
        decisions.append(RegionDecision(part, pays or as_long, f"{split}{word}: {reason}"))
    return decisions


def split_region(dag: Dag, region: OffloadRegion, most: int | None) -> Iterator[OffloadRegion]:
    """Yield parts of a region of at most so many primitives, in the order in which they run.

    Parts are as few as they can be and about equal; of the cuts near the middle that is taken which
    the fewest values cross. No composite is cut: one that is larger than `most` stays whole.
    """
    order = _atoms_in_order(dag, region)
    while order:
        length = _first_part(dag, order, most)
        atoms, order = order[:length], order[length:]
        yield OffloadRegion(region.target, _members(atoms), tuple(atoms))


def _first_part(dag: Dag, order: Sequence[Atom], most: int | None) -> int:
    """Return how many atoms of an order the first part takes."""
    sizes = list(accumulate(atom.members.bit_count() for atom in order))
    if most is None or sizes[-1] <= most:
        return len(order)
    total, parts = sizes[-1], -(-sizes[-1] // most)
    ideal, slack = total / parts, max(total // 8, 1)
    least = total - (parts - 1) * most
    allowed = [n for n, size in enumerate(sizes, 1) if size <= most] or [1]
    allowed = [n for n in allowed if sizes[n - 1] >= least] or allowed
    near = [n for n in allowed if abs(sizes[n - 1] - ideal) <= slack] or allowed[-1:]
    members = _members(order)

    def crossed(length: int) -> tuple[int, float, int]:
        rest = members & ~_members(order[:length])
        values = dag.reads(rest) & members
        return values.bit_count(), abs(sizes[length - 1] - ideal), -length

    return min(near, key=crossed)


def _atoms_in_order(dag: Dag, region: OffloadRegion) -> list[Atom]:
    """Return the atoms depth first, when none waits for a later one."""
    places = {p: n for n, p in enumerate(depth_first(dag, region.members))}
    last = {atom.members: max(places[p] for p in bits(atom.members)) for atom in region.atoms}
    order: list[Atom] = []
    waiting = sorted(region.atoms, key=lambda atom: last[atom.members])
    while waiting:
        placed = _members(order)
        ready = next(
            atom for atom in waiting if not dag.reads(atom.members) & region.members & ~placed
        )
        order.append(ready)
        waiting.remove(ready)
    return order


def _members(atoms: Sequence[Atom]) -> int:
    return mask_of(p for atom in atoms for p in bits(atom.members))
