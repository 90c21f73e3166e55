"""Rewrite a dataflow graph as long as its traffic falls; no rewrite raises the bytes at any memory.

    optimize(graph, sizes, caches)   →   the graph, and which rewrite saved what

A rewrite is taken where no component of the traffic rises, and one falls or the graph is shorter.
So the order of rewrites needs no search back.
"""

from __future__ import annotations

from codegen.records import dataclass
from taco_py.compiler.dataflow.moved_bytes import Caches, Sizes, Traffic, traffic
from taco_py.compiler.dataflow.nodes import Dataflow
from taco_py.compiler.dataflow.rewrites.rewrite import Rewrite
from taco_py.compiler.dataflow.rewrites.rewrite_table import REWRITES


@dataclass(frozen=True, slots=True)
class Saved:
    """A rewrite that was taken, and the graph and its traffic after it."""

    rewrite: str
    site: str
    graph: Dataflow
    after: Traffic


@dataclass(frozen=True, slots=True)
class Optimized:
    """A graph after all rewrites, the graph at first, and the rewrites that were taken."""

    graph: Dataflow
    first: Dataflow
    before: Traffic
    after: Traffic
    saved: tuple[Saved, ...]


def optimize(
    graph: Dataflow, sizes: Sizes, caches: Caches, rewrites: tuple[Rewrite, ...] = REWRITES
) -> Optimized:
    """Rewrite a graph until no rewrite lowers its traffic or makes it shorter."""
    first = graph
    before = current = traffic(graph, sizes, caches)
    saved: list[Saved] = []
    while True:
        for rewrite in rewrites:
            step = _first_gain(graph, current, rewrite, sizes, caches)
            if step is not None:
                graph, entry = step
                saved.append(entry)
                current = entry.after
                break
        else:
            return Optimized(graph, first, before, current, tuple(saved))


def _first_gain(
    graph: Dataflow, current: Traffic, rewrite: Rewrite, sizes: Sizes, caches: Caches
) -> tuple[Dataflow, Saved] | None:
    """Return the graph after a rewrite at the first site where it pays; None where it pays
    nowhere."""
    for variant in rewrite.sites(graph):
        after = traffic(variant.graph, sizes, caches)
        if after.rises_from(current):
            continue
        if after != current or length(variant.graph) < length(graph):
            return variant.graph, Saved(rewrite.name, variant.site, variant.graph, after)
    return None


def length(graph: Dataflow) -> int:
    """Count the maps, passes and instructions of a graph."""
    passes = [one for map in graph.maps for one in map.passes]
    return len(graph.maps) + len(passes) + sum(len(one.body) for one in passes)
