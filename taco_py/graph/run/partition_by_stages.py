"""The simplest partition of a graph of primitives: as much as possible in one kernel call.

    stage   0            1                  2
            a + b   →    np.reshape(v1)  →  exp(v2) / v3

What NumPy computes is in odd stages, what kernels compute in even ones, each as early as its
operands allow, kernels then as late as their readers allow. Paths only lead to later stages, so a
stage is convex: no path leaves it and comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from codegen.records import dataclass
from taco_py.graph.graph_builder import is_layout
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.primitives.primitive_table import PRIMITIVES


@dataclass(frozen=True, slots=True)
class Region:
    """Primitives that are computed together, in order.

    kernel   whether kernels compute them, else NumPy, one by one
    outputs  the values that others read, or that are results
    target   the backend that computes them instead, "" for none
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    kernel: bool
    target: str = ""


def partition_by_stages(graph: Graph) -> tuple[Region, ...]:
    """Cut a graph into regions in the order in which they run."""
    views = views_needed(graph)
    stages = _latest(graph, _earliest(graph))
    regions = []
    for stage in sorted({*stages.values()}):
        kernel = stage % 2 == 0
        nodes = tuple(
            node for node in graph.nodes if stages[node.name] == stage and not is_layout(node)
        )
        if nodes:
            regions.append(Region(nodes, (), kernel))
    ordered = with_views(graph, regions, views)
    return tuple(_with_outputs(graph, region, ordered) for region in ordered)


def base_of(graph: Mapping[str, Node], name: str) -> str:
    """Find the value that layouts show in another way."""
    while name in graph and is_layout(graph[name]):
        (name,) = graph[name].inputs
    return name


def views_needed(graph: Graph, elsewhere: Collection[str] = ()) -> frozenset[str]:
    """Return the layouts that are results, or that NumPy reads: arrays of their own.

    elsewhere  primitives of regions that make their own layouts
    """
    read = {
        name
        for node in graph.nodes
        if node.operator == "numpy" and node.name not in elsewhere
        for name in node.inputs
    }
    nodes = graph.by_name
    views: set[str] = set()
    for name in (*graph.outputs, *read):
        while name in nodes and is_layout(nodes[name]):
            views.add(name)
            (name,) = nodes[name].inputs
    return frozenset(views)


def _earliest(graph: Graph) -> dict[str, int]:
    stages: dict[str, int] = {}
    for node in graph.nodes:
        before = max((stages.get(name, -1) for name in node.inputs), default=-1)
        if is_layout(node):
            stages[node.name] = before
        elif node.operator in PRIMITIVES:
            stages[node.name] = max(before + before % 2, 0)
        else:
            stages[node.name] = before + (1 - before % 2)
    return stages


def _latest(graph: Graph, stages: dict[str, int]) -> dict[str, int]:
    """Put kernels into the stage of their first reader."""
    readers = graph.readers()
    for node in reversed(graph.nodes):
        if node.operator in PRIMITIVES and node.name not in graph.outputs and node.name in readers:
            after = min(stages[reader.name] for reader in readers[node.name])
            if is_layout(node):
                stages[node.name] = after
            else:
                stages[node.name] = max(stages[node.name], after - after % 2)
    return stages


def with_views(graph: Graph, regions: Sequence[Region], views: frozenset[str]) -> list[Region]:
    """Put each needed view right after its base, and NumPy's primitives one by one.

    A region without outputs is taken to make all that is in it.
    """
    nodes = graph.by_name
    waiting = [node for node in graph.nodes if node.name in views]
    defined = {leaf.name for leaf in graph.leaves}
    ordered: list[Region] = []

    def put() -> None:
        for node in tuple(waiting):
            if base_of(nodes, node.name) in defined:
                waiting.remove(node)
                defined.add(node.name)
                ordered.append(Region((node,), (), False))

    put()
    for region in regions:
        parts = (
            (region,)
            if region.kernel or region.target
            else tuple(Region((node,), (), False) for node in region.nodes)
        )
        for part in parts:
            ordered.append(part)
            defined.update(part.outputs or (node.name for node in part.nodes))
            put()
    return ordered


def _with_outputs(graph: Graph, region: Region, regions: Sequence[Region]) -> Region:
    """Return the region with the outputs that other regions or the caller read."""
    nodes = graph.by_name
    members = {node.name for node in region.nodes}
    read = {base_of(nodes, name) for name in graph.outputs} | {*graph.outputs}
    for other in regions:
        if other is not region:
            read |= {base_of(nodes, name) for node in other.nodes for name in node.inputs}
            read |= {name for node in other.nodes for name in node.inputs}
            read |= {base_of(nodes, node.name) for node in other.nodes}
    return Region(
        region.nodes,
        tuple(node.name for node in region.nodes if node.name in read & members),
        region.kernel,
    )
