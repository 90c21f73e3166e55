"""Graphs of primitives made node by node; what is equal is made once.

map        one function of elements, of arrays of one shape and of numbers
reduce     one reduction over some modes
broadcast  new modes, or stretched ones; transpose, expand, squeeze: modes in another order, or
           with more or fewer of size 1; all four say for each mode of the result which mode of
           the operand it is, if any
contract   a sum of products, by labels of modes
notation   an assignment in index notation
gather     elements at positions; scatter: elements added up at positions
numpy      what NumPy computes: no kernel can, or it only moves elements
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.graph.extents import Extent
from taco_py.graph.nodes import NOWHERE, Constant, Fact, Graph, Node, Number, Shape
from taco_py.graph.number_functions import function_of_elements
from taco_py.graph.position_operands import letters_of
from taco_py.graph.samples import dtype_of, weak_name

LAYOUTS = ("broadcast", "transpose", "expand", "squeeze")
"""Primitives that say for each mode of the result which mode of the operand it is."""


COMMUTATIVE = frozenset(("add", "multiply", "equal", "not_equal", "logical_and", "logical_or"))
"""Functions of elements that give the same number of arguments in another order."""


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
"""Functions of elements for which NumPy takes numbers that the type of the array does not have."""


SMALL_INTEGERS = tuple(np.dtype(f"{kind}int{bits}") for kind in ("", "u") for bits in (8, 16))


OF_THEIR_INPUTS = ("map", "reduce", "contract")
"""Primitives whose sizes are those of their inputs: these may be written in several ways, where a
trace holds for equal ones alone."""


def is_layout(node: Node) -> bool:
    """Tell whether kernels read through a primitive, which makes nothing."""
    return node.operator in LAYOUTS


class GraphBuilder:
    """Nodes over the leaves of a graph.

    renamed    the name here of each value of the graph that is rebuilt
    diagonals  the vectors that matrices with a diagonal alone are made of
    sparse     the values that depend on a sparse operand
    uses       how often values of the graph that is rebuilt are read, or are results, by names here
    handed     those of them that reach the caller as arrays of their own
    sliced     those of which slices are read alone, that have no element in common
    place, origin  of the nodes that are made
    again  whether derivatives that are made may be differentiated
    active the values that depend on what derivatives are taken by
    sides  of comparisons that the value is used on whose cotangent is made
    memo       what rules know of the nodes, by the rules' names
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.facts: dict[str, Fact] = {leaf.name: leaf.fact for leaf in graph.leaves}
        self.nodes: dict[str, Node] = {}
        self.constants = {constant.name: constant for constant in graph.constants}
        self.numbers = {number.name: number for number in graph.numbers}
        self.renamed: dict[str, str] = {leaf.name: leaf.name for leaf in graph.leaves}
        self.diagonals: dict[str, str] = {}
        self.sparse = {leaf.name for leaf in graph.leaves if leaf.fact.sparsity}
        self.uses: dict[str, int] = {}
        self.handed: set[str] = set()
        self.sliced: set[str] = set()
        self.memo: dict[str, Any] = {}
        self.place = ""
        self.origin = NOWHERE
        self.nested = False
        self.active: set[str] = set()
        self.sides: frozenset[tuple[str, str]] = frozenset()
        self._known: dict[tuple[object, ...], str] = {}
        self._merge_literals()

    def _merge_literals(self) -> None:
        for constant in self.graph.constants:
            if (key := _literal_key(constant.value)) is not None:
                self.renamed[constant.name] = self._known.setdefault(key, constant.name)

    def add(
        self, operator: str, inputs: Sequence[str], shape: Shape, dtype: str, /, **attributes: Any
    ) -> str:
        """Make a node, or find the equal one that there is; its name."""
        pairs = tuple(sorted(attributes.items()))
        swaps = attributes.get("function") in COMMUTATIVE
        sizes = tuple(e.constant == 1 for e in shape) if operator in OF_THEIR_INPUTS else shape
        key = (operator, tuple(sorted(inputs) if swaps else inputs), pairs, sizes, dtype)
        if key not in self._known:
            name = f"p{len(self.nodes)}"
            fact = Fact(shape, dtype, letters_of(attributes, len(shape)))
            node = Node(name, operator, tuple(inputs), pairs, fact, self.place, self.origin)
            self.nodes[name], self.facts[name] = node, node.fact
            if not self.sparse.isdisjoint(inputs):
                self.sparse.add(name)
            self._known[key] = name
        return self._known[key]

    def note(self, name: str, uses: int, handed: bool) -> None:
        """Note how often a value is used, and whether it reaches the caller."""
        self.uses[name] = self.uses.get(name, 0) + uses
        if handed:
            self.handed.add(name)

    def is_for_one(self, name: str) -> bool:
        """Tell whether a value is a node that one other reads, and is no result."""
        return name in self.nodes and self.uses.get(name) == 1

    def has_size(self, size: Extent) -> bool:
        """Tell whether an operand, or an array of the function's own, has a size."""
        shapes = (fact.shape for fact in (self.facts[name] for name in self.constants))
        return size.operator == "size" or any(size in shape for shape in shapes)

    def copy(self, node: Node) -> str:
        """Make a node of the graph that is rebuilt again."""
        inputs = [self.renamed[operand] for operand in node.inputs]
        attributes = dict(node.attributes)
        return self.add(node.operator, inputs, node.shape, node.dtype, **attributes)

    # ------------------------------------------------------------ leaves

    def literal(self, value: Any) -> str:
        """Name a number that is the same in all calls."""
        key = _literal_key(value)
        assert key is not None
        if key not in self._known:
            name = self._fresh("k", len(self.constants))
            weak = weak_name(value)
            fact = Fact((), weak, weak=True) if weak else Fact((), str(value.dtype))
            self.constants[name] = Constant(name, fact, value)
            self.facts[name] = fact
            self._known[key] = name
        return self._known[key]

    def _fresh(self, letter: str, number: int) -> str:
        """Return a name that no leaf has: those of leaves that were left out are free again."""
        while f"{letter}{number}" in self.facts:
            number += 1
        return f"{letter}{number}"

    def number(self, extent: Extent, dtype: str) -> str:
        """Name a number that each call computes, of a type."""
        constant = extent.constant
        if constant is not None:
            return self.literal(np.dtype(dtype).type(constant))
        key = (extent, dtype)
        if key not in self._known:
            name = self._fresh("m", len(self.numbers))
            self.numbers[name] = Number(name, Fact((), dtype), extent)
            self.facts[name] = self.numbers[name].fact
            self._known[key] = name
        return self._known[key]

    def typed(self, name: str, dtype: str) -> str:
        """Name a number of each call in a type, where it is one of Python's."""
        if name in self.numbers and self.facts[name].weak:
            return self.number(self.numbers[name].extent, dtype)
        return name

    # ------------------------------------------------------------ primitives

    def map(self, function: str, *inputs: str, dtype: str | None = None) -> str:
        """Compute a function of elements of arrays that stretch to each other.

        dtype  what NumPy gives; of one of its own functions it is found
        """
        facts = [self.facts[operand] for operand in inputs]
        shape = self.stretched(facts)
        result_type = dtype or dtype_of(function_of_elements(function), *facts)
        strong = [fact for fact in facts if not fact.weak]
        if function == "where":
            strong = [fact for fact in facts[1:] if not fact.weak]
        operands = []
        for name, fact in zip(inputs, facts, strict=True):
            if fact.weak and strong:
                number_type = np.result_type(*(fact.dtype for fact in strong), _weak(fact))
                if function in COMPARISONS and number_type in SMALL_INTEGERS:
                    number_type = np.dtype(np.int32)  # sizes may be larger than such integers
                name = self.typed(name, str(number_type))
            elif fact.weak:
                name = self.typed(name, str(np.result_type(_weak(fact))))
            operands.append(self.spread(name, shape))
        return self.add("map", operands, shape, result_type, function=function)

    def stretched(self, facts: Sequence[Fact]) -> Shape:
        """Find the shape that shapes stretch to, which were found to do so."""
        order = max((fact.order for fact in facts), default=0)
        shape = []
        for axis in range(-order, 0):
            sizes = [fact.shape[axis] for fact in facts if fact.order >= -axis]
            shape.append(next((size for size in sizes if size.constant != 1), sizes[0]))
        return tuple(shape)

    def spread(self, name: str, shape: Shape) -> str:
        """Stretch an array to a shape; numbers of leaves stay as they are."""
        fact = self.facts[name]
        same = len(fact.shape) == len(shape) and all(
            (one.constant == 1) == (other.constant == 1)
            for one, other in zip(fact.shape, shape, strict=True)
        )
        if same or (fact.order == 0 and name not in self.nodes):
            return name
        lead = len(shape) - fact.order
        source = tuple(
            axis - lead
            if axis >= lead and (fact.shape[axis - lead].constant == 1) == (size.constant == 1)
            else None
            for axis, size in enumerate(shape)
        )
        return self.layout("broadcast", name, source, shape)

    def layout(self, operator: str, name: str, source: Sequence[int | None], shape: Shape) -> str:
        """Say for each mode of the result which mode of the operand it is."""
        if tuple(source) == tuple(range(self.facts[name].order)):
            return name
        return self.add(operator, (name,), shape, self.facts[name].dtype, source=tuple(source))

    def reduce(self, function: str, name: str, axes: Sequence[int], dtype: str) -> str:
        """Reduce over modes, which are left out."""
        fact = self.facts[name]
        shape = tuple(size for axis, size in enumerate(fact.shape) if axis not in axes)
        return self.add("reduce", (name,), shape, dtype, function=function, axes=tuple(axes))

    def contract(
        self,
        inputs: Sequence[str],
        labels: Sequence[Sequence[int]],
        output_labels: Sequence[int],
        shape: Shape,
        dtype: str,
    ) -> str:
        """Sum products, by a label for each mode."""
        groups = tuple(map(tuple, labels))
        return self.add("contract", inputs, shape, dtype, labels=groups, kept=tuple(output_labels))

    def numpy(self, node: Node, inputs: Sequence[str]) -> str:
        """Leave an operator to NumPy."""
        attributes = dict(node.attributes)
        return self.add("numpy", inputs, node.shape, node.dtype, call=node.operator, **attributes)

    def finish(self) -> Graph:
        """Return the graph of the nodes that the outputs depend on."""
        return replace(
            self.graph,
            constants=tuple(self.constants.values()),
            numbers=tuple(self.numbers.values()),
            nodes=tuple(self.nodes.values()),
            outputs=tuple(self.renamed[name] for name in self.graph.outputs),
        ).pruned


def rebuilt(graph: Graph) -> GraphBuilder:
    """Begin a graph with the nodes of another one, to which more are added.

    A value with a derivative of its own is that value.
    """
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.place, builder.origin = node.place, node.origin
        builder.renamed[node.name] = (
            builder.renamed[node.inputs[0]]
            if node.operator == "custom_derivative"
            else builder.copy(node)
        )
    builder.place, builder.origin = "", NOWHERE
    return builder


def _weak(fact: Fact) -> Any:
    return {"bool": True, "int": 1, "float": 1.0, "complex": 1j}[fact.dtype]


def _literal_key(value: Any) -> tuple[object, ...] | None:
    """Return the key of a number, None of arrays."""
    if weak_name(value) or isinstance(value, np.generic):
        return ("literal", type(value), repr(value))
    return None
