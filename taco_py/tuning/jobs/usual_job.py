"""What a farm does with a task by default: the search of `tp.tune` over its operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.tuning.bench.tune_call import tune_text
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.searches.search_table import USUAL_SEARCH
from taco_py.tuning.session.tuning_session import INTERRUPTED
from taco_py.tuning.tasks.tuning_task import TuningTask, plain_options

TRIALS, SECONDS = 100, 30.0
"""Of a task that says none."""


def tune_task(
    task: TuningTask, operands: Mapping[str, Any], target: str, store: TuningStore
) -> None:
    """Search for plans of a task as its options say, and keep what was timed.

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
    search = task.search_options
    found = tune_text(
        task.text,
        operands,
        {**plain_options(task.call_options), "target": target},
        trials=int(search.get("trials", TRIALS)),
        seconds=float(search.get("seconds", SECONDS)),
        search=str(search.get("search", USUAL_SEARCH)),
        seed=int(search.get("seed", 0)),
        store=store,
    )
    if found.outcome.why == INTERRUPTED:
        raise KeyboardInterrupt
