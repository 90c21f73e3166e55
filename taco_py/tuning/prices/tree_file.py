"""Files of models of trees: two forests, and the ranges of their features.

middle  the forest of the median; spread, that of the distance to the quartiles
least, most  of each feature in what trained them
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.prices.forest import Forest, Rows, forest_in
from taco_py.tuning.prices.model_file import ModelFile, Origin, origin_in, write_model_file

FORESTS = ("middle", "spread")


def tree_arrays(middle: Forest, spread: Forest, least: Rows, most: Rows) -> dict[str, Any]:
    """Return the arrays of a model by name."""
    arrays: dict[str, Any] = {"least": least, "most": most}
    for name, forest in zip(FORESTS, (middle, spread), strict=True):
        arrays.update(forest.arrays(name))
    return arrays


def write_trees(
    path: str | Path,
    arrays: Mapping[str, NDArray[Any]],
    version: int,
    features: Collection[str],
    origin: Origin,
) -> None:
    """Write a model to a file."""
    words = {"version": version, "features": list(features), "origin": asdict(origin)}
    write_model_file(path, words, arrays)


def trees_in(
    file: ModelFile, version: int, features: Collection[str], trainer: str
) -> tuple[Forest, Forest, Rows, Rows, Origin]:
    """Return the forests of a file, the ranges of their features and the origin.

    trainer  what trains such a model again

    Raises FileFormatError for a file of another version, or of a release with other features.
    """
    file.check_version(version, trainer)
    file.check_features([*features])
    count = len(features)
    for name in ("least", "most"):
        array = file.arrays.get(name, np.zeros(0))
        if array.shape != (count,) or array.dtype.kind != "f" or np.isnan(array).any():
            raise FileFormatError(
                f"Expected {count} numbers in {name} of {file.path}, found others"
            )
    middle, spread = (forest_in(file.arrays, name, count, file.path) for name in FORESTS)
    return middle, spread, file.arrays["least"], file.arrays["most"], origin_in(file)
