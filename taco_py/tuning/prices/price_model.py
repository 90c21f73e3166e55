"""A learned price: what a kernel takes over its analytic price, and between which quartiles.

    seconds of a kernel = analytic price · 2 ** (sum of the trees over its features)
    seconds of a plan   = sum over its kernels, and its other steps as the analytic price has them

A kernel with counts beyond those that the model was trained on keeps its analytic price. (Zheng et
al. 2020, Ansor, add up scores of statements; Chen and Guestrin 2016 boost trees.)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.arguments.learned_price import LearnedPrice
from taco_py.tuning.prices.forest import Forest, Rows
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.model_file import ModelFile, Origin, digest_of_arrays
from taco_py.tuning.prices.tree_file import tree_arrays, trees_in, write_trees

VERSION = 1
RANGED = ("price", "iterations", "volume", "entries", "bytes", "result entries")
"""Features of which a model knows nothing beyond the numbers that it was trained on, but for
`BEYOND`. Of more threads than ran it knows nothing either."""
MOST = 10.0
"""Powers of two that a price is corrected by at most."""
BEYOND = 1.0
"""By how many powers of two a count may be beyond them."""


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
            object.__setattr__(self, "digest", digest_of_arrays(self._arrays()))

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
        write_trees(path, self._arrays(), VERSION, FEATURES, self.origin)

    def _arrays(self) -> dict[str, Any]:
        """Return the arrays of a file by name."""
        return tree_arrays(self.middle, self.spread, self.least, self.most)


def model_in(file: ModelFile) -> PriceModel:
    """Return the trees of a file that `PriceModel.save` wrote.

    Raises FileFormatError for a file of something else, or of a release with other features.
    """
    return PriceModel(*trees_in(file, VERSION, FEATURES, "tp.learn"))


def rows_of(features: Sequence[NDArray[np.float64]]) -> Rows:
    """Return the features of kernels as rows."""
    return np.array(features).reshape(len(features), len(FEATURES))
