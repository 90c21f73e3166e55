"""Which places of each value any reader looks at: the readers' own, or those of sparse siblings.

    S = Q @ K.T;  P = where(M, exp(S), 0);  y = P @ V     S and exp(S) where M stores something
    d = (M.T * S.T).sum(0)                                so far S where M stores something as well

A reader does not look at an argument where another one annihilates it, or chooses another branch.
What several readers look at is the union of their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.graph.sampling.fills_of_values import expression_of, place_in
from taco_py.graph.sampling.stored_places import Accesses, Atom, Places, StoredPlaces, parts_of
from taco_py.legal.absent import arg_fill, call_fill, differing, fill_of
from taco_py.notation.nodes import Access, Call, Expr, Reduce

EVERYWHERE = None
"""The places of a value that something looks at as a whole."""


def needed_places(stored: StoredPlaces) -> dict[str, Places | None]:
    """Find the places of each value that any reader looks at, EVERYWHERE where that is unknown."""
    graph = stored.graph
    found: dict[str, Places | None] = dict.fromkeys(graph.outputs, EVERYWHERE)
    for node in reversed(graph.nodes):
        if node.name not in found:
            continue
        if node.operator not in PRIMITIVES:
            found.update(dict.fromkeys(node.inputs, EVERYWHERE))
            continue
        for name, options in _looked_at(stored, node, found[node.name]):
            before = found.get(name, frozenset())
            if before is EVERYWHERE:
                continue
            more = min(options, key=lambda each: (len(each - before), sorted(map(str, each))), default=None)
            found[name] = EVERYWHERE if more is None else before | more
    return found


def _looked_at(
    stored: StoredPlaces, node: Node, needed: Places | None
) -> Iterator[tuple[str, tuple[Places, ...]]]:
    """Each operand of a primitive with alternatives of places that it looks at; none of all."""
    expr, indices = expression_of(node, stored.facts)
    for part in dict.fromkeys(parts_of(expr)):
        name = node.inputs[place_in(part)]
        units = stored.facts[name].units
        own = iter(part.indices)
        modes: list[Index] = [None if unit else next(own) for unit in units]
        if len({*part.indices}) < len(part.indices):
            yield name, ()
            continue
        options = stored.said_of(tuple(_bounds(expr, part, stored, node)), node, modes)
        asked = _moved(needed, indices, modes)
        yield name, options if asked is None else (*options, asked)


def _moved(
    needed: Places | None, indices: Sequence[Index], modes: Sequence[Index]
) -> Places | None:
    """Places of a value as places of what it reads by `modes`, None where these lack an index."""
    if needed is None:
        return None
    places = {index: mode for mode, index in enumerate(modes) if index is not None}
    found = []
    for atom in needed:
        own = [None if mode is None else places.get(str(indices[mode]), -1) for mode in atom.modes]
        if -1 in own:
            return None
        found.append(Atom(atom.name, tuple(own)))
    return frozenset(found)


def _bounds(expr: Expr, part: Access, stored: StoredPlaces, node: Node) -> Iterator[Accesses]:
    """Yield operands that store something wherever an expression looks at a part of it."""
    if isinstance(expr, Reduce):
        yield from _bounds(expr.body, part, stored, node)
    if not isinstance(expr, Call):
        return
    holding = [place for place, arg in enumerate(expr.args) if part in parts_of(arg)]
    if len(holding) != 1:
        return  # each of several would have to be kept from
    (here,) = holding
    fills = [arg_fill(expr.operator, a, fill_of(a, stored.fill_in(node))) for a in expr.args]
    known = [None if place == here else fill for place, fill in enumerate(fills)]
    if call_fill(expr.operator, known) is not None:
        for group in differing(expr.operator, known):
            if here not in group and (both := stored.either([expr.args[p] for p in group], node)):
                yield both
    if expr.operator.chooses and fills[0] is not None and here == (2 if fills[0] else 1):
        yield from filter(None, stored.inside(expr.args[0], node))
    yield from _bounds(expr.args[here], part, stored, node)
