"""A learned price: what a kernel takes over its analytic price, and between which quartiles.

    seconds of a kernel = analytic price · 2 ** (sum of the trees over its features)
    seconds of a plan   = sum over its kernels, and its other steps as the analytic price has them

A kernel with counts beyond those that the model was trained on keeps its analytic price. (Zheng et
al. 2020, Ansor, add up scores of statements; Chen and Guestrin 2016 boost trees.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.arguments.learned_price import LearnedPrice
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.prices.forest import Forest, Rows, forest_in
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.price_file import PriceFile, write_price_file

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
        write_price_file(path, words, self._arrays())

    def _arrays(self) -> dict[str, Any]:
        """Return the arrays of a file by name."""
        arrays: dict[str, Any] = {"least": self.least, "most": self.most}
        for name in FORESTS:
            arrays.update(getattr(self, name).arrays(name))
        return arrays


def model_in(file: PriceFile) -> PriceModel:
    """Return the trees of a file that `PriceModel.save` wrote.

    Raises FileFormatError for a file of something else, or of a release with other features.
    """
    version = file.words["version"]
    if version != VERSION:
        raise FileFormatError(
            f"Expected version {VERSION} of learned prices, found {version!r:.20} in {file.path}",
            hint="train it again: tp.learn",
        )
    file.check_features([*FEATURES])
    count = len(FEATURES)
    for name in ("least", "most"):
        array = file.arrays.get(name)
        if array is None or array.shape != (count,) or array.dtype.kind != "f":
            raise FileFormatError(
                f"Expected {count} numbers in {name} of {file.path}, found others"
            )
    middle, spread = (forest_in(file.arrays, name, count) for name in FORESTS)
    return PriceModel(middle, spread, file.arrays["least"], file.arrays["most"], origin_in(file))


def origin_in(file: PriceFile) -> Origin:
    """Return where the price of a file comes from. Raises FileFormatError."""
    words = file.words.get("origin")
    try:
        return Origin(**words)  # type: ignore[arg-type]
    except TypeError as error:
        raise FileFormatError(
            f"Expected where a price comes from, found {words!r:.80} in {file.path}"
        ) from error


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest of arrays by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()[:16]


def rows_of(features: Sequence[NDArray[np.float64]]) -> Rows:
    """Return the features of kernels as rows."""
    return np.array(features).reshape(len(features), len(FEATURES))
