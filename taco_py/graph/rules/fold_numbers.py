"""Compute numbers once that no array is part of.

    divide(-1.0, 512.0)    →   -0.001953125            of a trace
    divide(-1.0, n)        →   the number -1.0 / n      of a call, n a size

What is spread over an array then waits for no kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.graph.extents import Extent, const
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.number_functions import element_function
from taco_py.graph.rules.base import GraphRule

INFIX: Mapping[str, str] = MappingProxyType({
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/",
})  # fmt: skip
"""Functions of sizes of each call, as Python writes them."""


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator != "map" or node.fact.order or node.name in builder.handed:
        return None
    leaves = (builder.constants, builder.numbers)
    if any(not any(name in table for table in leaves) for name in node.inputs):
        return None
    if all(name in builder.constants for name in node.inputs):
        return _literal(builder, node)
    return _number(builder, node)


def _literal(builder: GraphBuilder, node: Node) -> str | None:
    """Return the number of numbers that are the same in all calls, as NumPy computes it."""
    values = [builder.constants[name].value for name in node.inputs]
    function = element_function(node.get("function"))
    alone = all(isinstance(value, int | float | complex | np.generic) for value in values)
    if not isinstance(function, np.ufunc) or not alone:
        return None
    with np.errstate(all="ignore"):
        result = function(*values)
    return builder.literal(np.dtype(node.dtype).type(result))


def _number(builder: GraphBuilder, node: Node) -> str | None:
    """Return the number of sizes of each call; of real ones, which these are exact in."""
    if np.dtype(node.dtype).kind != "f":
        return None
    extents = [_extent(builder, name) for name in node.inputs]
    if None in extents:
        return None
    if node.get("function") == "negative":
        return builder.number(Extent("neg", tuple(extents)), node.dtype)
    infix = INFIX.get(node.get("function"))
    return builder.number(Extent(infix, tuple(extents)), node.dtype) if infix else None


def _extent(builder: GraphBuilder, name: str) -> Extent | None:
    if name in builder.numbers:
        extent = builder.numbers[name].extent
        return extent if _is_of_sizes(extent) else None
    value: Any = builder.constants[name].value
    is_real = isinstance(value, int | float | np.floating | np.integer)
    is_foldable = is_real and not isinstance(value, bool) and np.isfinite(value)
    return const(value.item() if isinstance(value, np.generic) else value) if is_foldable else None


def _is_of_sizes(extent: Extent) -> bool:
    """Tell whether a number follows from sizes: of one that the user passes a quotient may fail."""
    return extent.operator != "value" and all(
        _is_of_sizes(arg) for arg in extent.args if isinstance(arg, Extent)
    )


RULE = GraphRule("fold_numbers", "-1.0 / n, n a size", "a number of each call", "rounding", _apply)
