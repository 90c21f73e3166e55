"""Do learned prices rank plans better than the analytic one? On programs that none was trained on.

    python -m benchmarks.prices     trains on three quarters of the programs, tests on the rest

A row for each price: the analytic one, the mean of what was measured, a linear model of the same
features, trees. Columns: how much longer the plan that a price puts first takes than the fastest,
on average and at worst; Kendall's tau; and measured over expected seconds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from benchmarks.price_data import PACKED
from taco_py.tuning.prices.price_data import PriceData, load_data
from taco_py.tuning.prices.train_price import trained

Price = Callable[[PriceData], np.ndarray[Any, Any]]
"""The expected seconds of each plan."""
FEWEST = 5
"""Plans of a program that is tested."""


def is_tested(data: PriceData) -> np.ndarray[Any, Any]:
    """Whether each program is in the test set: by its digest, for good."""
    return np.array([int(str(digest), 16) % 4 == 0 for digest in data.digests])


def analytic(data: PriceData) -> np.ndarray[Any, Any]:
    return data.analytic


def mean_of(train: PriceData) -> Price:
    """The analytic price times the mean ratio."""
    ratio = float(np.exp2(np.mean(np.log2(train.measured / train.analytic))))
    return lambda data: data.analytic * ratio


def linear(train: PriceData) -> Price:
    """The analytic price times a linear model of the features, by ridge regression."""

    def design(data: PriceData) -> np.ndarray[Any, Any]:
        features = np.maximum(data.features.astype(float), -20.0)
        weights = data.seconds / data.analytic[data.plan]
        sums = np.zeros((len(data.rest), features.shape[1]))
        np.add.at(sums, data.plan, features * weights[:, None])
        return np.hstack([sums, np.ones((len(sums), 1))])

    rows = design(train)
    wanted = np.log2(train.measured / train.analytic)
    weights = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ wanted)
    return lambda data: data.analytic * np.exp2(np.clip(design(data) @ weights, -6, 6))


def trees(train: PriceData) -> Price:
    """The analytic price times the trees."""
    model = trained(train)

    def price(data: PriceData) -> np.ndarray[Any, Any]:
        _, middle, _ = model.ratios(data.features.astype(float))
        return data.rest + np.bincount(data.plan, data.seconds * middle, len(data.rest))

    return price


def scores(data: PriceData, expected: np.ndarray[Any, Any]) -> dict[str, float]:
    """The figures of a price on programs."""
    measured, errors, taus, worst5 = data.measured, [], [], []
    for number in range(len(data.digests)):
        mine = np.flatnonzero(data.program == number)
        if len(mine) < FEWEST:
            continue
        times, prices = measured[mine], expected[mine]
        order = np.argsort(prices, kind="stable")
        errors.append(times[order[0]] / times.min())
        worst5.append(times[order[:5]].min() / times.min())
        tau = kendalltau(prices, times).statistic
        taus.append(0.0 if np.isnan(tau) else tau)
    ratios = measured / expected
    return {
        "programs": len(errors),
        "top-1 error": float(np.mean(errors)) - 1.0,
        "geometric": 1.0 / float(np.exp(np.mean(np.log(errors)))),
        "worst": 1.0 / max(errors),
        "top-5 error": float(np.mean(worst5)) - 1.0,
        "tau": float(np.mean(taus)),
        "off by (median)": float(np.exp(np.median(np.abs(np.log(ratios))))),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=PACKED)
    options = parser.parse_args(arguments)
    data = load_data(options.data)
    tested = is_tested(data)
    train, test = data.of_programs(~tested), data.of_programs(tested)
    prices = {
        "analytic": analytic, "mean": mean_of(train), "linear": linear(train),
        "trees": trees(train),
    }  # fmt: skip
    print(f"{len(train.digests)} programs trained on, {len(test.digests)} tested")
    for name, price in prices.items():
        words = "  ".join(f"{key} {value:.3f}" for key, value in scores(test, price(test)).items())
        print(f"{name:10s} {words}")


if __name__ == "__main__":
    sys.exit(main())
