"""Take a part before what computes it, so that nothing else is computed.

    exp(x)[2:5]                       →   exp(x[2:5])
    (x + broadcast(v))[0]             →   x[0] + v
    sum(x over j)[i]                  →   sum(x[i] over j)
    contract(A[i,j], B[j,k])[0]       →   contract(A[0], B)
    transpose(x)[:, 1]                →   transpose(x[1, :])

Only of a value that nothing else reads and that is no result. Parts are integers and slices, which
hold fewer elements; arrays of positions may hold more, and stay. NumPy takes parts in the same
memory. Dense values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taco_py.graph.extents import Extent, const
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node, Shape
from taco_py.graph.rules.base import GraphRule

WHOLE = ("slice", None, None, None)

Key = tuple[tuple[Any, ...], ...]
"""For each mode an integer as ("at", place), or a slice as ("slice", start, stop, step)."""


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.get("call") != "slice" or node.name in builder.sparse:
        return None
    key = tuple(each for each in node.get("key") if each != ("new",))
    if all(each == WHOLE for each in key):
        return None
    if not _is_known(builder, node, key):
        return None
    made = _part(builder, node.inputs[0], key)
    if made is None:
        return None
    source: list[int | None] = []
    for each in node.get("key"):
        if each[0] != "at":
            old = sum(1 for other in source if other is not None)
            source.append(None if each == ("new",) else old)
    return builder.layout("expand", made, source, node.shape)


def _is_known(builder: GraphBuilder, node: Node, key: Key) -> bool:
    """Tell whether sizes of the part that are 1 in all calls are so by the slices alone.

    a[:, 1:] of a of two columns: the trace may hold where that is one column
    """
    found = iter(part_shape(builder.facts[node.inputs[0]].shape, key))
    told = (size for size, each in zip(node.shape, _kept(node), strict=True) if each != ("new",))
    return all(
        one.constant == other.constant or other.constant != 1
        for one, other in zip(found, told, strict=True)
    )


def _kept(node: Node) -> list[tuple[Any, ...]]:
    """Return the subscripts that leave a mode."""
    return [each for each in node.get("key") if each[0] != "at"]


def _part(builder: GraphBuilder, name: str, key: Key) -> str | None:
    """Make a part of a value by parts of what it is made of, None where that is not better."""
    node = builder.nodes.get(name)
    if node is None or not builder.is_for_one(name):
        return None
    if node.operator == "map":
        return _of_map(builder, node, key)
    if node.operator == "reduce":
        return _of_reduction(builder, node, key)
    if node.operator == "contract":
        return _of_product(builder, node, key)
    return _of_transpose(builder, node, key) if node.operator == "transpose" else None


def _taken(builder: GraphBuilder, name: str, key: Key) -> str:
    """Name a part of a value: made of parts where that is better, else by NumPy."""
    if all(each == WHOLE for each in key):
        return name
    found = _part(builder, name, key)
    if found is not None:
        return found
    fact = builder.facts[name]
    shape = part_shape(fact.shape, key)
    return builder.add("numpy", (name,), shape, fact.dtype, call="slice", key=key)


def part_shape(shape: Shape, key: Key) -> Shape:
    """Return the sizes of a part."""
    return tuple(
        _length(size, each[1:]) for size, each in zip(shape, key, strict=True) if each[0] != "at"
    )


def _length(size: Extent, ends: tuple[Extent | None, ...]) -> Extent:
    if ends == (None, None, None):
        return size
    if size.constant is None or any(e is not None and e.constant is None for e in ends):
        return Extent("slice", (size, *ends))
    first, stop, step = (None if e is None or e.constant is None else int(e.constant) for e in ends)
    return const(len(range(int(size.constant))[first:stop:step]))


def _of_map(builder: GraphBuilder, node: Node, key: Key) -> str | None:
    parts: list[tuple[str, Key, tuple[int | None, ...]]] = []
    covered: set[int] = set()
    for name in node.inputs:
        own = builder.nodes.get(name)
        source: tuple[int | None, ...] = tuple(range(builder.facts[name].order))
        if own is not None and own.operator == "broadcast":
            source, (name,) = own.get("source"), own.inputs
        covered |= {axis for axis, each in enumerate(source) if each is not None}
        parts.append((name, _key_of(builder, name, key, source), source))
    if not covered >= {axis for axis, each in enumerate(key) if each != WHOLE}:
        return None  # NumPy would say where a position is beyond the array
    shape = part_shape(node.shape, key)
    inputs = []
    for name, own_key, source in parts:
        if not builder.facts[name].order:
            inputs.append(name)
            continue
        made = _taken(builder, name, own_key)
        inputs.append(_spread(builder, made, own_key, source, key, shape))
    return builder.add("map", inputs, shape, node.dtype, **dict(node.attributes))


def _key_of(builder: GraphBuilder, name: str, key: Key, source: Sequence[int | None]) -> Key:
    """Return the subscripts of an operand whose modes the result has in places."""
    found = [WHOLE] * builder.facts[name].order
    for each, own in zip(key, source, strict=False):
        if own is not None:
            found[own] = each
    return tuple(found)


def _spread(
    builder: GraphBuilder,
    made: str,
    own_key: Key,
    source: Sequence[int | None],
    key: Key,
    shape: Shape,
) -> str:
    """Stretch the part of an operand to the part of the result."""
    kept = [axis for axis, each in enumerate(own_key) if each[0] != "at"]
    found = [
        None if own is None else kept.index(own)
        for each, own in zip(key, source, strict=True)
        if each[0] != "at"
    ]
    return builder.layout("broadcast", made, found, shape)


def _of_reduction(builder: GraphBuilder, node: Node, key: Key) -> str:
    axes, rest = node.get("axes"), iter(key)
    order = builder.facts[node.inputs[0]].order
    whole = tuple(WHOLE if axis in axes else next(rest) for axis in range(order))
    made = _taken(builder, node.inputs[0], whole)
    kept = [axis for axis in range(order) if whole[axis][0] != "at"]
    over = [place for place, axis in enumerate(kept) if axis in axes]
    return builder.reduce(node.get("function"), made, over, node.dtype)


def _of_product(builder: GraphBuilder, node: Node, key: Key) -> str | None:
    named = dict(zip(node.get("kept"), key, strict=True))
    inputs, labels = [], []
    for name, own in zip(node.inputs, node.get("labels"), strict=True):
        units = builder.facts[name].units
        wanted = [named.get(label, WHOLE) for label in own]
        if any(unit and each != WHOLE for unit, each in zip(units, wanted, strict=True)):
            return None
        inputs.append(_taken(builder, name, tuple(wanted)))
        labels.append(tuple(label for label in own if named.get(label, WHOLE)[0] != "at"))
    kept = tuple(label for label in node.get("kept") if named[label][0] != "at")
    shape = part_shape(node.shape, key)
    return builder.contract(inputs, labels, kept, shape, node.dtype)


def _of_transpose(builder: GraphBuilder, node: Node, key: Key) -> str | None:
    source = node.get("source")
    if {*source} != {*range(builder.facts[node.inputs[0]].order)}:
        return None  # joined with a layout that puts modes in, or leaves some out
    made = _taken(builder, node.inputs[0], tuple(key[source.index(a)] for a in range(len(source))))
    kept = [each for each, own in zip(source, key, strict=True) if own[0] != "at"]
    order = [sum(other < each for other in kept) for each in kept]
    return builder.layout("transpose", made, order, part_shape(node.shape, key))


RULE = GraphRule("slice_before", "exp(x)[2:5]", "exp(x[2:5])", "nothing", _apply)
