"""Take slices of what is put together from its pieces.

concatenate(a, b)[:n]         →   a                        a of n rows
concatenate(a, b)[1:-1]       →   concatenate(a[1:], b[:-1])
concatenate(a, b, 1)[2:5]     →   concatenate(a[2:5], b[2:5], 1)
"""

from __future__ import annotations

from typing import Any

from taco_py.graph.extents import Extent, bounds
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule
from taco_py.graph.rules.pieces import Pieces, concatenate, pieces_of
from taco_py.graph.rules.slice_before import part_shape
from taco_py.graph.rules.slice_tiles import FULL_SLICE

LEAST = 2
"""Elements that a mode of an operand has, where a trace holds for its sizes."""


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.get("call") != "slice":
        return None
    pieces = pieces_of(builder, node.inputs[0])
    key = node.get("key")
    if pieces is None or ("new",) in key:
        return None
    entries = _entries(pieces, key[pieces.axis])
    if entries is None:
        return None
    parts = []
    for name, entry in entries:
        part_key = tuple(entry if mode == pieces.axis else e for mode, e in enumerate(key))
        if all(e == FULL_SLICE for e in part_key):
            parts.append(name)
            continue
        fact = builder.facts[name]
        shape = part_shape(fact.shape, part_key)
        parts.append(builder.add("numpy", (name,), shape, fact.dtype, call="slice", key=part_key))
    axis = sum(not _is_at(entry) for entry in key[: pieces.axis])
    fits = all(_fits(builder, part, node, axis if len(parts) > 1 else None) for part in parts)
    return concatenate(builder, parts, axis, node) if fits else None


def _fits(builder: GraphBuilder, part: str, node: Node, axis: int | None) -> bool:
    """Tell whether a part has the type of the result, and its modes of size 1.

    axis  along which parts are put together, None for one part
    """
    pairs = enumerate(zip(builder.facts[part].shape, node.shape, strict=True))
    alike = all(
        mode == axis or one.constant == other.constant or other.constant != 1
        for mode, (one, other) in pairs
    )
    unit = axis is not None and node.shape[axis].constant == 1
    return alike and not unit and builder.facts[part].dtype == node.dtype


def _is_at(entry: tuple[Any, ...]) -> bool:
    return bool(entry[0] == "at")


def _entries(pieces: Pieces, entry: tuple[Any, ...]) -> list[tuple[str, tuple[Any, ...]]] | None:
    """Return the pieces that a slice reads, each with the part of it; None where that is not
    known."""
    if entry == FULL_SLICE:
        return [(name, FULL_SLICE) for name in pieces.names]
    if _is_at(entry):
        return None
    _, start, stop, step = entry
    if step is not None:
        return None
    first, skipped = _first(pieces, start)
    last, left = _last(pieces, stop)
    if first is None or last is None or first > last:
        return None
    entries: list[tuple[str, tuple[Any, ...]]] = []
    for place in range(first, last + 1):
        begin = skipped if place == first else None
        end = left if place == last else None
        entries.append((pieces.names[place], ("slice", begin, end, None)))
    return entries


def _first(pieces: Pieces, start: Extent | None) -> tuple[int | None, Extent | None]:
    """Return the piece that a slice begins in, and where in it."""
    if start is None or start.constant == 0:
        return 0, None
    inner = bounds(pieces.sizes)[1:-1]
    if start in inner:
        return inner.index(start) + 1, None
    is_in_first = start.constant is not None and 0 < start.constant <= least_size(pieces.sizes[0])
    return (0, start) if is_in_first else (None, None)


def _last(pieces: Pieces, stop: Extent | None) -> tuple[int | None, Extent | None]:
    """Return the piece that a slice ends in, and where in it."""
    if stop is None:
        return len(pieces.names) - 1, None
    inner = bounds(pieces.sizes)[1:-1]
    if stop in inner:
        return inner.index(stop), None
    constant = stop.constant
    if constant is not None and 0 < -constant <= least_size(pieces.sizes[-1]):
        return len(pieces.names) - 1, stop
    if constant is not None and 0 < constant <= least_size(pieces.sizes[0]):
        return 0, stop
    return None, None


def least_size(size: Extent) -> int:
    """Return the elements that a mode has in any call of a trace."""
    if size.constant is not None:
        return int(size.constant)
    return LEAST if size.operator == "size" else 0


RULE = GraphRule(
    "slice_of_concatenate", "concatenate(a, b)[1:]", "concatenate(a[1:], b)", "nothing", _apply
)
