"""Operator graphs: what a function computes, as immutable values.

    S = np.einsum("hqd,hkd->hqk", Q, K)     Node("v1", "einsum", ("a0", "a1"), …)
    S / np.sqrt(Q.shape[-1])                Node("v2", "divide", ("v1", "n0"), …)

A node reads inputs, constants, numbers and nodes before it, by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from codegen.records import dataclass
from taco_py.graph.extents import Extent

Shape = tuple[Extent, ...]

Factors = tuple[tuple[Shape, ...], tuple[Shape, ...]]
"""Of a reshape: the sizes that each mode of its operand, and of its result, is the product of."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a value before there is data.

    dtype     NumPy's name; "bool", "int", "float" or "complex" alone where it is weak
    sparsity  the format of a sparse operand, "" of what is dense
    fill      what a sparse operand is where it stores nothing
    weak      whether it is a Python number, which takes the type of what it meets
    """

    shape: Shape
    dtype: str
    sparsity: str = ""
    fill: Any = 0
    weak: bool = False

    @property
    def order(self) -> int:
        """Return the number of modes."""
        return len(self.shape)

    @property
    def units(self) -> tuple[bool, ...]:
        """Tell for each mode whether its size is 1 in all calls."""
        return tuple(size.constant == 1 for size in self.shape)

    def __str__(self) -> str:
        """Write the type as float64[a0.shape[0],3]."""
        sizes = ",".join(map(str, self.shape))
        stored = f" in {self.sparsity}" if self.sparsity else ""
        return f"{self.dtype}[{sizes}]{stored}{f' filled with {self.fill}' if self.fill else ''}"


@dataclass(frozen=True, slots=True)
class Input:
    """An operand that each call passes."""

    name: str
    fact: Fact


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An object that the function reads besides its arguments, by reference."""

    name: str
    fact: Fact
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A number that each call computes of the sizes of its operands."""

    name: str
    fact: Fact
    extent: Extent


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a primitive comes from.

    operator    the name of the operator, or of the function of `tp.nn`, that it is a part of
    derivative  whether it is a part of the derivative of that
    """

    operator: str = ""
    derivative: bool = False


NOWHERE = Origin()


@dataclass(frozen=True, slots=True)
class Node:
    """The result of an operator.

    attributes  what the operator says besides its inputs, by name
    place       the user's file and line
    origin      of a primitive, and of an operator in a function of `tp.nn`
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...]
    fact: Fact
    place: str = field(default="", compare=False)
    origin: Origin = field(default=NOWHERE, compare=False)

    def get(self, attribute: str, default: Any = None) -> Any:
        """Return an attribute by its name."""
        return dict(self.attributes).get(attribute, default)

    @property
    def shape(self) -> Shape:
        """Return the sizes of the result."""
        return self.fact.shape

    @property
    def dtype(self) -> str:
        """Return NumPy's name of the type of the result's elements."""
        return self.fact.dtype


@dataclass(frozen=True, slots=True)
class Output:
    """A place in what a function returns: the result of that number."""

    place: int


Leaf = Input | Constant | Number


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes in an order in which each reads only what is before it, and names of results."""

    inputs: tuple[Input, ...]
    constants: tuple[Constant, ...]
    numbers: tuple[Number, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Return the inputs, constants and numbers, which no node makes."""
        return (*self.inputs, *self.constants, *self.numbers)

    @property
    def facts(self) -> dict[str, Fact]:
        """Return the facts of each value, by its name."""
        return {value.name: value.fact for value in (*self.leaves, *self.nodes)}

    @property
    def by_name(self) -> dict[str, Node]:
        """Return the nodes by their names."""
        return {node.name: node for node in self.nodes}

    def readers(self) -> Mapping[str, list[Node]]:
        """Return the nodes that read each value, once for each time that they do."""
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                readers.setdefault(name, []).append(node)
        return readers

    @property
    def pruned(self) -> Graph:
        """Return the graph without nodes and numbers that no output depends on."""
        live = set(self.outputs)
        for node in reversed(self.nodes):
            if node.name in live:
                live.update(node.inputs)
        return replace(
            self,
            constants=tuple(constant for constant in self.constants if constant.name in live),
            numbers=tuple(number for number in self.numbers if number.name in live),
            nodes=tuple(node for node in self.nodes if node.name in live),
        )

    def __str__(self) -> str:
        """Write a line for each value, and one for the results."""
        return "\n".join(_lines(self))


def _lines(graph: Graph) -> Iterator[str]:
    for leaf in graph.inputs:
        yield f"{leaf.name}: {leaf.fact} = input"
    for constant in graph.constants:
        scalar = constant.fact.shape == () and not constant.fact.sparsity
        value = f" {constant.value!r}" if scalar else ""
        yield f"{constant.name}: {constant.fact} = constant{value}"
    for number in graph.numbers:
        yield f"{number.name}: {number.fact} = {number.extent}"
    for node in graph.nodes:
        pairs = (f"{key}={_attribute_text(value)}" for key, value in node.attributes)
        args = ", ".join((", ".join(node.inputs), *pairs))
        place = f"  # {node.place}" if node.place else ""
        yield f"{node.name}: {node.fact} = {node.operator}({args}){place}"
    yield f"return {', '.join(graph.outputs)}"


def _attribute_text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_attribute_text, value))}{',' if len(value) == 1 else ''})"
    return str(value) if isinstance(value, Extent) else repr(value)
