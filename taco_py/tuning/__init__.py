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
    "FarmReport": "taco_py.tuning.jobs.tuning_farm", "FarmStatus": "taco_py.tuning.jobs.farm_status",
    "TuningTask": "taco_py.tuning.tasks.tuning_task", "farm": "taco_py.tuning.jobs.tuning_farm",
    "mutated": "taco_py.tuning.jobs.make_tasks", "read_batch": "taco_py.tuning.jobs.batch_files",
    "read_tasks": "taco_py.tuning.tasks.task_file", "record": "taco_py.tuning.jobs.recorded_tasks",
    "run_batch": "taco_py.tuning.jobs.batch_files", "status_of": "taco_py.tuning.jobs.farm_status",
    "task": "taco_py.tuning.jobs.make_tasks", "tune_task": "taco_py.tuning.jobs.usual_job",
    "write_batch": "taco_py.tuning.jobs.batch_files", "write_tasks": "taco_py.tuning.tasks.task_file",
}  # fmt: skip

__all__ = [
    "FarmReport", "FarmStatus", "TuningTask", "farm", "mutated", "read_batch", "read_tasks",
    "record", "run_batch", "status_of", "task", "tune_task", "write_batch", "write_tasks",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The names of `_HOMES`, imported when they are first used."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
