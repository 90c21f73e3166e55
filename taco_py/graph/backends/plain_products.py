"""Contractions of two arrays, as libraries have them.

labels ((0, 1), (1, 2)), kept (0, 2)   →   "ab,bc->ac"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taco_py.graph.backends.backend import Facts
from taco_py.graph.nodes import Node

MATRIX_BYTES_PER_SECOND = 1e10
"""Of matrices that a library reads once, as the planner has it."""


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
