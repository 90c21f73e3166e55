"""Contractions of two arrays, as libraries have them.

labels ((0, 1), (1, 2)), kept (0, 2)   →   "ab,bc->ac"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.ways.dense_seconds import DenseProduct, seconds_in_tiles
from taco_py.data.kernels import KERNELS
from taco_py.graph.backends.backend import Facts
from taco_py.graph.graph_builder import is_layout
from taco_py.graph.nodes import Graph, Node

MATRIX_BYTES_PER_SECOND = 1e10
"""Of matrices that a library reads once, as the planner has it."""
LIBRARY = NOMINAL.with_costs(packed_element_seconds=NOMINAL.dense.strided_element_seconds)
"""The machine as libraries use it."""


def is_plain_product(node: Node, facts: Facts) -> bool:
    """Tell whether a primitive is a plain product of two arrays of its own type.

    Each mode is in two of operands and result, of one size: no diagonal, no sum of one array alone,
    nothing stretched.
    """
    if node.operator != "contract" or len(node.inputs) != 2:
        return False
    if any(facts[name].dtype != node.dtype for name in node.inputs):
        return False
    users = (*node.get("labels"), node.get("kept"))
    if any(len({*labels}) != len(labels) for labels in users) or not all(node.get("labels")):
        return False
    sizes: dict[int, int] = {}
    for labels, name in zip(users, (*node.inputs, node.name), strict=True):
        for label, size in zip(labels, facts[name].shape, strict=True):
            if sizes.setdefault(label, size) != size:
                return False
    return all(sum(label in labels for labels in users) > 1 for label in sizes)


def letters_of(node: Node) -> tuple[str, Callable[[Any, Any], tuple[int, ...]]]:
    """Write a contraction of two arrays in letters; with it the result's shape of two arrays.

    The latter raises ValueError where their sizes do not agree.
    """
    (left, right), output_labels = node.get("labels"), node.get("kept")
    names = {label: chr(ord("a") + k) for k, label in enumerate(dict.fromkeys((*left, *right)))}
    text = ["".join(names[label] for label in group) for group in (left, right, output_labels)]
    shared = [(left.index(label), right.index(label)) for label in left if label in right]
    places = [(0, left.index(e)) if e in left else (1, right.index(e)) for e in output_labels]

    def shape(a: Any, b: Any) -> tuple[int, ...]:
        if any(a.shape[one] != b.shape[other] for one, other in shared):
            raise ValueError(f"Expected sizes that agree, found {a.shape} and {b.shape}")
        return tuple((a, b)[array].shape[axis] for array, axis in places)

    return f"{text[0]},{text[1]}->{text[2]}", shape


def seconds_by_tiles(region: Graph, node: Node, facts: Facts) -> float:
    """Return the seconds of a product of matrices by a library, in register tiles of one vector.

    It is the price of tiles of our own, so that which of them pays depends on the shape alone: of
    narrow results, and of deep sums, whose operands a library packs element by element.
    Measured: 45 to 49 billion products of floats a second, 23 to 25 of doubles; 14 to 26 where
    64 by 32 sums have 20 000 terms.
    """
    sizes: dict[str, float] = {}
    arrays = []
    users = (node.get("kept"), *node.get("labels"))
    for name, labels in zip((node.name, *node.inputs), users, strict=True):
        letters = tuple(map(str, labels))
        sizes.update(zip(letters, map(float, facts[name].shape), strict=True))
        arrays.append(_as_stored(region, name, letters))
    result, left, right = arrays
    itemsize = np.dtype(node.dtype).itemsize
    product = DenseProduct(result, left, right, sizes, itemsize, LIBRARY)
    real = 2 if np.dtype(node.dtype).kind == "c" else 1  # complex numbers are twice as long
    seconds = real * seconds_in_tiles(product, product.lanes)
    return LIBRARY.shared_seconds(seconds, KERNELS.cores)


def _as_stored(region: Graph, name: str, letters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the letters of a value in the order in which the array that it shows has them."""
    node = region.by_name.get(name)
    if node is None or not is_layout(node):
        return letters
    source = node.get("source", ())
    modes = {axis: letter for axis, letter in zip(source, letters, strict=True) if axis is not None}
    return tuple(modes[axis] for axis in sorted(modes))


def products_of(node: Node, facts: Facts) -> float:
    """Count the numbers that a contraction multiplies."""
    sizes: dict[int, int] = {}
    for name, labels in zip(node.inputs, node.get("labels"), strict=True):
        for label, size in zip(labels, facts[name].shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    count = 1.0
    for size in sizes.values():
        count *= size
    return count
