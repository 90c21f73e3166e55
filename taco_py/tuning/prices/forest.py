"""A sum of regression trees over rows of numbers, as arrays.

a row of features   →   in each tree left where a feature is at most a threshold, else right
                    →   the sum of the values of the leaves
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import FileFormatError

Rows = NDArray[np.float64]
DEEPEST = 64
"""Nodes on the way to a leaf at most: more in a file would take a call as long as a damaged one."""
FIELDS = ("feature", "threshold", "left", "right", "value", "roots")


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees whose nodes stand in shared arrays; a leaf is a node that leads to itself.

    feature    column that a node compares
    threshold  largest number that goes left; NaN goes right
    left, right  nodes that follow
    value      of leaves
    roots      first node of each tree
    depth      nodes before a leaf at most
    """

    feature: NDArray[np.int32]
    threshold: Rows
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Rows
    roots: NDArray[np.int32]
    depth: int

    def __post_init__(self) -> None:
        """Lay the arrays out as the compiled function reads them."""
        for name in FIELDS:
            dtype = np.float64 if name in ("threshold", "value") else np.int32
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype))

    def predict(self, rows: Rows) -> Rows:
        """Return the sum of a tree's values for each row."""
        if not len(self.roots):
            return np.zeros(len(rows))
        function = KERNELS.host_functions.get("taco_sum_of_trees")
        if function is not None:
            total: Rows = np.empty(len(rows))
            nodes = (self.feature, self.threshold, self.left, self.right, self.value, self.roots)
            function(
                np.ascontiguousarray(rows, np.float64), *nodes, total, *rows.shape, len(self.roots)
            )
            return total
        return self.predict_by_level(rows)

    def predict_by_level(self, rows: Rows) -> Rows:
        """Return the same by NumPy, a level of all trees at a time."""
        places = np.arange(len(rows))[:, None]
        nodes = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        for _ in range(self.depth):
            goes_left = rows[places, self.feature[nodes]] <= self.threshold[nodes]
            nodes = np.where(goes_left, self.left[nodes], self.right[nodes])
        summed: Rows = self.value[nodes].sum(axis=1)
        return summed

    def arrays(self, head: str) -> dict[str, NDArray[Any]]:
        """Return the arrays for a file, in small types, by names that begin with `head`."""
        small = {"threshold": np.float32, "value": np.float32, "feature": np.int16}
        return {
            f"{head}.{name}": getattr(self, name).astype(small.get(name, np.int32))
            for name in FIELDS
        }


def forest_of(trees: Iterable[Mapping[str, Any]]) -> Forest:
    """Return the forest of nested trees.

    trees  {"feature": 3, "threshold": 0.5, "left": …, "right": …} with {"value": 1.5} for leaves
    """
    nodes: list[list[float]] = []
    roots, depth = [], 0

    def add(tree: Mapping[str, Any], level: int) -> int:
        nonlocal depth
        place, depth = len(nodes), max(depth, level)
        nodes.append([0, np.inf, place, place, 0.0])
        if "value" in tree:
            nodes[place][4] = tree["value"]
        else:
            left, right = add(tree["left"], level + 1), add(tree["right"], level + 1)
            nodes[place][:4] = [tree["feature"], tree["threshold"], left, right]
        return place

    for tree in trees:
        roots.append(add(tree, 0))
    table = np.array(nodes, np.float64).reshape(-1, 5)
    feature, left, right = (table[:, column].astype(np.int32) for column in (0, 2, 3))
    return Forest(feature, table[:, 1], left, right, table[:, 4], np.array(roots, np.int32), depth)


def with_constant(forest: Forest, value: float) -> Forest:
    """Return the forest with a number added to all that it sums up to: a tree of one leaf."""
    more = forest_of([{"value": value}])
    count = len(forest.feature)
    return Forest(
        np.append(forest.feature, more.feature), np.append(forest.threshold, more.threshold),
        np.append(forest.left, more.left + count), np.append(forest.right, more.right + count),
        np.append(forest.value, more.value), np.append(forest.roots, more.roots + count),
        forest.depth,
    )  # fmt: skip


def forest_in(arrays: Mapping[str, NDArray[Any]], head: str, features: int, path: str) -> Forest:
    """Return the forest of a file's arrays. Raises FileFormatError where they are none.

    features  columns of its rows
    path      of the file
    """
    missing = [name for name in FIELDS if f"{head}.{name}" not in arrays]
    if missing:
        raise FileFormatError(f"Expected the array {head}.{missing[0]}, found none in {path}")
    feature, threshold, left, right, value, roots = (arrays[f"{head}.{name}"] for name in FIELDS)
    place = f"of {head} in {path}"
    columns, count = (feature, threshold, left, right, value), len(feature)
    if any(column.shape != (count,) or column.dtype.kind not in "if" for column in columns):
        raise FileFormatError(f"Expected arrays of {count} numbers {place}, found others")
    for name, array, most in (
        ("feature", feature, features), ("left", left, count), ("right", right, count),
        ("roots", roots, count),
    ):  # fmt: skip
        if array.dtype.kind != "i" or array.ndim != 1 or (array < 0).any() or (array >= most).any():
            raise FileFormatError(f"Expected places below {most} in {name} {place}, found others")
    if np.isnan(threshold).any() or not np.isfinite(value).all():
        raise FileFormatError(f"Expected numbers {place}, found NaN")
    places = [array.astype(np.int32) for array in (feature, left, right, roots)]
    depth = _depth(places[1], places[2], places[3], place)
    numbers = threshold.astype(np.float64), value.astype(np.float64)
    return Forest(places[0], numbers[0], places[1], places[2], numbers[1], places[3], depth)


def _depth(left: Any, right: Any, roots: Any, place: str) -> int:
    """Return the nodes before a leaf at most. Raises FileFormatError for nodes in circles."""
    level = np.unique(roots)
    for depth in range(DEEPEST):
        level = level[(left[level] != level) | (right[level] != level)]
        if not len(level):
            return depth
        level = np.unique(np.concatenate((left[level], right[level])))
    raise FileFormatError(f"Expected trees of {DEEPEST} levels at most {place}, found more")
