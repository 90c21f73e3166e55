"""Zeros with slices put in are put together of these slices and of zeros around them.

    scatter(g, [2:5])                   →   concatenate(zeros(2), g, zeros of the rest)
    parts(f at [:n], g at [n:])         →   concatenate(f, g)

Of slices that lie one behind the other, with steps of 1; others stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.graph.extents import ONE, Extent, const
from taco_py.graph.fission.expressible import are_computed
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node, Shape
from taco_py.graph.rules.base import GraphRule
from taco_py.graph.rules.pieces import concatenate, with_size, zeros
from taco_py.graph.rules.slice_before import part_shape
from taco_py.graph.rules.slice_of_concatenate import least_size
from taco_py.graph.rules.slice_tiles import FULL_SLICE, Key, mode_cut, order_of_tiles


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    call = node.get("call")
    if call not in ("scatter", "parts") or not builder.sparse.isdisjoint(node.inputs):
        return None
    if np.dtype(node.dtype).kind not in "fc" or not are_computed((node.fact,)):
        return None
    keys = _keys(node)
    if keys is None or any(len(key) != len(node.shape) for key in keys):
        return None
    if any(builder.facts[name].dtype != node.dtype for name in node.inputs):
        return None
    mode = mode_cut(keys)
    if mode is None:
        return None
    order = order_of_tiles(keys, mode)
    if order is None:
        return _of_every(builder, node, keys, mode) or _of_overlap(builder, node, keys, mode)
    if any(builder.facts[name].shape[mode].constant == 0 for name in node.inputs):
        return None
    first, last = keys[order[0]][mode], keys[order[-1]][mode]
    names = [node.inputs[place] for place in order]
    if not _is_zero(first[1]):
        names.insert(0, _zeros(builder, node, mode, None, first[1]))
    if last[2] is not None:
        names.append(_zeros(builder, node, mode, last[2], None))
    return concatenate(builder, names, mode, node)


def _keys(node: Node) -> list[Key] | None:
    """Return the slices that arrays are put at; None where there are other subscripts."""
    key, keys = iter(node.get("key")), []
    for count in node.get("counts", (len(node.get("key")),)):
        keys.append(tuple(next(key) for _ in range(count)))
    plain = all(entry[0] == "slice" for group in keys for entry in group)
    return keys if plain and len(keys) == len(node.inputs) else None


def _is_zero(start: Extent | None) -> bool:
    return start is None or start.constant == 0


def _zeros(
    builder: GraphBuilder, node: Node, mode: int, start: Extent | None, stop: Extent | None
) -> str:
    key: Sequence[tuple[object, ...]] = [
        ("slice", start, stop, None) if axis == mode else FULL_SLICE
        for axis in range(len(node.shape))
    ]
    size = part_shape(node.shape, tuple(key))[mode]
    return zeros(builder, with_size(node.shape, mode, size), node.dtype)


def _of_every(builder: GraphBuilder, node: Node, keys: Sequence[Key], mode: int) -> str | None:
    """Put parts together that alternate along a mode, each at every k-th element of it.

    parts(f at [::2], g at [1::2])   →   reshape(concatenate(f[:, None], g[:, None]))
    """
    count, size = len(keys), node.shape[mode]
    rows = Extent("//", (size, const(count)))
    starts = {}
    for name, key in zip(node.inputs, keys, strict=True):
        _, start, stop, step = key[mode]
        steps = None if step is None else step.constant
        first = 0 if start is None else start.constant
        if stop is not None or steps != count or builder.facts[name].shape[mode] != rows:
            return None
        starts[first] = name
    if {*starts} != {*range(count)}:
        return None
    wide = (*node.shape[:mode], rows, const(count), *node.shape[mode + 1 :])
    narrow = with_size(wide, mode + 1, ONE)
    source = [None if at == mode + 1 else at - (at > mode) for at in range(len(wide))]
    parts = [builder.layout("expand", starts[first], source, narrow) for first in range(count)]
    array = builder.add("numpy", parts, wide, node.dtype, call="concatenate", axis=mode + 1)
    outer = [() if extent.constant == 1 else (extent,) for extent in wide]
    after: list[Shape] = [() if extent.constant == 1 else (extent,) for extent in node.shape]
    after[mode] = (rows, const(count))
    factors = (tuple(outer), tuple(after))
    return builder.add("numpy", (array,), node.shape, node.dtype, call="reshape", factors=factors)


def _of_overlap(builder: GraphBuilder, node: Node, keys: Sequence[Key], mode: int) -> str | None:
    """Add parts of which one lacks the first elements and one the last ones.

    parts(f at [1:], g at [:-1])   →   concatenate(g[:1], f[:-1] + g[1:], f[-1:])
    """
    if len(keys) != 2:
        return None
    ends = {
        (_constant(key[mode][1]), _constant(key[mode][2])): name
        for key, name in zip(keys, node.inputs, strict=True)
        if key[mode][3] is None
    }
    late = next((pair for pair in ends if pair[0] > 0 and pair[1] == 0), None)
    early = next((pair for pair in ends if pair[0] == 0 and pair[1] < 0), None)
    if late is None or early is None:
        return None
    first, last = late[0], -early[1]
    if first + last > least_size(node.shape[mode]):
        return None
    inner = Extent("-", (node.shape[mode], const(first + last)))

    def part(name: str, start: int | None, stop: int | None, size: Extent) -> str:
        ends = (None if end is None else const(end) for end in (start, stop))
        entry = ("slice", *ends, None)
        key = tuple(entry if at == mode else FULL_SLICE for at in range(len(node.shape)))
        shape = with_size(node.shape, mode, size)
        return builder.add("numpy", (name,), shape, node.dtype, call="slice", key=key)

    f, g = ends[late], ends[early]
    middle = builder.map("add", part(f, None, -last, inner), part(g, first, None, inner),
                       dtype=node.dtype)  # fmt: skip
    names = (part(g, None, first, const(first)), middle, part(f, -last, None, const(last)))
    return concatenate(builder, names, mode, node)


def _constant(end: Extent | None) -> int:
    """Return an end of a slice, 0 for none; a number that no slice has for others."""
    if end is None:
        return 0
    return int(end.constant) if end.constant is not None else UNKNOWN


UNKNOWN = 1 << 62
"""An end of a slice that is not known."""

RULE = GraphRule(
    "scatter_as_concatenate", "scatter(g, [2:])", "concatenate(zeros(2), g)", "nothing", _apply
)
