"""Subscripts with arrays of positions → gather, of positions that are checked before kernels run.

x[p]                   →   q = positions(p), gather(x, q): R[i,k] = sum(j, q[i,j] * x[j,k])
logp[np.arange(n), y]  →   gather(logp, positions(arange), positions(y))
x[1:, p]               →   gather(x[1:], q): NumPy takes the part
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.graph.extents import Extent
from taco_py.graph.fission.dense_values import is_dense
from taco_py.graph.fission.expressible import are_computed
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.position_operands import POSITIONS

FULL_SLICE = ("slice", None, None, None)
NEW = ("new",)

Key = Sequence[tuple[Any, ...]]
"""The subscripts of an operator: arrays, integers, slices and new modes."""


def index(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split subscripts with arrays of positions; of sparse arrays and of integers NumPy's."""
    name, *arrays = inputs
    key = node.get("key")
    if not _is_computed(builder, node, inputs):
        return builder.numpy(node, inputs)
    orders = [builder.facts[array].order for array in arrays]
    first, places = _placed(key, max(orders))
    source = iter(arrays)
    part = _part(builder, node, name, places)
    dtype = builder.facts[name].dtype
    modes: list[int | tuple[int, tuple[int, ...]]] = []
    read = [part]
    for axis, (entry, place) in enumerate(zip(_of_axes(key), places, strict=True)):
        if entry[0] == "at":
            continue
        if place is not None:
            modes.append(place)
            continue
        array = next(source)
        begin = first + max(orders) - builder.facts[array].order
        units = builder.facts[array].units
        modes.append((len(read), tuple(begin + m for m, unit in enumerate(units) if not unit)))
        size = builder.facts[name].shape[axis]
        read.append(positions(builder, array, size, axis, dtype))
    return builder.add("gather", read, node.shape, dtype, modes=tuple(modes))


def _placed(key: Key, width: int) -> tuple[int, list[int | None]]:
    """Find where the modes of positions begin in a result, and for each slice which mode it is.

    width  the number of modes of the positions
    """
    advanced = [place for place, entry in enumerate(key) if entry[0] in ("array", "at")]
    adjacent = advanced == [*range(advanced[0], advanced[-1] + 1)]
    first = advanced[0] if adjacent else 0
    modes: list[int | None] = []
    rest = 0
    for place, entry in enumerate(key):
        if place in advanced:
            modes.append(None)
            continue
        if entry != NEW:
            modes.append(rest if rest < first else rest + width)
        rest += 1
    return first, modes


def _is_computed(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> bool:
    """Tell whether kernels read the elements: real or complex ones of a dense array."""
    name, *arrays = inputs
    fact = builder.facts[name]
    if np.dtype(fact.dtype).kind not in "fc" or not are_computed((fact,)) or fact.weak:
        return False
    if not is_dense(builder, name) or fact.order != len(_of_axes(node.get("key"))):
        return False
    integral = all(np.dtype(builder.facts[array].dtype).kind in "iu" for array in arrays)
    sizes = [*fact.shape, *node.shape]
    axes = [size for size, entry in zip(fact.shape, _of_axes(node.get("key")), strict=True)
              if entry[0] == "array"]  # fmt: skip
    return integral and all(s.constant != 0 for s in sizes) and all(s.constant != 1 for s in axes)


def _of_axes(key: Key) -> list[tuple[Any, ...]]:
    return [entry for entry in key if entry != NEW]


def _part(builder: GraphBuilder, node: Node, name: str, places: Sequence[int | None]) -> str:
    """Take the slices and integers among subscripts before the positions."""
    fact = builder.facts[name]
    entries = _of_axes(node.get("key"))
    key = tuple(FULL_SLICE if entry[0] == "array" else entry for entry in entries)
    if all(entry == FULL_SLICE for entry in key):
        return name
    shape = tuple(
        size if place is None else node.shape[place]
        for size, place, entry in zip(fact.shape, places, entries, strict=True)
        if entry[0] != "at"
    )
    return builder.add("numpy", (name,), shape, fact.dtype, call="slice", key=key)


def positions(builder: GraphBuilder, array: str, size: Extent, axis: int, dtype: str) -> str:
    """Make the operand that has one entry a row, at positions below a size.

    axis   of the array that is read, for errors
    dtype  of its elements
    """
    shape = builder.facts[array].shape
    wide = tuple(extent for extent in shape if extent.constant != 1)
    array = _without_units(builder, array)
    real = np.zeros(0, dtype).real.dtype.name
    return builder.add("numpy", (array,), (*wide, size), real, call=POSITIONS, axis=axis)


def _without_units(builder: GraphBuilder, name: str) -> str:
    """Return the array in which modes of size 1 were put, or from which they were left out."""
    while name in builder.nodes and builder.nodes[name].operator in ("expand", "squeeze"):
        (name,) = builder.nodes[name].inputs
    return name
