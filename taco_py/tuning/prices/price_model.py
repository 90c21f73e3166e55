"""A learned price: what a kernel takes over its analytic price, and between which quartiles.

    seconds of a kernel = analytic price · 2 ** (sum of the trees over its features)
    seconds of a plan   = sum over its kernels, and its other steps as the analytic price has them

A kernel with counts beyond those that the model was trained on keeps its analytic price. (Zheng et
al. 2020, Ansor, add up scores of statements; Chen and Guestrin 2016 boost trees.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.arguments.learned_price import LearnedPrice
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.prices.forest import Forest, Rows, forest_in
from taco_py.tuning.prices.kernel_features import FEATURES

VERSION = 1
FORESTS = ("middle", "spread")
RANGED = ("price", "iterations", "volume", "entries", "bytes", "result entries")
"""Features of which a model knows nothing beyond the numbers that it was trained on, but for
`BEYOND`. Of more threads than ran it knows nothing either."""
MOST = 10.0
"""Powers of two that a price is corrected by at most."""
BEYOND = 1.0
"""By how many powers of two a count may be beyond them."""


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


class LearnedModel(LearnedPrice):
    """A price that was learned, with where its times come from: trees, or a network."""

    __slots__ = ()
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriceModel(LearnedModel):
    """Trees for log2(measured seconds / analytic price) of a kernel.

    middle       the median
    spread       how far the quartiles are from it, as found on programs that trees were not
                 grown on
    least, most  of each feature in what trained it
    """

    middle: Forest
    spread: Forest
    least: Rows
    most: Rows
    origin: Origin = Origin()
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", _digest(self._arrays()))

    def ratios(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Return the quartiles of measured over analytic seconds for kernels: 25, 50, 75 %.

        1 where a kernel is outside of what is known.
        """
        low, middle, high = self.predict(rows)[0]
        return low, middle, high

    def predict(self, rows: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the three quartiles as rows, and whether each kernel is outside of the model.

        Its counts are then beyond those of the training data, or a quartile is no number.
        """
        middle, spread = self.middle.predict(rows), self.spread.predict(rows)
        outside = self._is_beyond(rows) | ~np.isfinite(middle) | ~np.isfinite(spread)
        middle, spread = np.where(outside, 0.0, middle), np.where(outside, 0.0, spread)
        sides = np.stack(
            [middle - np.maximum(spread, 0.0), middle, middle + np.maximum(spread, 0.0)]
        )
        return np.exp2(np.clip(sides, -MOST, MOST)), outside

    def _is_beyond(self, rows: Rows) -> NDArray[np.bool_]:
        """Tell whether the counts of each kernel are beyond the ranges of the training data."""
        places = [list(FEATURES).index(name) for name in RANGED]
        some = rows[:, places]
        below = some < self.least[places] - BEYOND
        above = some > self.most[places] + BEYOND
        threads = [*FEATURES].index("threads")
        more = rows[:, threads] > self.most[threads]
        outside: NDArray[np.bool_] = np.any(below | above, axis=1) | more
        return outside

    def save(self, path: str | Path) -> None:
        """Write the model to a file of arrays."""
        words = {"version": VERSION, "features": list(FEATURES), "origin": asdict(self.origin)}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, about=np.array(json.dumps(words)), **self._arrays())

    def _arrays(self) -> dict[str, Any]:
        """Return the arrays of a file by name."""
        arrays: dict[str, Any] = {"least": self.least, "most": self.most}
        for name in FORESTS:
            arrays.update(getattr(self, name).arrays(name))
        return arrays


def load_price(path: str | Path) -> PriceModel:
    """Return the learned price that `PriceModel.save` wrote to a file; nothing in it is run.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mine.npz"
    >>> path.write_bytes(b"something else")
    14
    >>> tp.load_price(path)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileFormatError: Expected a file of a learned price, found none

    path  of the file

    Raises FileFormatError for a file of something else, or of a release with other features.
    """
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (BadZipFile, ValueError, EOFError, KeyError, AttributeError) as error:
        raise FileFormatError(
            f"Expected a file of a learned price, found none in {path}: {error}"
        ) from error
    words = _words(arrays, path)
    count = len(FEATURES)
    for name in ("least", "most"):
        array = arrays.get(name)
        if array is None or array.shape != (count,) or array.dtype.kind != "f":
            raise FileFormatError(f"Expected {count} numbers in {name} of {path}, found others")
    middle, spread = (forest_in(arrays, name, count) for name in FORESTS)
    return PriceModel(
        middle, spread, arrays["least"], arrays["most"], _origin(words.get("origin"), path)
    )


def _words(arrays: Mapping[str, NDArray[Any]], path: str | Path) -> dict[str, Any]:
    """Return the header of a file. Raises FileFormatError for other versions and features."""
    try:
        words = json.loads(str(arrays["about"]))
        version, names = words["version"], words["features"]
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"Expected the header of a learned price in {path}, found none"
        ) from error
    if version != VERSION:
        raise FileFormatError(
            f"Expected version {VERSION} of learned prices, found {version} in {path}",
            hint="train it again: tp.learn",
        )
    if names != list(FEATURES):
        differences = sorted({*map(str, names)} ^ {*FEATURES})
        raise FileFormatError(
            f"Expected the features of this release, found others in {path}: "
            + (", ".join(differences[:5]) or "in another order"),
            hint="train it again: tp.learn",
        )
    return dict(words)


def _origin(words: Any, path: str | Path) -> Origin:
    try:
        return Origin(**words)
    except TypeError as error:
        raise FileFormatError(f"Expected where a price comes from, found {words!r:.80}") from error


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest of arrays by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()[:16]


def rows_of(features: Sequence[NDArray[np.float64]]) -> Rows:
    """Return the features of kernels as rows."""
    return np.array(features).reshape(len(features), len(FEATURES))
