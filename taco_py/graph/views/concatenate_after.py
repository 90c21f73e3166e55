"""Compute with the pieces of what is put together, and put the results together.

    exp(concatenate(a, b))                →   concatenate(exp(a), exp(b))
    concatenate(a, b) * x                 →   concatenate(a * x[:n], b * x[n:])
    sum(concatenate(a, b) over it)        →   sum(a) + sum(b)
    contract(concatenate(a, b)[i], x[i])  →   contract(a, x[:n]) + contract(b, x[n:])
    transpose(concatenate(a, b))          →   concatenate(transpose(a), transpose(b))

Beside operands whose slices are free, numbers, and arrays of the same pieces alone. Pieces of zeros
of derivatives add nothing to products.
"""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule
from taco_py.graph.rules.pieces import Pieces, concatenate, is_operand, pieces_of, with_size

JOINS = {"sum": "add", "prod": "multiply", "any": "logical_or", "all": "logical_and"}
"""The function of elements that joins reductions of pieces."""


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    pieces = [pieces_of(builder, name) for name in node.inputs]
    if not any(pieces) or node.name in builder.sparse:
        return None
    if node.operator == "map":
        return _of_map(builder, node, pieces)
    if node.operator == "contract":
        return _of_product(builder, node, pieces)
    (only,) = pieces if len(pieces) == 1 else (None,)
    if only is None:
        return None
    if node.operator == "reduce":
        return _of_reduction(builder, node, only)
    return _of_layout(builder, node, only) if node.operator in LAYOUTS else None


# ---------------------------------------------------------------- functions of elements


def _of_map(builder: GraphBuilder, node: Node, pieces: Sequence[Pieces | None]) -> str | None:
    cut = _common(pieces)
    if cut is None:
        return None
    results = []
    for place, size in enumerate(cut.sizes):
        shape = with_size(node.shape, cut.axis, size)
        inputs = []
        for name, same_pieces in zip(node.inputs, pieces, strict=True):
            part = (
                same_pieces.names[place]
                if same_pieces
                else _elements_at(builder, name, cut, place, shape)
            )
            if part is None:
                return None
            inputs.append(part)
        results.append(builder.add("map", inputs, shape, node.dtype, **dict(node.attributes)))
    return concatenate(builder, results, cut.axis, node)


def _common(pieces: Sequence[Pieces | None]) -> Pieces | None:
    """Return how arrays are cut, where all that are cut are cut alike."""
    cuts = [one for one in pieces if one is not None]
    alike = all((one.axis, one.sizes) == (cuts[0].axis, cuts[0].sizes) for one in cuts)
    return cuts[0] if alike else None


def _elements_at(
    builder: GraphBuilder, name: str, cut: Pieces, place: int, shape: Sequence[object]
) -> str | None:
    """Return the elements of an operand beside a piece; None where these are not free."""
    fact = builder.facts[name]
    if not fact.order:
        return name
    node = builder.nodes.get(name)
    if node is not None and node.operator == "broadcast":
        source = node.get("source")
        (inner,) = node.inputs
        mode = source[cut.axis]
        part: str | None = inner
        if mode is not None:
            part = _slice(builder, inner, cut, place, mode)
        wide = with_size(node.shape, cut.axis, cut.sizes[place])
        return None if part is None else builder.layout("broadcast", part, source, wide)
    return _slice(builder, name, cut, place, cut.axis)


def _slice(builder: GraphBuilder, name: str, cut: Pieces, place: int, axis: int) -> str | None:
    """Return the elements beside a piece along an axis of a value; None where they are not free.

    They are of operands, and of functions of elements of these that nothing else reads.
    """
    fact, node = builder.facts[name], builder.nodes.get(name)
    if node is not None and node.operator == "map" and builder.is_for_one(name):
        shape = with_size(fact.shape, axis, cut.sizes[place])
        cut_along = Pieces(axis, cut.names, cut.sizes)
        parts = [_elements_at(builder, operand, cut_along, place, shape) for operand in node.inputs]
        inputs = [part for part in parts if part is not None]
        if len(inputs) < len(parts):
            return None
        return builder.add("map", inputs, shape, node.dtype, **dict(node.attributes))
    if not is_operand(builder, name):
        return None
    key, shape = cut.key(place, axis, fact.order), with_size(fact.shape, axis, cut.sizes[place])
    return builder.add("numpy", (name,), shape, fact.dtype, call="slice", key=key)


