"""Results of kernels that are parts of one array: each is written where it belongs.

    p = concatenate(exp(a), b * 2)   →   p is there before, kernels write into p[:, :n] and p[:, n:]

So nothing is copied. A value between, in which modes of size 1 are put, has the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.graph.extents import compiled
from taco_py.graph.nodes import Fact, Graph, Node
from taco_py.running.execute.new_array import new_array

CONCATENATE = "concatenate"


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """An array of parts along an axis.

    sizes   from the graph's operands to the shape, then the size of each part along the axis
    places  for each part that kernels make, the value that they make
    units   of each part that kernels make: the modes of size 1 of the part, and of the value
    """

    node: Node
    sizes: Callable[..., tuple[Any, ...]]
    places: Mapping[int, str]
    units: Mapping[int, tuple[tuple[int, ...], tuple[int, ...]]]

    @property
    def axis(self) -> int:
        """Return the axis along which the parts lie."""
        return int(self.node.get("axis"))

    def make(self, operands: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Allocate the array for operands of a call."""
        shape = self.sizes(*operands)[: len(self.node.shape)]
        return new_array(shape, range(len(shape)), self.node.dtype, covered=True)

    def parts(
        self, array: np.ndarray[Any, Any], operands: Sequence[Any]
    ) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
        """Yield the number of each part with its place in the array."""
        begin = 0
        for number, size in enumerate(self.sizes(*operands)[len(self.node.shape) :]):
            key = (slice(None),) * self.axis + (slice(begin, begin + size),)
            yield number, array[key]
            begin += size


def is_concatenate(node: Node) -> bool:
    """Tell whether NumPy would put arrays together."""
    return node.operator == "numpy" and node.get("call") == CONCATENATE


def join_of(
    graph: Graph,
    node: Node,
    results: Collection[str],
    arrays: Collection[str],
    parts: Collection[str],
) -> Join | None:
    """Return how kernels write the parts of an array; None if they make none of them.

    results  the values that the kernels make, without their modes of size 1
    arrays   the arrays that they write parts of
    parts    the values that are parts of these

    A value is in one place; the others are copied.
    """
    nodes, facts = graph.by_name, graph.facts
    places: dict[int, str] = {}
    units: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for number, name in enumerate(node.inputs):
        base = same_elements(nodes, name)
        is_in_use = base in graph.outputs or base in parts or base in places.values()
        fits = not is_in_use and facts[base].dtype == node.dtype
        if fits and base in {*results, *arrays}:
            places[number] = base
            units[number] = _units(facts[name]), _units(facts[base]) if base in arrays else ()
    if not places:
        return None
    names = tuple(leaf.name for leaf in graph.inputs)
    sizes = [facts[name].shape[node.get("axis")] for name in node.inputs]
    return Join(node, compiled([*node.shape, *sizes], names), places, units)


def _units(fact: Fact) -> tuple[int, ...]:
    return tuple(axis for axis, unit in enumerate(fact.units) if unit)


def same_elements(nodes: Mapping[str, Node], name: str) -> str:
    """Return the value in which modes of size 1 were put, or from which they were left out."""
    while name in nodes and nodes[name].operator in ("expand", "squeeze"):
        axes = [axis for axis in nodes[name].get("source") if axis is not None]
        if axes != sorted(axes):
            break
        (name,) = nodes[name].inputs
    return name


@dataclass(frozen=True, slots=True, eq=False)
class Joins:
    """Arrays whose parts the kernels of a region make, each after those that are parts of it."""

    joins: tuple[Join, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the arrays."""
        return tuple(join.node.name for join in self.joins)

    @property
    def parts(self) -> frozenset[str]:
        """Return the values that are parts of the arrays."""
        return frozenset(name for join in self.joins for name in join.places.values())

    @property
    def is_complete(self) -> bool:
        """Tell whether kernels make all parts."""
        return all(len(join.places) == len(join.node.inputs) for join in self.joins)

    def arrays(self, operands: Sequence[Any]) -> dict[str, np.ndarray[Any, Any]]:
        """Return the arrays, and the place of each value that kernels make, by name."""
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        for join in reversed(self.joins):
            name = join.node.name
            if name not in arrays:
                arrays[name] = join.make(operands)
            for number, part in join.parts(arrays[name], operands):
                if number in join.places:
                    units, new = join.units[number]
                    arrays[join.places[number]] = np.expand_dims(part.squeeze(units), new)
        return arrays

    def finish(
        self,
        values: dict[str, Any],
        arrays: Mapping[str, np.ndarray[Any, Any]],
        operands: Sequence[Any],
    ) -> None:
        """Copy the parts that kernels did not write, and put the arrays among the values."""
        for join in self.joins:
            name = join.node.name
            for number, part in join.parts(arrays[name], operands):
                source = values[join.node.inputs[number]] if number not in join.places else None
                if source is not None:
                    part[...] = source
            values[name] = arrays[name]
