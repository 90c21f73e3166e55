"""Factors of a price's parts by which kernels take what it says: non-negative least squares.

    minimise  Σ w² (Σ parts · factors / measured - 1)²  +  STAY² Σ u² (factor - 1)²

over factors of 0 and more (Lawson and Hanson 1974). The weights of rounds to come make the relative
errors logarithms, for which half of the time is as wrong as twice of it, and those beyond `CLEAR`
count by their size and no more by its square: a kernel whose price lacks a part tears the others
along least. A factor that no measurement needs stays 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taco_py.data.kept_calibration import LEAST, MOST

Numbers = NDArray[np.float64]
ROUNDS = 60
STAY = 0.3
"""The weight of a factor's own distance from 1, beside that of one measurement."""
CLEAR = 0.2
"""The logarithm of a ratio from which it counts by its size alone."""


def fit_factors(parts: Numbers, measured: Numbers) -> Numbers:
    """Return a factor for each part.

    parts     seconds, a row for each measurement, a column for each part
    measured  seconds, above 0

    >>> fit_factors(np.eye(2) * [[1.0], [4.0]], np.array([3.0, 2.0])).round(1).tolist()
    [2.8, 0.5]
    """
    from scipy.optimize import nnls

    ratios = parts / measured[:, None]
    factors: Numbers = np.ones(parts.shape[1])
    for _ in range(ROUNDS):
        errors = ratios @ factors
        weights = _slope(errors)
        weights /= np.sqrt(np.maximum(np.abs(np.log(np.maximum(errors, LEAST))) / CLEAR, 1.0))
        stay = STAY * _slope(factors)
        rows = np.vstack([ratios * weights[:, None], np.diag(stay)])
        nearer, _ = nnls(rows, np.concatenate([weights, stay]))
        factors = 0.5 * (factors + nearer)
    return np.clip(factors, LEAST, MOST)


def _slope(ratios: Numbers) -> Numbers:
    """Return log(r) / (r - 1): what makes the error of a ratio that of its logarithm."""
    away = ratios - 1.0
    near = np.abs(away) < 1e-6
    safe: Any = np.where(near, 1.0, away)
    return np.where(near, 1.0, np.log(np.maximum(ratios, LEAST)) / safe)
