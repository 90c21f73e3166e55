"""A region of a graph as a graph of its own, which can be compiled and kept as text.

    v1 = einsum(Q, K); v2 = divide(v1, n0); v3 = exp(v2)      the region {v2, v3}
    →   inputs v1: float64[v1.shape[0],…], n0;  v2 = divide(v1, n0);  v3 = exp(v2);  return v3

Sizes are those of the region's own inputs; those that none of them has are inputs themselves.
Numbers that each call computes are inputs, and numbers that are the same in all calls constants.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.graph.extents import Extent, const, evaluated
from taco_py.graph.graph_builder import is_layout
from taco_py.graph.nodes import Constant, Fact, Graph, Input, Node


@dataclass(frozen=True, slots=True, eq=False)
class RegionGraph:
    """A region as a graph of its own.

    reads   the values of the whole graph that are its inputs, in order
    sizes   what its other inputs are: numbers by the operands of the whole graph
    """

    graph: Graph
    reads: tuple[str, ...]
    sizes: tuple[Extent, ...]

    @property
    def constants(self) -> dict[str, Any]:
        """Return the constants by their names."""
        return {constant.name: constant.value for constant in self.graph.constants}

    @property
    def arrays(self) -> tuple[Constant, ...]:
        """Return the constants whose elements may change."""
        return tuple(e for e in self.graph.constants if isinstance(e.value, np.ndarray))


def region_graph(
    graph: Graph,
    members: Collection[str],
    outputs: Sequence[str],
    sparsity: Mapping[str, str],
    binds: bool = True,
) -> RegionGraph:
    """Take primitives out of a graph, with the layouts that they read through.

    outputs   the members whose values are results
    sparsity  the formats of values that are stored sparse
    binds     whether dense arrays that are constants stay such, else they become inputs
    """
    nodes = _members_with_layouts(graph, members)
    taker = _Taker(graph, sparsity)
    names = {node.name for node in nodes}
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name not in names)
    facts, by_name = graph.facts, {constant.name: constant for constant in graph.constants}
    constants = []
    for name in read:
        if name in by_name and _is_bound(by_name[name], binds):
            constants.append(by_name[name])
        else:
            taker.add_input(name, facts[name])
    copies = tuple(map(taker.node, nodes))
    inputs = (*taker.inputs, *taker.sizes)
    subgraph = Graph(inputs, tuple(constants), (), copies, tuple(outputs))
    return RegionGraph(subgraph, tuple(i.name for i in taker.inputs), tuple(taker.numbers))


def in_sizes(region: RegionGraph, holders: Mapping[str, Any]) -> RegionGraph:
    """Write numbers in the place of sizes; a number that a call passes stays where it is no size.

    holders  for each input what has its shape, or the number that it is
    """
    graph = region.graph
    size_inputs = zip(graph.inputs[len(region.reads) :], region.sizes, strict=True)
    passed = {leaf.name for leaf in graph.inputs} - {
        leaf.name for leaf, extent in size_inputs if extent.operator == "size"
    }

    def number(extent: Extent) -> Extent:
        return const(evaluated(extent, holders))

    def attribute(extent: Extent) -> Extent:
        return extent if _asks_for(extent, passed) else number(extent)

    def fact(original: Fact) -> Fact:
        return replace(original, shape=tuple(map(number, original.shape)))

    sized = replace(
        graph,
        inputs=tuple(replace(leaf, fact=fact(leaf.fact)) for leaf in graph.inputs),
        nodes=tuple(
            replace(
                node,
                fact=fact(node.fact),
                attributes=tuple((k, _each_extent(v, attribute)) for k, v in node.attributes),
            )
            for node in graph.nodes
        ),
    )
    return replace(region, graph=sized)


def _asks_for(extent: Extent, names: Collection[str]) -> bool:
    """Tell whether a number depends on one that calls pass."""
    if extent.operator == "value":
        return extent.args[0] in names
    return any(_asks_for(arg, names) for arg in extent.args if isinstance(arg, Extent))


def _members_with_layouts(graph: Graph, members: Collection[str]) -> list[Node]:
    """Return the members, and the layouts between them and before them, in order."""
    read: set[str] = set()
    nodes = []
    for node in reversed(graph.nodes):
        if node.name in members or (is_layout(node) and node.name in read):
            read.update(node.inputs)
            nodes.append(node)
    return nodes[::-1]


def _is_bound(constant: Constant, binds: bool) -> bool:
    if is_scipy_sparse(constant.value) or constant.fact.sparsity:
        return False
    return binds or not isinstance(constant.value, np.ndarray)


def _each_extent(value: Any, change: Callable[[Extent], Extent]) -> Any:
    if isinstance(value, Extent):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_each_extent(element, change) for element in value)
    return value


class _Taker:
    """Sizes of a graph in terms of a region's inputs.

    extents  sizes of the graph by those of the region's inputs
    numbers  numbers that no input has the size of, and the inputs that they are
    """

    def __init__(self, graph: Graph, sparsity: Mapping[str, str]) -> None:
        self.facts = graph.facts
        self.names = Names(tuple(self.facts))
        self.sparsity = sparsity
        self.extents: dict[Extent, Extent] = {}
        self.inputs: list[Input] = []
        self.sizes: list[Input] = []
        self.numbers: list[Extent] = []

    def add_input(self, name: str, fact: Fact) -> None:
        """Add a value that the region reads."""
        self.know_sizes(name, fact)
        if fact.weak:
            self.extents[Extent("value", (name,))] = Extent("value", (name,))
        shape = tuple(
            extent if extent.constant is not None else Extent("size", (name, axis))
            for axis, extent in enumerate(fact.shape)
        )
        stored = self.sparsity.get(name, fact.sparsity)
        self.inputs.append(Input(name, replace(fact, shape=shape, sparsity=stored)))

    def know_sizes(self, name: str, fact: Fact) -> None:
        """Note which sizes a value has."""
        for axis, extent in enumerate(fact.shape):
            if extent.constant is None:
                self.extents.setdefault(extent, Extent("size", (name, axis)))

    def node(self, node: Node) -> Node:
        """Write a node in the region's sizes."""
        pairs = tuple((key, _each_extent(value, self.extent)) for key, value in node.attributes)
        fact = replace(self.fact(node.fact), sparsity=self.sparsity.get(node.name, ""))
        return replace(node, attributes=pairs, fact=fact)

    def fact(self, fact: Fact) -> Fact:
        """Write a fact in the region's sizes."""
        return replace(fact, shape=tuple(map(self.extent, fact.shape)))

    def extent(self, extent: Extent) -> Extent:
        """Write a number in the region's sizes."""
        if extent in self.extents:
            return self.extents[extent]
        if extent.operator == "const":
            return extent
        if extent.operator in ("size", "value"):
            name = self.names.fresh("size")
            dtype = self.facts[extent.args[0]].dtype if extent.operator == "value" else "int"
            fact = Fact((), dtype, weak=True)
            self.sizes.append(Input(name, fact))
            self.numbers.append(extent)
            self.extents[extent] = Extent("value", (name,))
            return self.extents[extent]
        args = (self.extent(e) if isinstance(e, Extent) else e for e in extent.args)
        return Extent(extent.operator, tuple(args))
