"""What farms do with tasks in tests: in a file that workers import quickly."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import taco_py as tp
from taco_py.tuning.tasks.tuning_task import TuningTask

PLAN = "B: ds/float64/int32 of 3 by 3, 3 entries\nreturn B"


def quick(task: TuningTask, operands: Mapping[str, Any], target: str, store: Any) -> None:
    """Note a trial that took as many seconds as the task's seed."""
    key = store.key(task.text, operands, target=target)
    seconds = 1.0 + task.search_options.get("seed", 0)
    store.add(tp.TuningRecord(key, PLAN, target, seconds))


def steady(task: TuningTask, operands: Mapping[str, Any], target: str, store: Any) -> None:
    """Take half a second, in which a worker may be killed."""
    time.sleep(0.5)
    quick(task, operands, target, store)


def troubled(task: TuningTask, operands: Mapping[str, Any], target: str, store: Any) -> None:
    """Do what the name of a task says."""
    match task.name:
        case "refused":
            key = store.key(task.text, operands, target=target)
            store.add(tp.TuningRecord(key, "", result="refused", note="too long"))
        case "unfit":
            raise tp.OperandError("Expected something else")
        case "fault":
            raise ZeroDivisionError("oh")
        case "full":
            raise tp.TuningStoreError("Expected room, found none")
        case "crash" if target == "c":
            os._exit(7)
        case "hang" if target != "c":
            time.sleep(600)
        case _:
            quick(task, operands, target, store)


def interrupted(task: TuningTask, operands: Mapping[str, Any], target: str, store: Any) -> None:
    """Be interrupted in the second task."""
    if task.search_options["seed"] == 1:
        raise KeyboardInterrupt
    quick(task, operands, target, store)


if __name__ == "__main__":
    from taco_py.tool.cli import main
    from taco_py.tuning.jobs import tuning_farm
    from tests.tune.farm_jobs import steady as by_name  # as workers find it

    defaults: Any = tuning_farm.farm.__kwdefaults__
    defaults["tune"] = by_name
    sys.exit(main(["tune", *sys.argv[1:], "--quiet"]))
