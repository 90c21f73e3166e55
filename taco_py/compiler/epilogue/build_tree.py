"""Epilogues as trees: a value that several visitors read becomes part of one visitor.

    z = P + b;  t = tanh(z);  t * z + r

    z is read by tanh and by *; all of it passes through that *, its lowest common ancestor:
    +  ( topological ( z = P + b;  tanh(z);  tanh(z) * z ),  r )

(Chen et al. 2024, EVT, section 5.2: DAG to tree.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from taco_py.compiler.epilogue.value_graph import Output, Product, ValueGraph, value_graph
from taco_py.compiler.epilogue.visitors import (
    AuxStore,
    ColumnReduction,
    Compute,
    Leaf,
    Outputs,
    RowReduction,
    ScalarReduction,
    Slot,
    Topological,
    Visitor,
)


def build_tree(product: Product, outputs: Sequence[Output]) -> Visitor:
    """Build the visitor tree of all outputs of a product.

    Raises ValueError for values that are not computed elementwise.
    """
    graph = value_graph(product, outputs)
    return _Builder(graph).tree(len(graph.nodes) - 1, {})


def lowest_common_ancestors(reads: Sequence[Sequence[int]]) -> list[int]:
    """Find, for each node but the last, the first node on all its paths to the last.

    reads  the nodes that each node reads, all of them before it
    """
    readers: list[list[int]] = [[] for _ in reads]
    for number, read in enumerate(reads):
        for operand in read:
            readers[operand].append(number)
    passed: dict[int, frozenset[int]] = {}
    for number in reversed(range(len(reads))):
        common = [passed[reader] for reader in readers[number]]
        passed[number] = frozenset({number}).union(
            frozenset.intersection(*common) if common else ()
        )
    nearest = [min(passed[number] - {number}, default=number) for number in range(len(reads))]
    return nearest


class _Builder:
    """Turns parts of a graph into trees."""

    def __init__(self, graph: ValueGraph) -> None:
        self.graph = graph
        self.ancestors = lowest_common_ancestors(graph.reads)
        self.below: list[frozenset[int]] = []
        counts = [0] * len(graph.nodes)
        for reads in graph.reads:
            self.below.append(frozenset(reads).union(*(self.below[operand] for operand in reads)))
            for number in reads:
                counts[number] += 1
        self.shared = {
            number
            for number, count in enumerate(counts)
            if count > 1 and not isinstance(graph.nodes[number], Leaf)
        }

    def tree(self, number: int, slots: Mapping[int, Slot]) -> Visitor:
        """Return the visitor of a node and all nodes below; `slots` are computed before it."""
        if number in slots:
            return slots[number]
        inside = self._region(number) - slots.keys()
        if not inside:
            return self._plain(number, slots)
        steps: list[Visitor] = []
        inner_slots: dict[int, Slot] = {}  # inner nodes read nothing that is shared further out
        for node in sorted(inside):
            steps.append(self._plain(node, inner_slots))
            inner_slots[node] = Slot(len(steps) - 1)
        steps.append(self._plain(number, inner_slots))
        return Topological(tuple(steps))

    def _plain(self, number: int, slots: Mapping[int, Slot]) -> Visitor:
        """Return the node with the trees of the nodes that it reads."""
        node = self.graph.nodes[number]
        below = [self.tree(operand, slots) for operand in self.graph.reads[number]]
        match node:
            case Compute() | Outputs():
                return replace(node, args=tuple(below))
            case AuxStore() | RowReduction() | ColumnReduction() | ScalarReduction():
                return replace(node, value=below[0])
        return node

    def _region(self, number: int) -> set[int]:
        """Return the nodes to compute once inside this node, for all their paths pass through
        it."""
        shared, below = self.shared & self.below[number], self.below[number]
        inside: set[int] = set()
        frontier = {node for node in shared if self.ancestors[node] == number}
        while frontier:
            inside |= frontier
            inside |= {node for node in below if self.below[node] & inside}
            read = frozenset().union(*(self.below[node] for node in inside))
            frontier = (shared & read) - inside
        return inside & self.shared
