"""Learn what formats gain from what products took: trees on log2(measured / analytic).

The matrices are in parts; what is left of each part's numbers by trees of the others is what the
trees of the quartiles learn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from taco_py.language.diagnostics.errors import TuningStoreError
from taco_py.tuning.formats.format_data import FormatData
from taco_py.tuning.formats.format_model import FormatModel
from taco_py.tuning.prices.forest import Forest, Rows
from taco_py.tuning.prices.model_file import Origin
from taco_py.tuning.prices.train_price import USUAL, grown_by_lightgbm

FEWEST = 500
"""Numbers from which on a model is learned."""
FOLDS = 5
"""Parts of the matrices, each of which is predicted by trees of the others."""
TREES, LEAVES, RATE = 200, 31, 0.12
SPREAD_TREES, SPREAD_LEAVES, SPREAD_RATE = 40, 10, 0.1
MIDDLE: Mapping[str, Any] = {
    **USUAL, "objective": "huber", "alpha": 0.3, "learning_rate": RATE, "num_leaves": LEAVES,
    "min_data_in_leaf": 8, "max_depth": 12,
}  # fmt: skip
SPREAD: Mapping[str, Any] = {
    **USUAL, "objective": "regression_l1", "learning_rate": SPREAD_RATE,
    "num_leaves": SPREAD_LEAVES, "min_data_in_leaf": 60,
}  # fmt: skip


def trained_formats(data: FormatData) -> FormatModel:
    """Return the model that the times of formats say.

    Raises TuningStoreError for fewer than `FEWEST` numbers, MissingExtraError without LightGBM.
    """
    count = len(data.expected)
    if count < FEWEST:
        raise TuningStoreError(
            f"Expected {FEWEST} numbers at least to learn formats from, found {count}",
            hint="python -m benchmarks.format_data collect measures some",
        )
    features = data.features.astype(np.float64)
    left = np.abs(residuals_of(data))
    spread = grown_by_lightgbm(SPREAD, features, left, None, SPREAD_TREES)
    digest = hashlib.sha256(data.features.tobytes() + data.measured.tobytes()).hexdigest()[:16]
    origin = Origin(*data.machine, count, digest)
    return FormatModel(_middle(data), spread, features.min(axis=0), features.max(axis=0), origin)


def residuals_of(data: FormatData) -> Rows:
    """Return the residual of each number by trees of other matrices, in powers of two."""
    numbers = {matrix: place for place, matrix in enumerate(sorted({*data.matrix.tolist()}))}
    folds = np.array([numbers[matrix] % FOLDS for matrix in data.matrix.tolist()])
    left = logs_of(data)
    for fold in range(FOLDS):
        tested = folds == fold
        if tested.any() and not tested.all():
            forest = _middle(data.of_matrices(~tested))
            left[tested] -= forest.predict(data.features[tested].astype(np.float64))
    return left


def logs_of(data: FormatData) -> Rows:
    """Return the logarithms that the trees learn."""
    logs: Rows = np.log2(data.measured / data.expected)
    return logs


def _middle(data: FormatData) -> Forest:
    """Return the forest of the median."""
    features = data.features.astype(np.float64)
    return grown_by_lightgbm(MIDDLE, features, logs_of(data), None, TREES)
