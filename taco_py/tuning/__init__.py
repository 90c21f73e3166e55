"""Many tasks: collected from a script or a file, mutated, and tuned by a farm of workers.

with tp.tuning.record() as tasks:          what calls ask
    my_script()
tasks.write("tasks.toml")                  to be edited
tp.tuning.farm("tasks.toml", "tuning.sqlite", workers=2)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taco_py.tuning.jobs.batch_files import read_batch, run_batch, write_batch
    from taco_py.tuning.jobs.farm_status import FarmStatus, status_of
    from taco_py.tuning.jobs.make_tasks import mutated, task
    from taco_py.tuning.jobs.recorded_tasks import record
    from taco_py.tuning.jobs.tuning_farm import FarmReport, farm
    from taco_py.tuning.jobs.usual_job import tune_task
    from taco_py.tuning.tasks.task_file import read_tasks, write_tasks
    from taco_py.tuning.tasks.tuning_task import TuningTask

_HOMES = {
    name: f"taco_py.tuning.{module}"
    for module, names in {
        "jobs.tuning_farm": (
            "FarmReport",
            "farm",
        ),
        "jobs.farm_status": (
            "FarmStatus",
            "status_of",
        ),
        "tasks.tuning_task": ("TuningTask",),
        "jobs.make_tasks": (
            "mutated",
            "task",
        ),
        "jobs.batch_files": (
            "read_batch",
            "run_batch",
            "write_batch",
        ),
        "tasks.task_file": (
            "read_tasks",
            "write_tasks",
        ),
        "jobs.recorded_tasks": ("record",),
        "jobs.usual_job": ("tune_task",),
    }.items()
    for name in names
}

__all__ = [
    "FarmReport", "FarmStatus", "TuningTask", "farm", "mutated", "read_batch", "read_tasks",
    "record", "run_batch", "status_of", "task", "tune_task", "write_batch", "write_tasks",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return the names of `_HOMES`, imported when they are first used."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
