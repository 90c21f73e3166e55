"""Which regions of a graph backends compute, for the sizes of a call.

    annotate by patterns and `supports`  →  merge to convex regions  →  keep those that pay
    →  drop more of them while the whole is expected to take longer than without

A region pays where it saves more than its launch and what is moved. Where both take as long, what
is named first in `backends=` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.graph.backends.backend import Backend, Pattern, labels_of
from taco_py.graph.backends.region_graph import RegionGraph, region_graph
from taco_py.graph.backends.registered import Preference, Regions
from taco_py.graph.backends.sized_values import SizedValues
from taco_py.graph.orchestrate.dag import Dag, bits, mask_of
from taco_py.graph.orchestrate.offload_regions import (
    Atom,
    GraphPartition,
    OffloadCost,
    OffloadRegion,
    OffloadTarget,
    RegionDecision,
    annotate,
    partition_graph,
    run_regions,
)
from taco_py.graph.orchestrate.region_patterns import CompositePattern, Match
from taco_py.graph.run.partition_by_stages import Region, views_needed, with_views
from taco_py.graph.selection.stages_around import staged
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.diagnostics.suggest import with_suggestion

TIE = 0.03
"""The share of the host's seconds by which prices differ that count as equal. What is split between
the host and a backend has to gain more: values pass through memory between them."""

LeftOut = Mapping[tuple[str, tuple[str, ...]], str]
"""Why regions are left out that failed, by backend and the names of primitives."""


@dataclass(frozen=True, slots=True, eq=False)
class OffloadChoice:
    """Regions for backends, with what was decided of each that could be one.

    host    seconds that the graph is expected to take without backends
    total   seconds with those that were chosen
    """

    values: SizedValues
    regions: tuple[OffloadRegion, ...]
    decisions: tuple[RegionDecision, ...]
    host: float
    total: float

    def partition(self) -> tuple[Region, ...]:
        """Return the graph's regions in the order in which they run."""
        dag, regions = self.values.dag, []
        for run in staged(dag.dag, [region.members for region in self.regions]):
            nodes = tuple(dag.nodes[p] for p in bits(run.members))
            outputs = tuple(dag.nodes[p].name for p in bits(dag.dag.read_outside(run.members)))
            target = self.regions[run.place].target if run.place >= 0 else ""
            regions.append(Region(nodes, outputs, run.kernel, target))
        elsewhere = {node.name for region in regions if region.target for node in region.nodes}
        return tuple(with_views(dag.graph, regions, views_needed(dag.graph, elsewhere)))


def choose_offload(values: SizedValues, preferred: Preference, left_out: LeftOut) -> OffloadChoice:
    """Choose the regions that backends compute, for the sizes of a call."""
    chooser = _Chooser(values, preferred, left_out)
    if preferred.regions is not None:
        return chooser.those_of_the_user(preferred.regions)
    targets = [chooser.target(backend) for backend in preferred.backends if not backend.health.out]
    partition = partition_graph(values.dag.dag, targets)
    return chooser.those_that_pay_together(partition)


