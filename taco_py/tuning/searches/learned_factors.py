"""What options are worth, learned from what was measured: a factor of the price for each feature.

    log(seconds / seconds as planned) = log(price / price as planned) + Σ weight of each feature

A ridge regression; a feature that was seen seldom keeps near nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log

import numpy as np

from codegen.records import dataclass

RIDGE = 1.0
"""How many measurements a feature of no effect is worth."""
MOST = 4.0
"""The logarithm of the largest ratio that is learned from."""


@dataclass(frozen=True, slots=True)
class Example:
    """What a point took, over what the plan without it takes.

    features  of its options
    priced    log(price / price as planned)
    measured  log(seconds / seconds as planned)
    """

    features: tuple[str, ...]
    priced: float
    measured: float


def ratio(value: float, usual: float) -> float:
    """Return the logarithm of a ratio, within bounds."""
    if value <= 0.0 or usual <= 0.0:
        return 0.0
    return max(-MOST, min(MOST, log(value) - log(usual)))


def weights_of(
    examples: Sequence[Example], earlier: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return the weight of each feature.

    earlier  weights from earlier measurements, which stay where these say nothing
    """
    prior = dict(earlier or {})
    names = sorted({name for example in examples for name in example.features})
    if not names:
        return prior
    place = {name: number for number, name in enumerate(names)}
    rows = np.zeros((len(examples), len(names)))
    for row, example in enumerate(examples):
        for name in example.features:
            rows[row, place[name]] = 1.0
    start = np.array([prior.get(name, 0.0) for name in names])
    left = np.array([example.measured - example.priced for example in examples]) - rows @ start
    square = rows.T @ rows + RIDGE * np.eye(len(names))
    solution = start + np.linalg.solve(square, rows.T @ left)
    return {**prior, **{name: float(solution[number]) for name, number in place.items()}}


def corrected(price: float, features: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return a price times the learned factors of its features."""
    return price * exp(sum(weights.get(name, 0.0) for name in features))
