"""The learned price of this release, on programs that it was not trained on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

import taco_py as tp
from benchmarks.price_data import PACKED, counted
from benchmarks.price_programs import DrawnProgram, draw
from benchmarks.prices import is_tested
from taco_py.tuning.prices.price_choice import shipped_model
from taco_py.tuning.prices.price_data import PriceData, load_data

Array = np.ndarray[Any, Any]
FEWEST = 5
"""Plans of a program that is tested."""
LEAST_SHARE, LEAST_TAU = 0.78, 0.37
"""Of the fastest plan's speed, that of the plan that the price puts first, as a geometric mean; and
Kendall's tau. They may rise."""


@pytest.fixture(scope="module")
def data() -> PriceData:
    return load_data(PACKED)


def shares_and_taus(test: PriceData, expected: Array) -> tuple[Array, Array]:
    shares, taus = [], []
    for number in range(len(test.digests)):
        mine = np.flatnonzero(test.program == number)
        if len(mine) < FEWEST:
            continue
        times, prices = test.measured[mine], expected[mine]
        shares.append(times.min() / times[prices.argmin()])
        taus.append(np.nan_to_num(kendalltau(prices, times).statistic))
    return np.array(shares), np.array(taus)


def test_the_model_orders_plans_of_unseen_programs_better_than_the_analytic_price(
    data: PriceData,
) -> None:
    model, test = shipped_model(), data.of_programs(is_tested(data))
    assert model is not None and len(test.digests) >= 30
    _, middle, _ = model.ratios(test.features.astype(float))
    learned = test.rest + np.bincount(test.plan, test.seconds * middle, len(test.rest))
    shares, taus = shares_and_taus(test, learned)
    others, other_taus = shares_and_taus(test, test.analytic)
    share, other = (float(np.exp(np.log(s).mean())) for s in (shares, others))
    assert share >= max(LEAST_SHARE, other)
    assert taus.mean() >= max(LEAST_TAU, other_taus.mean())
    assert shares.min() >= 0.9 * others.min()


def first_programs(data: PriceData) -> Iterator[DrawnProgram]:
    known = {str(digest) for digest in data.digests}
    programs = map(draw, range(60))
    yield from (program for program in programs if program.digest in known)


def test_prices_are_those_that_the_model_corrects(data: PriceData) -> None:
    """Where a price has changed: benchmarks.price_data count and pack, benchmarks.prices --ship."""
    distances = []
    for program, _ in zip(first_programs(data), range(4), strict=False):
        digests = np.array([str(digest) == program.digest for digest in data.digests])
        before = data.of_programs(digests)
        after = counted(program, before)
        by_text = dict(zip(after.plans, after.analytic, strict=True))
        prices = zip(before.plans, before.analytic, strict=True)
        distances += [np.log2(by_text[text] / old) for text, old in prices if text in by_text]
    assert len(distances) > 100
    assert np.mean(np.abs(distances) < 0.05) > 0.9


def test_calls_take_it() -> None:
    A, x = np.ones((40, 30)), np.ones(30)
    text = tp.explain("y[i] = A[i,j] * x[j]", A=A, x=x, price="learned", threads=1)
    assert text.startswith("price     learned ")
    found = tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x, price="learned", threads=1)
    np.testing.assert_allclose(found, A @ x)
