"""Primitives whose values are compared with each other, which one kernel has to compute.

    m = reduce max(x);  b = broadcast(m);  e = map equal(x, b)    →    x

Two kernels that both compute x round it in two ways, so that its maximum equals no element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from taco_py.graph.graph_builder import COMPARISONS
from taco_py.graph.nodes import Node
from taco_py.graph.run.partition_by_stages import base_of

EXTREMA = ("max", "min", "maximum", "minimum", "fmax", "fmin")
"""Functions whose value is one of their arguments; that of where is one of the last two."""


def compared_with_themselves(nodes: Sequence[Node], by_name: Mapping[str, Node]) -> frozenset[str]:
    """Find the primitives that both sides of a comparison may have their values from.

    by_name  all nodes of the graph, layouts among them
    """
    names: set[str] = set()
    for node in nodes:
        if node.operator == "map" and node.get("function") in COMPARISONS:
            one, other = (_values(by_name, name) for name in node.inputs)
            names.update(name for name in one & other if name in by_name)
    return frozenset(names)


def _values(by_name: Mapping[str, Node], name: str) -> set[str]:
    """Return the primitives and arguments that a value is, or is taken from."""
    bases: set[str] = set()
    pending = [name]
    while pending:
        base = base_of(by_name, pending.pop())
        if base not in bases:
            bases.add(base)
            if base in by_name:
                pending += _taken_from(by_name[base])
    return bases


def _taken_from(node: Node) -> Iterable[str]:
    function = node.get("function")
    if function == "where":
        return node.inputs[1:]
    return node.inputs if function in EXTREMA or node.operator == "gather" else ()
