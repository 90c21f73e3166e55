"""Reductions → reduce, expand, and maps.

mean(x, axis, keepdims)   →   expand(sum(x) / n), n the number of elements
var(x, axis)              →   d = x - expand(mean(x));  sum(d * d) / (n - ddof)
std(x, axis)              →   sqrt(var(x, axis))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taco_py.graph.extents import ONE, Extent, const, product
from taco_py.graph.fission.expressible import are_computed
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node, Shape

SUMS = ("sum", "prod")
TRUTHS = ("any", "all")


def reduction(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a sum, a product, an extremum or a truth over modes."""
    (name,) = inputs
    if not _is_computed(builder, node, name):
        return builder.numpy(node, inputs)
    reduced = _reduced(builder, node.operator, name, node.get("axis"), node.dtype)
    return _with_keepdims(builder, node, reduced)


def mean(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a mean."""
    (name,) = inputs
    if not _is_computed(builder, node, name):
        return builder.numpy(node, inputs)
    return _with_keepdims(builder, node, _mean(builder, name, node.get("axis"), node.dtype))


def variance(builder: GraphBuilder, node: Node, inputs: Sequence[str]) -> str:
    """Split a variance, or its root."""
    (name,) = inputs
    kinds = {np.dtype(builder.facts[name].dtype).kind, np.dtype(node.dtype).kind}
    if not _is_computed(builder, node, name) or "c" in kinds:
        return builder.numpy(node, inputs)
    axes, dtype = node.get("axis"), node.dtype
    name = _as_type(builder, name, dtype)
    shape = builder.facts[name].shape
    middle = _expanded(builder, _mean(builder, name, axes, dtype), shape, axes)
    deviation = builder.map("subtract", name, middle)
    square = builder.map("multiply", deviation, deviation)
    total = builder.reduce("sum", square, axes, dtype)
    count = product([shape[axis] for axis in axes])
    if ddof := node.get("ddof"):
        rest = Extent("-", (count, const(ddof)))
        count = Extent("max", (rest, const(0)))
    variance = builder.map("divide", total, builder.number(count, dtype))
    if node.operator == "std":
        variance = builder.map("sqrt", variance)
    return _with_keepdims(builder, node, variance)


def _is_computed(builder: GraphBuilder, node: Node, name: str) -> bool:
    fact = builder.facts[name]
    small = np.dtype(fact.dtype).kind in "biu" and np.dtype(fact.dtype).itemsize < 8
    alike = fact.dtype == node.dtype or node.operator not in (*SUMS, "max", "min")
    product_of_small = node.operator == "prod" and small
    ordered = np.dtype(fact.dtype).kind != "c" or node.operator not in ("max", "min")
    truth_extremum = fact.dtype == "bool" and node.operator in ("max", "min")
    if product_of_small or not ordered or truth_extremum:
        return False
    return are_computed((fact, node.fact)) and (alike or (node.operator == "sum" and small))


def _reduced(
    builder: GraphBuilder, function: str, name: str, axes: Sequence[int], dtype: str
) -> str:
    """Reduce over modes; those of size 1 are left out."""
    fact = builder.facts[name]
    if function in TRUTHS and fact.dtype != "bool":
        name = builder.map("not_equal", name, builder.literal(0))
    wide = [axis for axis in axes if fact.shape[axis].constant != 1]
    if wide:
        return builder.reduce(function, name, axes, dtype)
    rest = tuple(axis for axis in range(fact.order) if axis not in axes)
    squeezed = builder.layout("squeeze", name, rest, tuple(fact.shape[axis] for axis in rest))
    return _as_type(builder, squeezed, dtype)


def _mean(builder: GraphBuilder, name: str, axes: Sequence[int], dtype: str) -> str:
    name = _as_type(builder, name, dtype)
    shape = builder.facts[name].shape
    total = _reduced(builder, "sum", name, axes, dtype)
    kind = np.dtype(dtype)
    real = np.zeros(0, kind).real.dtype
    count = builder.number(product([shape[axis] for axis in axes]), str(real))
    return builder.map("divide", total, count)


def _as_type(builder: GraphBuilder, name: str, dtype: str) -> str:
    """Convert to a type that holds all numbers of the own one."""
    if builder.facts[name].dtype == dtype:
        return name
    return builder.map("multiply", name, builder.literal(np.dtype(dtype).type(1)))


def _expanded(builder: GraphBuilder, name: str, shape: Shape, axes: Sequence[int]) -> str:
    """Put modes of size 1 in the places of reduced modes."""
    remaining = [axis for axis in range(len(shape)) if axis not in axes]
    source = tuple(None if axis in axes else remaining.index(axis) for axis in range(len(shape)))
    units = tuple(ONE if axis in axes else size for axis, size in enumerate(shape))
    return builder.layout("expand", name, source, units)


def _with_keepdims(builder: GraphBuilder, node: Node, name: str) -> str:
    """Keep the modes that were reduced as ones of size 1 where that is asked for."""
    if not node.get("keepdims"):
        return name
    return _expanded(builder, name, node.shape, node.get("axis"))
