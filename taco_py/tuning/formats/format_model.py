"""A learned choice of formats: what a format gains over CSR, and between which quartiles.

    gain of a format = analytic gain · 2 ** (sum of the trees over its features)

The same trees correct the seconds of a product in CSR and those of conversions. A matrix with
counts beyond those that the model was trained on keeps the analytic numbers. (WISE, Yesil et al.
2023, predicts classes of speed-ups; WACO, Won et al. 2023, ranks formats with schedules.)
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from codegen.user_line import warn_user
from taco_py.compiler.devices import remembered
from taco_py.language.diagnostics.cautions import LearnedPriceWarning
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.formats.format_features import FEATURES, RANGED
from taco_py.tuning.prices.forest import Forest, Rows
from taco_py.tuning.prices.model_file import Origin, read_model_file
from taco_py.tuning.prices.tree_file import tree_arrays, trees_in, write_trees

VERSION = 1
SHIPPED = "learned_formats.npz"
MOST = 6.0
"""Powers of two that a gain or seconds are corrected by at most."""
BEYOND = 0.5
"""By how much a count may be beyond those of the training data."""


@dataclass(frozen=True, slots=True, eq=False)
class FormatModel:
    """Trees for log2(measured / analytic) of a format, as `PriceModel` has them for kernels.

    middle       the median
    spread       how far the quartiles are from it, as found on matrices that trees were not grown
                 on
    least, most  of each feature in what trained it
    """

    middle: Forest
    spread: Forest
    least: Rows
    most: Rows
    origin: Origin = Origin()

    def predict(self, rows: Rows) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the quartiles of measured over analytic numbers as three rows; and what is beyond.

        The second array tells for each row whether its counts are beyond the training data; its
        quartiles are 1 then.
        """
        middle, spread = self.middle.predict(rows), self.spread.predict(rows)
        places = [FEATURES.index(name) for name in RANGED]
        below = rows[:, places] < self.least[places] - BEYOND
        above = rows[:, places] > self.most[places] + BEYOND
        outside = (below | above).any(axis=1) | ~np.isfinite(middle) | ~np.isfinite(spread)
        middle = np.where(outside, 0.0, middle)
        wide = np.where(outside, 0.0, np.maximum(spread, 0.0))
        sides = np.stack([middle - wide, middle, middle + wide])
        return np.exp2(np.clip(sides, -MOST, MOST)), outside

    def save(self, path: str | Path) -> None:
        """Write the model to a file of arrays."""
        arrays = tree_arrays(self.middle, self.spread, self.least, self.most)
        write_trees(path, arrays, VERSION, FEATURES, self.origin)


def load_format_model(path: str | Path) -> FormatModel:
    """Return the model that `FormatModel.save` wrote to a file; nothing in it is run.

    Raises FileFormatError for a file of something else, or of a release with other features.
    """
    trainer = "python -m benchmarks.format_data ship"
    file = read_model_file(path, "a choice of formats")
    return FormatModel(*trees_in(file, VERSION, FEATURES, trainer))


def shipped_formats() -> FormatModel | None:
    """Return the model that comes with this release, read once; None where it cannot be read."""
    return remembered(("learned formats", SHIPPED), _read_shipped)


def _read_shipped() -> FormatModel | None:
    try:
        with as_file(files(__package__) / SHIPPED) as path:
            return load_format_model(path)
    except (FileFormatError, OSError) as error:
        warn_user(LearnedPriceWarning(f"Formats have their analytic price: {error}"))
        return None
