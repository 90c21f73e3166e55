"""Learn a price from what plans took: trees on the logarithm of measured over analytic seconds.

    log2 T(plan) = log2(rest + Σ seconds of a kernel · 2 ** g(features))
    loss         = distance of log2 T from log2 of the median time; for quartiles, weighed by side
    step         = gradient of a plan, shared among its kernels by their part of T

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
from taco_py.tuning.prices.forest import Forest, Rows, forest_of
from taco_py.tuning.prices.kernel_features import FEATURES, MONOTONE
from taco_py.tuning.prices.price_data import PriceData
from taco_py.tuning.prices.price_model import Origin, PriceModel

FEWEST = 200
"""Plans from which on a price is learned."""
TREES, LEAVES, RATE = 220, 24, 0.06
KERNELS_OF_A_LEAF = 12
"""Kernels that a leaf has at least."""
NEAR = 0.35
"""Powers of two within which the loss of a distance is its square: noise of times is not chased."""
QUARTILES = {"low": 0.25, "middle": 0.5, "high": 0.75}
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
    forests = {name: _grown(data, share) for name, share in QUARTILES.items()}
    features = data.features.astype(np.float64)
    return PriceModel(
        forests["low"],
        forests["middle"],
        forests["high"],
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


def _grown(data: PriceData, share: float) -> Forest:
    """Return the forest of one quartile."""
    lightgbm = library("lightgbm", "tacopy[learn]", 'price="analytic" does without')
    names = [*FEATURES]
    parameters = {
        "objective": _objective(data, share), "learning_rate": RATE, "num_leaves": LEAVES,
        "min_data_in_leaf": KERNELS_OF_A_LEAF, "max_depth": 8, "feature_fraction": 0.7,
        "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l2": 1.0, "max_bin": 127,
        "use_missing": False, "seed": 0, "deterministic": True, "num_threads": 1, "verbose": -1,
        "monotone_constraints": [int(name in MONOTONE) for name in names],
        "min_sum_hessian_in_leaf": 1e-6,
    }  # fmt: skip
    table = lightgbm.Dataset(data.features.astype(np.float64), np.zeros(len(data.seconds)))
    booster = lightgbm.train(parameters, table, TREES)
    trees = (_nested(info["tree_structure"]) for info in booster.dump_model()["tree_info"])
    return forest_of(trees)


def _objective(data: PriceData, share: float) -> Objective:
    """Return the gradients of the loss at the predictions of each kernel.

    share  of the times that are below the quartile
    """
    logs_measured = np.log2(data.measured)
    weights = 1.0 / np.bincount(data.program, minlength=len(data.digests))[data.program]
    weights *= len(weights) / weights.sum()

    def gradients(logs: NDArray[np.float32], _: Any) -> tuple[Rows, Rows]:
        seconds = data.seconds * np.exp2(logs.astype(np.float64))
        totals = data.rest + np.bincount(data.plan, seconds, len(data.rest))
        distance = np.log2(totals) - logs_measured
        slope = np.clip(distance / NEAR, -1.0, 1.0) * 0.5
        sides = slope + (0.5 - share)
        parts = seconds / totals[data.plan]
        curve = np.full(len(parts), 0.5 / NEAR)
        scale = weights[data.plan]
        return scale * parts * sides[data.plan], scale * np.maximum(parts * parts, 1e-3) * curve

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
