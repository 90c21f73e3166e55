"""What is counted of a plan's kernels, as a text that a store of tuned plans keeps beside its time.

{"features": digest of the names, "rest": seconds of copies and calls, "seconds": [of each kernel],
 "rows": [the features of each kernel]}

Seconds are those of the analytic price.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from math import isfinite
from typing import Any

import numpy as np

from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.plan import Plan
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.plan_seconds import PlanSeconds
from taco_py.tuning.prices.price_data import PriceData, join_data
from taco_py.tuning.store.fingerprint import Target, sha256
from taco_py.tuning.store.tuning_record import OK, SLOWER, TuningRecord

NAMES = hashlib.sha256("; ".join(FEATURES).encode()).hexdigest()[:16]
"""The digest of the names of features: counts of other releases are passed over."""


def counts_text(prices: PlanSeconds, plan: Plan) -> str:
    """Return the text of a plan's counts, "" where it has no price."""
    try:
        rest, seconds, rows = prices.parts_of(plan)
    except ScheduleError:
        return ""
    numbers = [[float(f"{value:.6g}") for value in row] for row in rows]
    fields = {"features": NAMES, "rest": rest, "seconds": seconds, "rows": numbers}
    return json.dumps(fields, separators=(",", ":"))


def data_of_records(records: Iterable[TuningRecord], target: Target) -> PriceData:
    """Return the times of plans that a machine ran, with their counts.

    Records of other processors and compilers, and of plans without counts, are passed over. The
    plans of one key are one program.
    """
    parts = [part for record in records if _is_of(record, target) for part in _data_of(record)]
    last = max((record_day for _, record_day in parts), default=0.0)
    machine = (target.processor, target.compiler, date.fromtimestamp(last).isoformat())
    return replace(join_data([data for data, _ in parts]), machine=machine)


def _is_of(record: TuningRecord, target: Target) -> bool:
    """Tell whether a record has a time and counts of the target."""
    its = record.key.target
    same = (its.kind, its.processor, its.compiler) == (
        target.kind,
        target.processor,
        target.compiler,
    )
    return same and record.result in (OK, SLOWER) and bool(record.counts and record.seconds)


def _data_of(record: TuningRecord) -> Iterator[tuple[PriceData, float]]:
    """Yield the data of a record and its day; nothing where its counts are not of this release."""
    try:
        fields: dict[str, Any] = json.loads(record.counts)
        rest, seconds = float(fields["rest"]), [float(value) for value in fields["seconds"]]
        rows = np.array(fields["rows"], np.float64).reshape(len(seconds), len(FEATURES))
    except (ValueError, TypeError, KeyError):
        return
    is_finite = all(map(isfinite, (rest, *seconds))) and bool(np.isfinite(rows).all())
    if fields.get("features") == NAMES and is_finite and seconds:
        key = record.key
        digest = sha256([key.hash, key.bucket_text])[:16]
        times = [record.seconds or 0.0]
        yield PriceData.of_plan(digest, rest, seconds, rows, times, record.plan), record.when
