"""`farm`: many tasks tuned by many workers, each once, whatever stops in between."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from codegen.records import dataclass
from codegen.user_line import warn_user
from taco_py.call.tuning.tuning_store import TuningStore
from taco_py.diagnostics.cautions import TuningStoreWarning
from taco_py.diagnostics.errors import OperandTypeError
from taco_py.tune.store.job_journal import (
    ERRORS,
    FINISHED,
    MOST_ATTEMPTS,
    NORMAL,
    Job,
)
from taco_py.tune.store.json_log import write_log
from taco_py.tune.tasks.task_file import read_tasks
from taco_py.tune.tasks.tuning_task import TuningTask
from taco_py.tuning.batch_files import Batch
from taco_py.tuning.dask_workers import DaskWorkers
from taco_py.tuning.farm_loop import FarmLoop
from taco_py.tuning.farm_status import FarmStatus, Progress, status_of
from taco_py.tuning.run_job import TuneTask, process_name
from taco_py.tuning.tune_task import tune_task
from taco_py.tuning.workers import OwnProcess, Workers

PREFIX = "farm "
"""What the names of farms begin with in the journal."""
AGAIN = {"": (), "failed": ERRORS[1:], "all": ERRORS}


@dataclass(frozen=True, slots=True)
class FarmReport:
    """What a farm did.

    queued   jobs that it put into the journal
    known    jobs that were there, unfinished or finished
    refused  late outcomes of jobs that were finished before
    status   the jobs at its end
    rescued  a file with the trials that the store did not take, "" as a rule
    """

    queued: int
    known: int
    refused: int
    seconds: float
    status: FarmStatus
    rescued: str = ""

    @property
    def finished(self) -> int:
        """Return how many of its jobs are finished."""
        return self.status.count(FINISHED)

    @property
    def failed(self) -> tuple[tuple[str, str], ...]:
        """Return the texts of failed tasks, with the errors."""
        return tuple((job.workload, job.error) for job in self.status.failed)

    def __str__(self) -> str:
        known = f", {self.known} were in the journal before" if self.known else ""
        return f"{self.status}\n{self.seconds:.1f} s{known}"


def farm(
    tasks: Iterable[TuningTask] | str | Path = (),
    store: TuningStore | str | Path = "tuning.sqlite",
    *,
    workers: int | Mapping[str, int] = 2,
    scheduler: str = "",
    targets: Iterable[str] = ("c",),
    batches: Mapping[str, str | Path] | None = None,
    resume: bool = False,
    again: str = "",
    limit: float | None = None,
    attempts: int = MOST_ATTEMPTS,
    folder: str | Path | None = None,
    page: str | Path | None = None,
    progress: bool = True,
    tune: TuneTask = tune_task,
) -> FarmReport:
    """Tune many tasks on many workers, and write each one's trials into a store once.

    >>> x = {"shape": [80]}
    >>> A = {"shape": [100, 80], "format": "csr_array", "density": 0.1}
    >>> task = tp.tuning.task("y[i] = A[i,j] * x[j]", {"A": A, "x": x}, trials=2, threads=1)
    >>> with tp.TuningStore() as store:
    ...     report = tp.tuning.farm([task], store, workers=0, progress=False)
    ...     print(report.finished, report.failed)
    1 ()

    Every change of a job is in the store's journal: a farm that ends before all is done, or a
    worker, loses nothing. Ctrl-C lets the jobs that are tuned wait again.

    tasks      or a file of TOML that has them; none for those that the journal has
    store      a TuningStore, or its file
    workers    processes to start on this machine, or how many for each target; 0 for none: this
               process then does one job after the other, without Dask
    scheduler  address of a scheduler of Dask, whose workers are used
    targets    that each task is tuned for: "c", "cuda", "cuda-emulated", with a tag behind "@"
               for a kind of machine, as "c@pi"
    batches    for targets that no scheduler reaches: a folder for each, in which jobs.jsonl is
               written and log.jsonl read
    resume     whether jobs that an earlier farm left are taken at once; otherwise a minute after
               it was heard of last. Only where no other farm works at this store
    again      "failed" or "all": finished jobs that are tuned again
    limit      seconds after which a job hangs, and its worker is started again
    attempts   that may fail before a job is finished with the error
    folder     in which files of tasks are looked for; that of the file of tasks, or this one
    page       a file of HTML that shows where the farm stands
    progress   whether a bar is drawn
    tune       what tunes a task: a function of task, operands, target and store

    Raises FileFormatError, OSError, TuningStoreError, OperandTypeError before any work, FarmError
    where workers cannot be reached, and MissingExtraError without tacopy[farm].
    """
    if isinstance(tasks, str | Path):
        folder = Path(tasks).absolute().parent if folder is None else folder
        tasks = read_tasks(tasks)
    found = _checked(tasks)
    _check_options(again, limit, attempts)
    if not isinstance(store, TuningStore):
        with TuningStore(store) as opened:
            return farm(**{**locals_of(locals()), "tasks": found, "store": opened})
    return _farmed(
        store, found, _counts(workers, scheduler), scheduler, tuple(targets),
        _batches(batches or {}), resume, AGAIN[again], limit, attempts,
        str(Path.cwd() if folder is None else Path(folder).absolute()),
        None if page is None else Path(page), progress, tune,
    )  # fmt: skip
