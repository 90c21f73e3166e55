"""What the trials of a store say of options: the factors that a call begins with that has none.

A trial teaches by its ratio to the plan without its options, of the same key, machine and session:
the trial of "as auto plans it" that came last before it. Labels name options; their kinds are
learned (`space.axis`).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping

from codegen.records import dataclass
from codegen.user_line import warn_user
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.language.diagnostics.errors import TuningStoreError
from taco_py.tuning.searches.learned_factors import Example, ratio, weights_of
from taco_py.tuning.space.axis import NO_OPTIONS
from taco_py.tuning.store.store_file import StoreFile
from taco_py.tuning.store.tuning_record import OK, SLOWER

MOST = 4000
"""Trials that are looked at, the last ones."""
LEAST = 3
"""Trials from which a feature counts."""
ROWS = """
    SELECT key, label, seconds FROM log
    WHERE result IN (?, ?) AND seconds > 0 ORDER BY id DESC LIMIT ?"""


@dataclass(frozen=True, slots=True)
class Lessons:
    """The weight of each feature, and how many trials they come from."""

    weights: Mapping[str, float]
    count: int


def lessons_of(connection: sqlite3.Connection) -> Lessons:
    """Derive the factors of features from the last trials of a store."""
    rows = connection.execute(ROWS, (OK, SLOWER, MOST)).fetchall()
    usual: dict[int, float] = {}
    examples: list[Example] = []
    for key, label, seconds in reversed(rows):
        if label == NO_OPTIONS:
            usual[key] = seconds
        elif key in usual:
            features = features_in(label)
            if features:
                examples.append(Example(features, 0.0, ratio(seconds, usual[key])))
    counts: dict[str, int] = {}
    for example in examples:
        for name in example.features:
            counts[name] = counts.get(name, 0) + 1
    weights = weights_of(examples)
    frequent = {name: value for name, value in weights.items() if counts.get(name, 0) >= LEAST}
    return Lessons(frequent, len(examples))


def lessons_in(file: StoreFile | None) -> Lessons:
    """Derive the factors of features from a file; none, with a warning, where it cannot be read."""
    if file is None:
        return Lessons({}, 0)
    try:
        with file.read() as connection:
            return lessons_of(connection)
    except TuningStoreError as error:
        warn_user(TuningStoreWarning(f"The store of tuned plans teaches nothing: {error}"))
        return Lessons({}, 0)


def features_in(label: str) -> tuple[str, ...]:
    """Return the features that a trial's label names, in brackets behind it."""
    match = re.search(r"\[(.*)\]$", label)
    return tuple(match[1].split(" + ")) if match and match[1] else ()
