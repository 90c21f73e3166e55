"""What a farm does with a task by default: the search of `tp.tune` over its operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.tuning.bench.tune_call import tune_text
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.session.tuning_session import INTERRUPTED
from taco_py.tuning.tasks.search_options import SearchOptions
from taco_py.tuning.tasks.tuning_task import TuningTask, plain_options

SECONDS = 30.0
"""Of the search of a task that states none."""


def tune_task(
    task: TuningTask, operands: Mapping[str, Any], target: str, store: TuningStore
) -> None:
    """Search for plans of a task as its options say, and record the timed trials.

    >>> task = tp.tuning.task("y[i] = 2 * x[i]", {"x": {"shape": [8]}}, trials=1, threads=1)
    >>> with tp.TuningStore() as store:
    ...     tp.tuning.tune_task(task, task.make_operands(), "c", store)
    ...     len(store) > 0
    True

    task      what is tuned
    operands  that were made for it
    target    "c", "cuda" or "cuda-emulated"
    store     that takes the trials

    Raises what the call raises, and KeyboardInterrupt where the search was interrupted.
    """
    search = SearchOptions.of({"seconds": SECONDS, **task.search_options})
    options = {**plain_options(task.call_options), "target": target}
    tuned = tune_text(task.text, operands, options, search, store)
    if tuned.outcome.reason == INTERRUPTED:
        raise KeyboardInterrupt
