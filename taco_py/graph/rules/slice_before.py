"""Take a part before what computes it, so that nothing else is computed.

    exp(x)[2:5]                       →   exp(x[2:5])
    (x + broadcast(v))[0]             →   x[0] + v
    sum(x over j)[i]                  →   sum(x[i] over j)
    contract(A[i,j], B[j,k])[0]       →   contract(A[0], B)
    transpose(x)[:, 1]                →   transpose(x[1, :])

Only of a value that is no result and that nothing else reads, but for other slices that have no
element in common with it. Parts are integers and slices, which
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

FULL_SLICE = ("slice", None, None, None)

Key = tuple[tuple[Any, ...], ...]
"""For each mode an integer as ("at", place), or a slice as ("slice", start, stop, step)."""


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.get("call") != "slice" or node.name in builder.sparse:
        return None
    key = tuple(entry for entry in node.get("key") if entry != ("new",))
    if all(entry == FULL_SLICE for entry in key):
        return None
    if not _is_known(builder, node, key):
        return None
    part = _part(builder, node.inputs[0], key)
    if part is None:
        return None
    source: list[int | None] = []
    for entry in node.get("key"):
        if entry[0] != "at":
            old = sum(1 for other in source if other is not None)
            source.append(None if entry == ("new",) else old)
    return builder.layout("expand", part, source, node.shape)


def _is_known(builder: GraphBuilder, node: Node, key: Key) -> bool:
    """Tell whether sizes of the part that are 1 in all calls are so by the slices alone.

    a[:, 1:] of a of two columns: the trace may hold where that is one column
    """
    part_sizes = iter(part_shape(builder.facts[node.inputs[0]].shape, key))
    sizes = (
        size for size, item in zip(node.shape, _entries(node), strict=True) if item != ("new",)
    )
    return all(
        one.constant == other.constant or other.constant != 1
        for one, other in zip(part_sizes, sizes, strict=True)
    )


def _entries(node: Node) -> list[tuple[Any, ...]]:
    """Return the subscripts that leave a mode."""
    return [entry for entry in node.get("key") if entry[0] != "at"]


def _part(builder: GraphBuilder, name: str, key: Key) -> str | None:
    """Slice the operands of a value in place of the value; None where that is not better."""
    node = builder.nodes.get(name)
    if node is None or not (builder.is_for_one(name) or name in builder.sliced):
        return None
    if node.operator == "map":
        return _of_map(builder, node, key)
    if node.operator == "reduce":
        return _of_reduction(builder, node, key)
    if node.operator == "contract":
        return _of_product(builder, node, key)
    return _of_transpose(builder, node, key) if node.operator == "transpose" else None


def _sliced(builder: GraphBuilder, name: str, key: Key) -> str:
    """Name a part of a value: made of parts where that is better, else by NumPy."""
    if all(entry == FULL_SLICE for entry in key):
        return name
    part = _part(builder, name, key)
    if part is not None:
        return part
    fact = builder.facts[name]
    shape = part_shape(fact.shape, key)
    return builder.add("numpy", (name,), shape, fact.dtype, call="slice", key=key)


def part_shape(shape: Shape, key: Key) -> Shape:
    """Return the sizes of a part."""
    return tuple(
        _length(size, entry[1:]) for size, entry in zip(shape, key, strict=True) if entry[0] != "at"
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
        operand = builder.nodes.get(name)
        source: tuple[int | None, ...] = tuple(range(builder.facts[name].order))
        if operand is not None and operand.operator == "broadcast":
            source, (name,) = operand.get("source"), operand.inputs
        covered |= {axis for axis, old in enumerate(source) if old is not None}
        parts.append((name, _key_of(builder, name, key, source), source))
    if not covered >= {axis for axis, entry in enumerate(key) if entry != FULL_SLICE}:
        return None  # NumPy would say where a position is beyond the array
    shape = part_shape(node.shape, key)
    inputs = []
    for name, operand_key, source in parts:
        if not builder.facts[name].order:
            inputs.append(name)
            continue
        part = _sliced(builder, name, operand_key)
        inputs.append(_spread(builder, part, operand_key, source, key, shape))
    return builder.add("map", inputs, shape, node.dtype, **dict(node.attributes))


def _key_of(builder: GraphBuilder, name: str, key: Key, source: Sequence[int | None]) -> Key:
    """Return the subscripts of an operand whose modes the result has in places."""
    entries = [FULL_SLICE] * builder.facts[name].order
    for entry, place in zip(key, source, strict=False):
        if place is not None:
            entries[place] = entry
    return tuple(entries)


def _spread(
    builder: GraphBuilder,
    part: str,
    operand_key: Key,
    source: Sequence[int | None],
    key: Key,
    shape: Shape,
) -> str:
    """Stretch the part of an operand to the part of the result."""
    remaining = [axis for axis, entry in enumerate(operand_key) if entry[0] != "at"]
    new_source = [
        None if place is None else remaining.index(place)
        for entry, place in zip(key, source, strict=True)
        if entry[0] != "at"
    ]
    return builder.layout("broadcast", part, new_source, shape)


def _of_reduction(builder: GraphBuilder, node: Node, key: Key) -> str:
    axes, rest = node.get("axes"), iter(key)
    order = builder.facts[node.inputs[0]].order
    full_key = tuple(FULL_SLICE if axis in axes else next(rest) for axis in range(order))
    part = _sliced(builder, node.inputs[0], full_key)
    remaining = [axis for axis in range(order) if full_key[axis][0] != "at"]
    over = [place for place, axis in enumerate(remaining) if axis in axes]
    return builder.reduce(node.get("function"), part, over, node.dtype)


def _of_product(builder: GraphBuilder, node: Node, key: Key) -> str | None:
    entries = dict(zip(node.get("kept"), key, strict=True))
    inputs, labels = [], []
    for name, group in zip(node.inputs, node.get("labels"), strict=True):
        units = builder.facts[name].units
        parts = [entries.get(label, FULL_SLICE) for label in group]
        if any(unit and entry != FULL_SLICE for unit, entry in zip(units, parts, strict=True)):
            return None
        inputs.append(_sliced(builder, name, tuple(parts)))
        labels.append(tuple(label for label in group if entries.get(label, FULL_SLICE)[0] != "at"))
    output_labels = tuple(label for label in node.get("kept") if entries[label][0] != "at")
    shape = part_shape(node.shape, key)
    return builder.contract(inputs, labels, output_labels, shape, node.dtype)


def _of_transpose(builder: GraphBuilder, node: Node, key: Key) -> str | None:
    source = node.get("source")
    if {*source} != {*range(builder.facts[node.inputs[0]].order)}:
        return None  # joined with a layout that puts modes in, or leaves some out
    part = _sliced(builder, node.inputs[0], tuple(key[source.index(a)] for a in range(len(source))))
    remaining = [axis for axis, entry in zip(source, key, strict=True) if entry[0] != "at"]
    order = [sum(other < axis for other in remaining) for axis in remaining]
    return builder.layout("transpose", part, order, part_shape(node.shape, key))


RULE = GraphRule("slice_before", "exp(x)[2:5]", "exp(x[2:5])", "nothing", _apply)