class BackendFaultError(Exception):
    """A function of a backend raised when it was asked what it computes, and at what cost."""

    def __init__(self, backend: Backend, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.backend = backend


def _call_backend(backend: Backend, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of a backend. Raises BackendFaultError for what it raises."""
    try:
        return function(*args)
    except Exception as error:
        raise BackendFaultError(backend, error) from error


def _seconds(function: Callable[..., Any], *args: Any) -> float:
    """Return the seconds that a function gives. Raises ValueError for what is no number of them."""
    seconds = function(*args)
    is_number = isinstance(seconds, int | float | np.floating | np.integer)
    if not is_number or not seconds >= 0:
        raise ValueError(f"seconds gave {seconds!r:.60}, no number from 0 on")
    return float(seconds)


def _truth(function: Callable[..., Any], *args: Any) -> bool:
    return bool(function(*args))


class _Chooser:
    """Prices of regions of a graph at the sizes of a call."""

    def __init__(self, values: SizedValues, preferred: Preference, left_out: LeftOut) -> None:
        self.values = values
        self.preferred = preferred
        self.left_out = left_out
        self.backends = {backend.name: backend for backend in preferred.backends}
        self.sparsity = {n: fact.sparsity for n, fact in values.facts.items() if fact.sparsity}

    def target(self, backend: Backend) -> OffloadTarget:
        """Return a backend as a target of the search for regions."""

        def supports(dag: Dag, primitive: int) -> bool:
            return self.supports(backend, primitive)

        name = backend.name
        cost = OffloadCost(
            lambda members: self.gain(backend, members),
            lambda members: self.transfer(backend, members),
            backend.launch,
            backend.most_primitives,
            lambda members: self.slack(backend, members),
        )
        patterns = tuple(self.pattern(backend, pattern) for pattern in backend.patterns)
        return OffloadTarget(name, patterns, supports, cost)

    def supports(self, backend: Backend, primitive: int) -> bool:
        """Tell whether a backend computes a primitive by itself."""
        if backend.supports is None or not self.values.is_free(primitive):
            return False
        node = self.values.dag.nodes[primitive]
        return bool(_call_backend(backend, _truth, backend.supports, node, self.values.facts))

    def pattern(self, backend: Backend, pattern: Pattern) -> CompositePattern:
        """Return a backend's pattern, with the condition that its matches have to satisfy."""
        labels = labels_of(pattern.compiled(lambda dag, match: True))

        def holds(dag: Dag, match: Match) -> bool:
            if not all(map(self.values.is_free, bits(match.members))):
                return False
            bound = {name: match.value(name) for name in labels if name != "_"}
            bound["root"] = match.root
            nodes = {n: self.values.dag.nodes[p] for n, p in bound.items() if p >= 0}
            facts = {n: self.values.facts[self.values.name_of(p)] for n, p in bound.items()}
            return bool(_call_backend(backend, _truth, pattern.holds, nodes, facts))

        return pattern.compiled(holds)

    # ------------------------------------------------------------ prices

    def region(self, members: int, binds: bool = True) -> RegionGraph:
        """Return primitives as a graph of their own."""
        dag = self.values.dag
        names = [dag.nodes[p].name for p in bits(members)]
        outputs = [dag.nodes[p].name for p in bits(dag.dag.read_outside(members))]
        return region_graph(self.values.graph, names, outputs, self.sparsity, binds)

    def on_host(self, members: int, regions: Sequence[int] = ()) -> float:
        """Return the seconds that the host takes for primitives, but for those in regions."""
        dag, seconds = self.values.dag, 0.0
        for run in staged(dag.dag, regions, members):
            if run.place < 0:
                nodes = tuple(dag.nodes[p] for p in bits(run.members))
                outputs = tuple(dag.nodes[p].name for p in bits(dag.dag.read_outside(run.members)))
                seconds += self.values.prices.of(Region(nodes, outputs, run.kernel))
        return seconds

    def seconds(self, backend: Backend, members: int) -> float:
        """Return the seconds that a backend takes for primitives, without launch and transfer."""
        if backend.seconds is None:
            return 0.0
        region = self.region(members).graph
        return float(_call_backend(backend, _seconds, backend.seconds, region, self.values.facts))

    def gain(self, backend: Backend, members: int) -> float:
        """Return the seconds that a backend saves."""
        if backend.always:
            return inf
        host = self.on_host(members)
        return inf if host == inf else host - self.seconds(backend, members)

    def slack(self, backend: Backend, members: int) -> float:
        """Return how much longer a backend may take that is preferred to the host."""
        place = self.preferred.backends.index(backend)
        if backend.always or place >= self.preferred.before:
            return 0.0
        host = self.on_host(members)
        return TIE * host if isfinite(host) else 0.0

    def transfer(self, backend: Backend, members: int) -> float:
        """Return the seconds to move the inputs and outputs of a region."""
        region = self.region(members, backend.binds)
        return backend.move_seconds(self.values.bytes_of([*region.reads, *region.graph.outputs]))

    def of_region(self, region: OffloadRegion) -> float:
        """Return the seconds that a region takes with launch and transfer."""
        backend = self.backends[region.target]
        return (
            self.seconds(backend, region.members)
            + backend.launch
            + self.transfer(backend, region.members)
        )

    # ------------------------------------------------------------ the user's partition

    def those_of_the_user(self, user_regions: Regions) -> OffloadChoice:
        """Take the regions that a user states, whatever they cost.

        Raises ScheduleError where they cannot each be one step, or their backend cannot have them.
        """
        dag, candidates = self.values.dag, list[OffloadRegion]()
        parts = user_regions(self.values.graph) if callable(user_regions) else user_regions
        for name, regions in parts.items():
            if name not in self.backends:
                raise ScheduleError(
                    f"Expected regions= of {', '.join(self.backends)}, found {name!r}",
                    hint="name it in backends=, too",
                )
            for members in map(self._members, regions):
                self._check_support(self.backends[name], members)
                candidates.append(OffloadRegion(name, members, (Atom(name, members),)))
        run_regions(dag.dag, candidates)
        reason = "stated by the user"
        decisions = (self._unless_it_failed(RegionDecision(e, True, reason)) for e in candidates)
        checked = tuple(decisions)
        accepted = tuple(
            e.region for e in checked if e.keep and not self.backends[e.region.target].health.out
        )
        return OffloadChoice(self.values, accepted, checked, inf, inf)

    def _members(self, names: Sequence[str]) -> int:
        """Return the primitives of a region by their names; layouts belong to what reads them."""
        numbers = {node.name: p for p, node in enumerate(self.values.dag.nodes)}
        by_name = self.values.graph.by_name
        for name in names:
            if name not in by_name:
                raise ScheduleError(
                    f"Expected regions= to name primitives, found {name!r}",
                    hint=with_suggestion(
                        "f.graph(…).explain() lists the primitives", str(name), by_name
                    ),
                )
        members = mask_of(numbers[name] for name in names if name in numbers)
        if not members:
            raise ScheduleError(f"Expected a region to compute something, found {[*names]}")
        return members

    def _check_support(self, backend: Backend, members: int) -> None:
        """Raise ScheduleError for a primitive that no pattern matches and no rule supports."""
        targets = [self.target(backend)]
        left = members
        for atom in annotate(self.values.dag.dag, targets):
            if not atom.members & ~members:
                left &= ~atom.members
        if left:
            node = self.values.dag.nodes[next(bits(left))]
            what = f"{node.operator} {node.get('function') or node.get('call') or ''}".strip()
            raise ScheduleError(
                f"Expected a region that {backend.name} computes, found {node.name} {what} "
                f"({node.place or 'the graph'})",
                hint="leave it out of the region: it is sparse, or the backend does not support it",
            )

    # ------------------------------------------------------------ the whole

    def those_that_pay_together(self, partition: GraphPartition) -> OffloadChoice:
        """Leave regions out that failed; then while the whole takes longer with them."""
        everything = self.values.dag.dag.live
        decisions = [self._unless_it_failed(self._mark_always(e)) for e in partition.decisions]
        host = self.on_host(everything)
        while True:
            regions = [decision.region for decision in decisions if decision.keep]
            total = self.on_host(everything, [region.members for region in regions])
            total += sum(map(self.of_region, regions))
            slack = sum(self.slack(self.backends[e.target], e.members) for e in regions)
            free = [region for region in regions if not self.backends[region.target].always]
            members = mask_of(p for region in regions for p in bits(region.members))
            is_whole = not everything & ~members
            limit = host + slack if is_whole else host * (1 - TIE)
            if not free or not isfinite(host) or total <= limit:
                return OffloadChoice(
                    self.values, tuple(regions), tuple(decisions), host, total
                )  # fmt: skip
            least = min(free, key=lambda e: self.gain(self.backends[e.target], e.members))
            reason = f"host: the graph takes {total:.3g} s with it, {host:.3g} s without"
            decisions = [
                replace(e, keep=False, reason=reason) if e.region is least else e for e in decisions
            ]

    def _mark_always(self, decision: RegionDecision) -> RegionDecision:
        if not self.backends[decision.region.target].always:
            return decision
        return replace(decision, reason=f"{decision.reason.partition('pays:')[0]}always")

    def _unless_it_failed(self, decision: RegionDecision) -> RegionDecision:
        nodes = self.values.dag.nodes
        names = tuple(nodes[p].name for p in bits(decision.region.members))
        reason = self.left_out.get((decision.region.target, names))
        return (
            decision if reason is None else replace(decision, keep=False, reason=f"host: {reason}")
        )
