"""Compute dense values where some sparse operand stores something, if nothing else reads them.

    S = contract(Q, K);  P = where(M, exp(S), 0);  g = M * S
    →   S = sampled(Q, K, M), of contract                 stored as M is, of no size squared

What a primitive is outside of these places nobody sees. Results, what NumPy reads and what is
reduced over everywhere are computed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from taco_py.graph.nodes import Graph, Node
from taco_py.graph.primitives.sampled_values import OPERATOR, At, operator_of
from taco_py.graph.run.partition_by_stages import is_layout
from taco_py.graph.sampling.needed_places import needed_places
from taco_py.graph.sampling.stored_places import Places, StoredPlaces

OF = ("map", "reduce", "contract", "notation", "gather", "scatter")
"""Primitives that are computed for each element of their result by itself."""

FEWEST_MODES = 2
"""Modes of a value of which leaving elements out saves memory."""


def sample_values(graph: Graph) -> Graph:
    """Return a graph whose dense values are computed where its sparse ones ask for them."""
    facts = graph.facts
    if not any(fact.sparsity for fact in facts.values()):
        return graph
    stored = StoredPlaces(graph, facts)
    stored.look()
    needed = needed_places(stored)
    made: dict[str, Node] = graph.by_name
    for node in graph.nodes:
        places = needed.get(node.name)
        if not places or stored.is_sparse(node.name) or not _is_wide(node):
            continue
        if not any(_depends(made, atom.name, node.name) for atom in places):
            made[node.name] = _sampled(node, places)
    if all(made[node.name] is node for node in graph.nodes):
        return graph
    return replace(graph, nodes=_in_order(made))


def _is_wide(node: Node) -> bool:
    return node.operator in OF and node.fact.units.count(False) >= FEWEST_MODES


def _sampled(node: Node, places: Places) -> Node:
    """A primitive at places."""
    atoms = sorted(places, key=str)
    first = len(node.inputs)
    at: At = tuple((first + n, atom.modes) for n, atom in enumerate(atoms))
    return replace(
        node,
        operator=OPERATOR,
        inputs=(*node.inputs, *(atom.name for atom in atoms)),
        attributes=(*node.attributes, ("of", node.operator), ("at", at)),
    )


def _depends(nodes: Mapping[str, Node], name: str, on: str) -> bool:
    """Whether a value is computed of another one."""
    waiting, seen = [name], {name}
    while waiting:
        each = waiting.pop()
        if each == on:
            return True
        for other in nodes[each].inputs if each in nodes else ():
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def _in_order(nodes: Mapping[str, Node]) -> tuple[Node, ...]:
    """Nodes after all that they read, else in the order in which they are."""
    found: dict[str, Node] = {}

    def put(name: str) -> None:
        waiting = [name]
        while waiting:
            node = nodes[waiting[-1]]
            missing = [each for each in node.inputs if each in nodes and each not in found]
            if missing:
                waiting += missing
            else:
                found.setdefault(waiting.pop(), node)

    for name in nodes:
        put(name)
    return tuple(found.values())


def sampled_lines(graph: Graph) -> Iterator[str]:
    """Say which primitives are computed where, and who reads them, for `explain()`."""
    readers = graph.readers()
    for node in graph.nodes:
        if node.operator != OPERATOR:
            continue
        where = " or ".join(dict.fromkeys(node.inputs[place] for place, _ in node.get("at")))
        what = f"{operator_of(node)} {node.get('function') or ''}".strip()
        read = ", ".join(dict.fromkeys(_readers(readers, node.name)))
        yield f"{node.name} {what} where {where} stores something: {read} read it there alone"


def _readers(readers: Mapping[str, list[Node]], name: str) -> Iterator[str]:
    """The primitives that read a value, also in another layout."""
    for node in readers.get(name, ()):
        if is_layout(node):
            yield from _readers(readers, node.name)
        else:
            yield node.name
