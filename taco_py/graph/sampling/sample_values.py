"""Compute dense values where some sparse operand stores something, if nothing else reads them.

    S = contract(Q, K);  P = where(M, exp(S), 0);  g = M * S
    →   S = sampled(Q, K, M), of contract                 stored as M is, of no size squared

What a primitive is outside of these places nobody sees. Results, what NumPy reads and what is
reduced over everywhere are computed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from taco_py.graph.fission.expressible import literal_of
from taco_py.graph.graph_builder import is_layout
from taco_py.graph.nodes import Constant, Graph, Node
from taco_py.graph.position_operands import is_positions
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.graph.primitives.sampled_values import OPERATOR, At, operator_of
from taco_py.graph.sampling.fills_of_values import expression_of, fill_of_value
from taco_py.language.legal.needed_places import NeededPlaces, depends, in_order
from taco_py.language.legal.stored_places import Places, StoredPlaces

OF = ("map", "reduce", "contract", "notation", "gather", "scatter")
"""Primitives that are computed for each element of their result by itself."""

KEEPS_PLACES = ("astype", "copy", "slice", "reshape")
"""Calls of NumPy of which a sparse operand has a sparse result, 0 where it stores nothing."""

FEWEST_MODES = 2
"""Modes of a value of which leaving elements out saves memory."""


def sample_values(graph: Graph) -> Graph:
    """Return a graph whose dense values are computed where its sparse ones ask for them."""
    if not any(fact.sparsity for fact in graph.facts.values()):
        return graph
    stored, read_places = _looked_at(graph)
    nodes: dict[str, Node] = graph.by_name
    inputs = {node.name: node.inputs for node in graph.nodes}
    for node in graph.nodes:
        places = read_places.places.get(node.name)
        if not places or stored.is_sparse(node.name) or not _is_wide(node):
            continue
        if not any(depends(inputs, atom.name, node.name) for atom in places):
            nodes[node.name] = _sampled(node, places)
            inputs[node.name] = nodes[node.name].inputs
    if all(nodes[node.name] is node for node in graph.nodes):
        return graph
    return replace(graph, nodes=_in_order(nodes))


def _looked_at(graph: Graph) -> tuple[StoredPlaces, NeededPlaces]:
    """Find where values are stored, and which places of them are read."""
    facts = graph.facts
    stored = StoredPlaces({name: fact.units for name, fact in facts.items()})
    for leaf in graph.leaves:
        stored.note(leaf.name, leaf.fact.fill if leaf.fact.sparsity else None)
        literal = literal_of(leaf) if isinstance(leaf, Constant) and not leaf.fact.order else None
        if literal is not None:
            stored.literals[leaf.name] = literal.value
    expressions = {
        n.name: expression_of(n, facts) for n in graph.nodes if n.operator in PRIMITIVES
    }  # fmt: skip
    for node in graph.nodes:
        if node.name not in expressions:
            stored.note(node.name, _fill_of_call(stored, node))
            continue
        fill = (
            stored.fills[node.inputs[0]]
            if is_layout(node)
            else fill_of_value(node, facts, stored.absent_value, stored.is_sparse)
        )
        expr, modes = expressions[node.name]
        inside = stored.inside(expr) if fill is not None else ()
        stored.note(node.name, fill, stored.said_of(inside, modes))
    read_places = NeededPlaces(stored)
    read_places.everywhere(graph.outputs)
    for node in reversed(graph.nodes):
        if node.name in expressions:
            read_places.read(node.name, *expressions[node.name])
        elif node.name in read_places.places:
            read_places.everywhere(node.inputs)
    return stored, read_places


def _fill_of_call(stored: StoredPlaces, node: Node) -> int | None:
    """Return the fill value of NumPy's results where their sparse operand stores nothing."""
    if is_positions(node) or node.get("call") not in KEEPS_PLACES:
        return None
    return 0 if all(stored.fills[name] == 0 for name in node.inputs) else None


def _is_wide(node: Node) -> bool:
    return node.operator in OF and node.fact.units.count(False) >= FEWEST_MODES


def _sampled(node: Node, places: Places) -> Node:
    """Return a primitive at places."""
    atoms = in_order(places)
    first = len(node.inputs)
    at: At = tuple((first + n, atom.modes) for n, atom in enumerate(atoms))
    return replace(
        node,
        operator=OPERATOR,
        inputs=(*node.inputs, *(atom.name for atom in atoms)),
        attributes=(*node.attributes, ("of", node.operator), ("at", at)),
    )


def _in_order(nodes: Mapping[str, Node]) -> tuple[Node, ...]:
    """Return nodes after all that they read, else in the order in which they are."""
    ordered: dict[str, Node] = {}

    def put(name: str) -> None:
        waiting = [name]
        while waiting:
            node = nodes[waiting[-1]]
            missing = [value for value in node.inputs if value in nodes and value not in ordered]
            if missing:
                waiting += missing
            else:
                ordered.setdefault(waiting.pop(), node)

    for name in nodes:
        put(name)
    return tuple(ordered.values())


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
    """Yield the primitives that read a value, also in another layout."""
    for node in readers.get(name, ()):
        if is_layout(node):
            yield from _readers(readers, node.name)
        else:
            yield node.name
