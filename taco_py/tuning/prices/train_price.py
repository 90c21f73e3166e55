"""Learn a price from what plans took: trees on the logarithm of measured over analytic seconds.

    log2 T(plan) = log2(rest + Σ seconds of a kernel · 2 ** g(features))
    distance     = log2 T - log2 of the time
    loss         = distance within the program, less its mean there, and a little of the distance
                   itself
    step         = gradient of a plan, shared among its kernels by their part of T

The order of the plans of a program is what counts: a factor that all of them share is of little
weight. What all programs have in common of it is added at the end.

A kernel that was measured in one plan alone says something of all plans that have one like it.
(The sum over parts is Ansor's, Zheng et al. 2020, section 5.2.) LightGBM grows the trees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taco_py.language.diagnostics.errors import TuningStoreError
from taco_py.language.diagnostics.extras import library
from taco_py.tuning.prices.forest import Forest, Rows, forest_of, with_constant
from taco_py.tuning.prices.kernel_features import FEATURES, MONOTONE
from taco_py.tuning.prices.model_file import Origin
from taco_py.tuning.prices.price_data import PriceData
from taco_py.tuning.prices.price_model import PriceModel

FEWEST = 200
"""Plans from which on a price is learned."""
TREES, LEAVES, RATE = 220, 24, 0.06
KERNELS_OF_A_LEAF = 12
"""Kernels that a leaf has at least."""
NEAR = 0.35
"""Powers of two within which the loss of a distance is its square: noise of times is not chased."""
PROGRAM_WEIGHT = 0.9
"""The weight of distances within a program; that of the distances themselves is the rest."""
FOLDS = 4
"""Parts of the programs, each of which is predicted by trees of the others."""
SPREAD_TREES, SPREAD_LEAVES, SPREAD_RATE = 40, 12, 0.1
Objective = Callable[[NDArray[np.float32], Any], tuple[Rows, Rows]]


def trained(data: PriceData) -> PriceModel:
    """Return the price that the times of plans say.

    Raises TuningStoreError for fewer than `FEWEST` plans, MissingExtraError without LightGBM.
    """
    count = len(data.rest)
    if count < FEWEST:
        raise TuningStoreError(
            f"Expected the times of {FEWEST} plans at least to learn from, found {count}",
            hint="tune more calls, or take the price that comes with this release",
        )
    features = data.features.astype(np.float64)
    distances = _distances_of_others(data)
    return PriceModel(
        with_constant(_grown(data), -_common_distance(data, distances)),
        _grown_spread(data, distances),
        least=features.min(axis=0),
        most=features.max(axis=0),
        origin=Origin(*data.machine, count, digest_of(data)),
    )


def digest_of(data: PriceData) -> str:
    """Return the digest of the programs and times of data."""
    parts = (data.digests.astype("U16"), data.times, data.features)
    return hashlib.sha256(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest()[
        :16
    ]


USUAL = {
    "min_data_in_leaf": KERNELS_OF_A_LEAF, "max_depth": 8, "feature_fraction": 0.7,
    "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l2": 1.0, "max_bin": 127,
    "use_missing": False, "seed": 0, "deterministic": True, "num_threads": 1, "verbose": -1,
    "min_sum_hessian_in_leaf": 1e-6,
}  # fmt: skip


def _grown(data: PriceData) -> Forest:
    """Return the forest of the median."""
    parameters = {
        **USUAL, "objective": _objective(data), "learning_rate": RATE, "num_leaves": LEAVES,
        "monotone_constraints": [int(name in MONOTONE) for name in FEATURES],
    }  # fmt: skip
    return _by_lightgbm(parameters, data, np.zeros(len(data.seconds)), None, TREES)


def _distances_of_others(data: PriceData) -> Rows:
    """Return the distance of each plan from its time, by trees of other programs."""
    distances = np.zeros(len(data.rest))
    folds = np.arange(len(data.digests)) % FOLDS
    for fold in range(min(FOLDS, len(data.digests))):
        tested = folds == fold
        forest = _grown(data.of_programs(~tested))
        mine = tested[data.program]
        kernels = mine[data.plan]
        logs = np.zeros(len(data.seconds))
        logs[kernels] = forest.predict(data.features[kernels].astype(np.float64))
        distances[mine] = _distances(data, logs)[mine]
    return distances


def _common_distance(data: PriceData, distances: Rows) -> float:
    """Return the distance that programs have in common: the median of their medians.

    The order of plans says nothing of it, and trees that are fitted to that learn little of it.
    """
    programs = range(len(data.digests))
    return float(np.median([np.median(distances[data.program == program]) for program in programs]))


def _grown_spread(data: PriceData, distances: Rows) -> Forest:
    """Return the forest of the distance between the median and a quartile.

    What is left of the distance of each plan, as trees of other programs have it, less the mean of
    its program, is as large as the spread in half of the cases.
    """
    left = _centred(data, distances)
    parameters = {
        **USUAL, "objective": "regression_l1", "learning_rate": SPREAD_RATE,
        "num_leaves": SPREAD_LEAVES,
    }  # fmt: skip
    parts = data.seconds / np.maximum(data.analytic[data.plan], 1e-30)
    return _by_lightgbm(parameters, data, np.abs(left)[data.plan], parts, SPREAD_TREES)


def _by_lightgbm(
    parameters: Mapping[str, Any], data: PriceData, labels: Rows, weights: Rows | None, trees: int
) -> Forest:
    """Return the forest that LightGBM grows on the features of kernels."""
    return grown_by_lightgbm(parameters, data.features.astype(np.float64), labels, weights, trees)


def grown_by_lightgbm(
    parameters: Mapping[str, Any], features: Rows, labels: Rows, weights: Rows | None, trees: int
) -> Forest:
    """Return the forest that LightGBM grows on rows of features."""
    lightgbm = library("lightgbm", "tacopy[learn]", 'price="analytic" does without')
    table = lightgbm.Dataset(features, labels, weight=weights)
    booster = lightgbm.train(dict(parameters), table, trees)
    grown = (_nested(info["tree_structure"]) for info in booster.dump_model()["tree_info"])
    return forest_of(grown)


def _distances(data: PriceData, logs: Rows) -> Rows:
    """Return the distance of each plan from its time in powers of two."""
    seconds = data.seconds * np.exp2(logs)
    totals = data.rest + np.bincount(data.plan, seconds, len(data.rest))
    distances: Rows = np.log2(totals) - np.log2(data.measured)
    return distances


def _centred(data: PriceData, distances: Rows) -> Rows:
    """Return the distance of each plan less the mean of its program."""
    counts = np.bincount(data.program, minlength=len(data.digests))
    mean = np.bincount(data.program, distances, len(counts)) / np.maximum(counts, 1)
    centred: Rows = distances - mean[data.program]
    return centred


def _objective(data: PriceData) -> Objective:
    """Return the gradients of the loss at the predictions of each kernel."""
    logs_measured = np.log2(data.measured)
    counts = np.bincount(data.program, minlength=len(data.digests))
    weights = 1.0 / counts[data.program]
    weights *= len(weights) / weights.sum()

    def gradients(logs: NDArray[np.float32], _: Any) -> tuple[Rows, Rows]:
        seconds = data.seconds * np.exp2(logs.astype(np.float64))
        totals = data.rest + np.bincount(data.plan, seconds, len(data.rest))
        distance = np.log2(totals) - logs_measured
        centred = _centred(data, distance)
        slope = (1.0 - PROGRAM_WEIGHT) * np.clip(distance / NEAR, -1.0, 1.0)
        slope += PROGRAM_WEIGHT * np.clip(centred / NEAR, -1.0, 1.0)
        parts, scale = seconds / totals[data.plan], weights[data.plan]
        curve = np.maximum(parts * parts, 1e-3) / NEAR
        return scale * parts * slope[data.plan], scale * curve

    return gradients


def _nested(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree of LightGBM's in the words of `forest_of`."""
    if "leaf_value" in node:
        return {"value": node["leaf_value"]}
    return {
        "feature": node["split_feature"],
        "threshold": node["threshold"],
        "left": _nested(node["left_child"]),
        "right": _nested(node["right_child"]),
    }
