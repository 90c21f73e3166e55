"""A graph of primitives as the bit masks that kernels are chosen from, and back to regions.

    p0 = reduce sum(x);  p1 = broadcast(p0);  p2 = map divide(x, p1)
    →  0 reduce(x0); 1 map(x0, 0); outputs 1                p1 belongs to what reads it

Layouts and broadcasts make nothing and are no primitives there. What only NumPy computes is
`alone`, what is compared with itself is to be computed `once`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codegen.records import dataclass
from taco_py.graph.graph_builder import is_layout
from taco_py.graph.nodes import Graph, Leaf, Node
from taco_py.graph.orchestrate.candidate_kernels import Kernel, make_kernel
from taco_py.graph.orchestrate.dag import Dag, bits, make_dag, mask_of
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.graph.run.partition_by_stages import (
    Region,
    base_of,
    views_needed,
    with_views,
)
from taco_py.graph.selection.compared_primitives import compared_with_themselves


@dataclass(frozen=True, slots=True, eq=False)
class GraphDag:
    """A graph of primitives with its Dag.

    nodes  the node of each primitive
    """

    graph: Graph
    nodes: tuple[Node, ...]
    dag: Dag

    def region(self, kernel: Kernel) -> Region:
        """Return the region that a kernel computes."""
        nodes = tuple(self.nodes[p] for p in bits(kernel.members))
        outputs = tuple(self.nodes[p].name for p in bits(kernel.outputs))
        return Region(nodes, outputs, not kernel.members & self.dag.flagged("alone"))

    def regions(self, kernels: Iterable[Kernel]) -> tuple[Region, ...]:
        """Return kernels in order as regions, with the views that NumPy or the caller reads."""
        regions = [self.region(kernel) for kernel in kernels]
        return tuple(with_views(self.graph, regions, views_needed(self.graph)))

    def kernel(self, region: Region) -> Kernel | None:
        """Return a region as a kernel, None of one that holds views alone."""
        numbers = {node.name: p for p, node in enumerate(self.nodes)}
        members = mask_of(numbers[n.name] for n in region.nodes if n.name in numbers)
        return make_kernel(self.dag, members) if members else None


def dag_of_graph(graph: Graph, leaves: Sequence[Leaf] | None = None) -> GraphDag:
    """Number the primitives of a graph that make something.

    leaves  what are arguments of primitives besides; the inputs, where it is left out
    """
    nodes = tuple(node for node in graph.nodes if not is_layout(node))
    numbers = {node.name: p for p, node in enumerate(nodes)}
    numbers |= {leaf.name: ~k for k, leaf in enumerate(graph.inputs if leaves is None else leaves)}
    by_name = graph.by_name
    arguments = []
    for node in nodes:
        read = (base_of(by_name, name) for name in node.inputs)
        arguments.append(tuple(numbers[name] for name in read if name in numbers))
    results = {numbers.get(base_of(by_name, name), -1) for name in graph.outputs}
    alone = mask_of(p for p, node in enumerate(nodes) if node.operator not in PRIMITIVES)
    compared = compared_with_themselves(nodes, by_name)
    dag = make_dag(
        arguments,
        mask_of(p for p in results if p >= 0),
        [str(node.get("function") or node.get("call") or node.operator) for node in nodes],
        {"alone": alone, "once": mask_of(numbers[name] for name in compared if name in numbers)},
    )
    return GraphDag(graph, nodes, dag)
