"""Files of models of trees: two forests, the ranges of their features, and a header.

about   version, names of features, where the times come from, as JSON
middle  the forest of the median; spread, that of the distance to the quartiles
least, most  of each feature in what trained them
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.prices.forest import Forest, Rows, forest_in

FORESTS = ("middle", "spread")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the times of a model come from.

    processor, compiler  that the kernels ran on and were compiled by
    when      day of the last one, as ISO 8601 has it
    records   kernels and plans that were measured
    digest    of the records that trained it
    """

    processor: str = ""
    compiler: str = ""
    when: str = ""
    records: int = 0
    digest: str = ""


def tree_arrays(middle: Forest, spread: Forest, least: Rows, most: Rows) -> dict[str, Any]:
    """Return the arrays of a model by name."""
    arrays: dict[str, Any] = {"least": least, "most": most}
    for name, forest in zip(FORESTS, (middle, spread), strict=True):
        arrays.update(forest.arrays(name))
    return arrays


def write_trees(
    path: str | Path,
    arrays: dict[str, Any],
    version: int,
    features: Collection[str],
    origin: Origin,
) -> None:
    """Write a model to a file."""
    words = {"version": version, "features": list(features), "origin": asdict(origin)}
    with Path(path).open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(words)), **arrays)


def read_trees(
    path: str | Path, noun: str, version: int, features: Collection[str], trainer: str
) -> tuple[Forest, Forest, Rows, Rows, Origin]:
    """Return the forests of a file, the ranges of their features and the origin; nothing is run.

    noun     what the file is of, in messages
    trainer  what trains such a model again

    Raises FileFormatError for a file of something else, or of a release with other features.
    """
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (BadZipFile, ValueError, EOFError, KeyError, AttributeError) as error:
        raise FileFormatError(
            f"Expected a file of {noun}, found none in {path}: {error}"
        ) from error
    words = _words(arrays, path, noun, version, features, trainer)
    count = len(features)
    for name in ("least", "most"):
        array = arrays.get(name)
        if array is None or array.shape != (count,) or array.dtype.kind != "f":
            raise FileFormatError(f"Expected {count} numbers in {name} of {path}, found others")
    middle, spread = (forest_in(arrays, name, count) for name in FORESTS)
    return middle, spread, arrays["least"], arrays["most"], _origin(words.get("origin"))


def _words(
    arrays: Mapping[str, NDArray[Any]],
    path: str | Path,
    noun: str,
    version: int,
    features: Collection[str],
    trainer: str,
) -> dict[str, Any]:
    """Return the header of a file. Raises FileFormatError for other versions and features."""
    try:
        words = json.loads(str(arrays["about"]))
        file_version, names = words["version"], words["features"]
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"Expected the header of {noun} in {path}, found none") from error
    if file_version != version:
        raise FileFormatError(
            f"Expected version {version} of {noun}, found {file_version} in {path}",
            hint=f"train it again: {trainer}",
        )
    if names != list(features):
        differences = sorted({*map(str, names)} ^ {*features})
        raise FileFormatError(
            f"Expected the features of this release, found others in {path}: "
            + (", ".join(differences[:5]) or "in another order"),
            hint=f"train it again: {trainer}",
        )
    return dict(words)


def _origin(words: Any) -> Origin:
    try:
        return Origin(**words)
    except TypeError as error:
        raise FileFormatError(f"Expected where a price comes from, found {words!r:.80}") from error


def digest_of_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest of arrays by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()[:16]