# ---------------------------------------------------------------- reductions and products


def _of_reduction(builder: GraphBuilder, node: Node, pieces: Pieces) -> str | None:
    axes, function = node.get("axes"), node.get("function")
    if pieces.axis in axes and function not in JOINS:
        return None
    if function == "sum" and pieces.axis in axes:
        names = [name for name in pieces.names if not _is_zero(builder, (name,))]
    else:
        names = [*pieces.names]
    parts = [builder.reduce(function, name, axes, node.dtype) for name in names]
    if pieces.axis not in axes:
        axis = pieces.axis - sum(other < pieces.axis for other in axes)
        return concatenate(builder, parts, axis, node)
    return _reduce_pieces(builder, parts, JOINS[function], node.dtype) if parts else None


def _reduce_pieces(builder: GraphBuilder, parts: Sequence[str], function: str, dtype: str) -> str:
    result = parts[0]
    for part in parts[1:]:
        result = builder.map(function, result, part, dtype=dtype)
    return result


def _of_product(builder: GraphBuilder, node: Node, pieces: Sequence[Pieces | None]) -> str | None:
    groups = node.get("labels")
    place = next(number for number, one in enumerate(pieces) if one is not None)
    cut = pieces[place]
    assert cut is not None
    label = groups[place][cut.axis]
    readers = [number for number, group in enumerate(groups) if label in group]
    if any(groups[number].count(label) > 1 for number in readers):
        return None
    parts = []
    for piece, size in enumerate(cut.sizes):
        inputs: list[str] = []
        for number, name in enumerate(node.inputs):
            part = _factor(builder, name, pieces[number], groups[number], label, cut, piece)
            if part is None:
                return None
            inputs.append(part)
        sizes = zip(node.get("kept"), node.shape, strict=True)
        shape = tuple(size if one == label else old for one, old in sizes)
        if label in node.get("kept") or not _is_zero(builder, inputs):
            parts.append(builder.contract(inputs, groups, node.get("kept"), shape, node.dtype))
    if label in node.get("kept"):
        return concatenate(builder, parts, node.get("kept").index(label), node)
    return _reduce_pieces(builder, parts, "add", node.dtype) if parts else None


def _factor(
    builder: GraphBuilder,
    name: str,
    pieces: Pieces | None,
    labels: Sequence[int],
    label: int,
    cut: Pieces,
    place: int,
) -> str | None:
    """Return the part of a factor beside a piece; None where it is not free."""
    if label not in labels:
        return name
    axis = labels.index(label)
    if builder.facts[name].units[axis]:
        return name
    if pieces is not None and (pieces.axis, pieces.sizes) == (axis, cut.sizes):
        return pieces.names[place]
    return _slice(builder, name, cut, place, axis)


def _is_zero(builder: GraphBuilder, names: Sequence[str]) -> bool:
    """Tell whether one of some arrays is zeros that a derivative has."""
    for name in names:
        node = builder.nodes.get(name)
        calls = ("broadcast_to", "broadcast")
        if node is None or not node.origin.derivative:
            continue
        if node.get("call", node.operator) in calls:
            constant = builder.constants.get(node.inputs[0])
            if constant is not None and not constant.fact.order and constant.value == 0:
                return True
    return False


# ---------------------------------------------------------------- layouts


def _of_layout(builder: GraphBuilder, node: Node, pieces: Pieces) -> str | None:
    source = node.get("source")
    if source.count(pieces.axis) != 1:
        return None
    axis = source.index(pieces.axis)
    parts = [
        builder.layout(node.operator, name, source, with_size(node.shape, axis, size))
        for name, size in zip(pieces.names, pieces.sizes, strict=True)
    ]
    return concatenate(builder, parts, axis, node)


RULE = GraphRule(
    "concatenate_after", "exp(concatenate(a, b))", "concatenate(exp(a), exp(b))", "rounding",
    _apply,
)  # fmt: skip
