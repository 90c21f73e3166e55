"""How well prices order the plans of a program, and how far off they are: the figures of the field.

APE of speed-ups, Spearman, nDCG  Baghdadi et al. 2021; nDCG with speed-ups as gains
top-1, top-5, top-10 error        (best of the first K - best) / best, as in TpuGraphs
                                  (Phothilimthana et al. 2023)
tau                               Kendall's, within a program
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kendalltau, rankdata

Rows = np.ndarray[Any, Any]
FEWEST = 5
"""Plans of a program that is tested."""
LEAST_SPEED_UP = 0.01


@dataclass(frozen=True)
class Tested:
    """A program's plans: what they took, and what they were expected to.

    usual  the plan that speed-ups are over, -1 where it was not measured
    """

    measured: Rows
    expected: Rows
    usual: int = -1


def scores(programs: Sequence[Tested]) -> dict[str, float]:
    """The figures of a price on programs."""
    tested = [one for one in programs if len(one.measured) >= FEWEST]
    slower = np.array([_first(one, 1) for one in tested])
    ratios = np.concatenate([one.measured / one.expected for one in tested])
    with_usual = [one for one in tested if one.usual >= 0]
    apes = [_speed_up_errors(one) for one in with_usual]
    of_seconds = [abs(one.expected / one.measured - 1.0).mean() for one in tested]
    return {
        "programs": len(tested),
        "MAPE": float(np.mean([ape.mean() for ape in apes])) if apes else np.nan,
        "median APE": float(np.median(np.concatenate(apes))) if apes else np.nan,
        "MAPE of s": float(np.mean(of_seconds)),
        "Spearman": float(
            np.mean([_rank_correlation(one.measured, one.expected) for one in tested])
        ),
        "of all": _pooled(with_usual),
        "tau": _mean([kendalltau(one.measured, one.expected).statistic for one in tested]),
        "nDCG@1": float(np.mean([_gain(one, 1) for one in tested])),
        "nDCG@5": float(np.mean([_gain(one, 5) for one in tested])),
        "top-1": float(slower.mean()) - 1.0,
        "top-5": float(np.mean([_first(one, 5) for one in tested])) - 1.0,
        "top-10": float(np.mean([_first(one, 10) for one in tested])) - 1.0,
        "geometric": 1.0 / float(np.exp(np.log(slower).mean())),
        "worst": 1.0 / float(slower.max()),
        "off by": float(np.exp(np.median(np.abs(np.log(ratios))))),
    }


def _mean(values: Sequence[float]) -> float:
    """The mean, where equal prices count as no order."""
    return float(np.mean(np.nan_to_num(np.array(values, float))))


def _order(one: Tested) -> Rows:
    return np.argsort(one.expected, kind="stable")


def _first(one: Tested, count: int) -> float:
    """How many times as long as the fastest the best of the first plans takes."""
    return float(one.measured[_order(one)[:count]].min() / one.measured.min())


def _gain(one: Tested, count: int) -> float:
    """nDCG at a place: speed-ups by the price's order over those in the best order."""
    gains = one.measured.min() / one.measured
    shares = 1.0 / np.log2(np.arange(2, count + 2))[: len(gains)]
    return float((gains[_order(one)[:count]] @ shares) / (np.sort(gains)[::-1][:count] @ shares))


def _speed_ups(one: Tested) -> tuple[Rows, Rows]:
    measured = np.maximum(one.measured[one.usual] / one.measured, LEAST_SPEED_UP)
    return measured, one.expected[one.usual] / one.expected


def _speed_up_errors(one: Tested) -> Rows:
    measured, expected = _speed_ups(one)
    return np.asarray(np.abs(expected / measured - 1.0))


def _pooled(programs: Sequence[Tested]) -> float:
    """Spearman's coefficient of the speed-ups of all plans together."""
    pairs = [_speed_ups(one) for one in programs]
    if not pairs:
        return float("nan")
    measured, expected = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return _rank_correlation(measured, expected)


def _rank_correlation(one: Rows, other: Rows) -> float:
    """Spearman's coefficient; 0 where all prices are equal."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])


def table(rows: dict[str, dict[str, float]]) -> str:
    """A table in Markdown: a row for each price, a column for each figure."""
    names = list(next(iter(rows.values())))
    lines = [f"| price | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for price, figures in rows.items():
        cells = (f"{value:.0f}" if name == "programs" else f"{value:.3f}"
                 for name, value in figures.items())  # fmt: skip
        lines.append(f"| {price} | {' | '.join(cells)} |")
    return "\n".join(lines)
