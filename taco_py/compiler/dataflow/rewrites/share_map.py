"""Run two maps as one, where a slab of the second reads what the same slab of the first stores.

parallel i: A;  parallel i: B   →   parallel i: A; B
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taco_py.compiler.dataflow.nodes import Dataflow, ParallelMap
from taco_py.compiler.dataflow.rewrites.rewrite import Rewrite, RewrittenGraph, read_by, written_by


def _sites(graph: Dataflow) -> Iterator[RewrittenGraph]:
    maps = graph.maps
    for place, first in enumerate(maps):
        passed: list[ParallelMap] = []
        for number in range(place + 1, len(maps)):
            second = maps[number]
            if _joins(graph, first, second) and not any(_needs(second, one) for one in passed):
                merged = replace(first, passes=(*first.passes, *second.passes))
                rest = (*maps[place + 1 : number], *maps[number + 1 :])
                sites = ",".join(sorted(written_by(second)))
                yield RewrittenGraph(replace(graph, maps=(*maps[:place], merged, *rest)), sites)
            passed.append(second)


def _needs(later: ParallelMap, earlier: ParallelMap) -> bool:
    """Tell whether a map reads or writes a buffer that an earlier one writes."""
    return not (read_by(later) | written_by(later)).isdisjoint(written_by(earlier))


def _joins(graph: Dataflow, first: ParallelMap, second: ParallelMap) -> bool:
    """Tell whether a slab of the second map reads results of the same slab of the first alone."""
    if first.slab != second.slab or written_by(first) & written_by(second):
        return False
    slab = {index.name for index in first.slab}
    common = written_by(first) & read_by(second)
    return all(slab <= {*graph.buffer(name).indices} for name in common)


REWRITE = Rewrite("share_map", "parallel i: A;  parallel i: B", "parallel i: A; B", _sites)
