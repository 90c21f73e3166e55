"""`farm`: many tasks tuned by many workers, each once, whatever stops in between."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from codegen.machine.target import TARGETS
from codegen.records import dataclass
from codegen.user_line import warn_user
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.jobs.batch_files import Batch
from taco_py.tuning.jobs.dask_workers import DaskWorkers
from taco_py.tuning.jobs.farm_loop import FarmLoop, target_of
from taco_py.tuning.jobs.farm_status import FarmStatus, Progress, status_of
from taco_py.tuning.jobs.run_job import TuneTask, process_name
from taco_py.tuning.jobs.usual_job import tune_task
from taco_py.tuning.jobs.workers import OwnProcess, Workers
from taco_py.tuning.store.job_journal import (
    ERRORS,
    FINISHED,
    MOST_ATTEMPTS,
)
from taco_py.tuning.store.journal import Journal
from taco_py.tuning.store.json_log import write_log
from taco_py.tuning.tasks.task_file import read_tasks
from taco_py.tuning.tasks.tuning_task import TuningTask

PREFIX = "farm "
"""What the names of farms begin with in the journal."""
REPEATED_CODES = {"": (), "failed": ERRORS[1:], "all": ERRORS}
KINDS = tuple(TARGETS)
MOST_WORKERS = 1024


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

    @property
    def waiting(self) -> tuple[str, ...]:
        """Return the targets of jobs that wait still, for no worker here has them."""
        left = (job for job in self.status.jobs if job.state != FINISHED)
        return tuple(sorted({target_of(job) for job in left}))

    def __str__(self) -> str:
        present = f", {self.known} were in the journal before" if self.known else ""
        lines = [str(self.status), f"{self.seconds:.1f} s{present}"]
        if self.waiting:
            lines.append(
                f"No worker here has the target {' or '.join(self.waiting)}: start one with "
                f'--resources "tacopy-{self.waiting[0]}=1", or write a batch'
            )
        return "\n".join(lines)


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
    again      "failed" or "all": finished jobs of these tasks, or of the journal where no tasks are
               given, that are tuned again
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
    options = FarmOptions(
        _counts(workers),
        scheduler,
        _words(targets),
        _batches(batches or {}),
        resume,
        _codes(again),
        _limit(limit),
        _attempts(attempts),
        str(Path.cwd() if folder is None else Path(folder).absolute()),
        None if page is None else Path(page),
        progress,
        tune,
    )
    checked = _checked(tasks)
    if isinstance(store, TuningStore):
        return _farmed(store, checked, options)
    with TuningStore(store) as opened:
        return _farmed(opened, checked, options)


def queue(
    store: TuningStore,
    tasks: Iterable[TuningTask] | str | Path,
    targets: Iterable[str] = ("c",),
    again: str = "",
) -> int:
    """Put tasks, or the tasks of a file, into the journal untuned; return how many wait anew.

    Without tasks, `again` is about the journal's own jobs for these targets.
    """
    checked = _checked(read_tasks(tasks) if isinstance(tasks, str | Path) else tasks)
    kinds, codes = _words(targets), _codes(again)
    jobs = [task.job(kind) for task in checked for kind in kinds]
    present = (job for job in store.journal.jobs() if target_of(job) in kinds)
    return store.journal.add(jobs or present, codes)


@dataclass(frozen=True, slots=True)
class FarmOptions:
    """The arguments of `farm`, checked."""

    workers: Mapping[str, int]
    scheduler: str
    targets: tuple[str, ...]
    batches: Mapping[str, Batch]
    resume: bool
    repeated: tuple[str, ...]
    limit: float | None
    attempts: int
    folder: str
    page: Path | None
    progress: bool
    tune: TuneTask


def _farmed(store: TuningStore, tasks: tuple[TuningTask, ...], options: FarmOptions) -> FarmReport:
    """Queue tasks, let workers do them, and report."""
    start, journal = perf_counter(), store.journal
    if options.resume:
        journal.take_over(PREFIX)
    jobs = {job.hash: job for task in tasks for job in map(task.job, options.targets)}
    queued = journal.add(jobs.values() or journal.jobs(), options.repeated)
    hashes = frozenset(jobs or (job.hash for job in journal.jobs()))
    progress = Progress(store, hashes, sys.stderr if options.progress else None, options.page)
    for batch in options.batches.values():
        batch.complete(journal)
    left = any(job.state != FINISHED for job in journal.jobs() if job.hash in hashes)
    workers = _workers(options, journal) if left else _in_process_worker(options, journal)
    name = f"{PREFIX}{process_name()}"
    loop = FarmLoop(
        store, workers, options.batches, hashes, name, options.limit, options.attempts, progress
    )
    try:
        loop.run()
    finally:
        workers.close()
        rescued = _rescued(store, loop)
        progress.tell("\n")
    present = len(hashes) - queued
    seconds = perf_counter() - start
    return FarmReport(queued, present, loop.refused, seconds, status_of(store, hashes), rescued)


def _workers(options: FarmOptions, journal: Journal) -> Workers:
    """Return the workers that were asked for. Raises FarmError or MissingExtraError."""
    if not options.workers and not options.scheduler:
        return _in_process_worker(options, journal)
    return DaskWorkers(options.workers, options.scheduler, options.tune, options.folder)


def _in_process_worker(options: FarmOptions, journal: Journal) -> OwnProcess:
    """Return this process as the worker of the first target without a batch."""
    kinds = [target for target in options.targets if target not in options.batches]
    return OwnProcess(kinds[0] if kinds else "", options.tune, options.folder, journal)


def _rescued(store: TuningStore, loop: FarmLoop) -> str:
    """Keep the trials that the store did not take in a log beside it; the log's path."""
    if not loop.unwritten:
        return ""
    home = store.path or Path("tuning")
    path = home.with_name(f"{home.name}.{os.getpid()}.unwritten.jsonl").absolute()
    count = write_log(path, loop.unwritten)
    warn_user(
        TuningStoreWarning(
            f"{count} trials could not be written into the store and are in {path}; "
            "store.load(…) takes them, and the farm tunes their tasks again"
        )
    )
    return str(path)


# ---------------------------------------------------------------- arguments


def _checked(tasks: Iterable[TuningTask]) -> tuple[TuningTask, ...]:
    checked = tuple(tasks)
    for task in checked:
        if not isinstance(task, TuningTask):
            raise OperandTypeError(
                f"Expected tuning tasks, found {type(task).__name__}",
                hint="tp.tuning.task(…) makes one, tp.tuning.record() collects them",
            )
    return checked


def _counts(workers: int | Mapping[str, int]) -> dict[str, int]:
    counts = workers if isinstance(workers, Mapping) else {"c": workers}
    for target, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_WORKERS:
            raise OperandTypeError(
                f"Expected a number of workers from 0 to {MOST_WORKERS} for {target}, found "
                f"{count!r}",
                hint='as in workers=2 or workers={"c": 2, "cuda": 1}',
            )
    return {_target(target): count for target, count in counts.items() if count}


def _words(targets: Iterable[str]) -> tuple[str, ...]:
    words = (targets,) if isinstance(targets, str) else tuple(targets)
    return tuple(dict.fromkeys(map(_target, words)))


def _target(word: Any) -> str:
    kind, _, tag = word.partition("@") if isinstance(word, str) else ("", "", "")
    plain = tag.replace("-", "").replace("_", "")
    if kind not in KINDS or (tag and not plain.isalnum()) or str(word).endswith("@"):
        raise OperandTypeError(
            f"Expected one of {', '.join(KINDS)}, with a tag of letters and digits behind @ or "
            f"without, found {word!r}",
            hint='as in targets=("c", "cuda@lab-3")',
        )
    return str(word)


def _batches(batches: Mapping[str, str | Path]) -> dict[str, Batch]:
    by_target = {}
    for target, place in batches.items():
        folder = Path(place).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        by_target[_target(target)] = Batch(folder / "jobs.jsonl", folder / "log.jsonl")
    return by_target


def _codes(choice: str) -> tuple[str, ...]:
    if choice not in REPEATED_CODES:
        raise OperandTypeError(
            f'Expected again to be "failed" or "all", found {choice!r}',
            hint="leave it out: finished jobs stay finished",
        )
    return tuple(REPEATED_CODES[choice])


def _limit(limit: float | None) -> float | None:
    usable = isinstance(limit, int | float) and not isinstance(limit, bool) and limit > 0
    if limit is not None and not usable:
        raise OperandTypeError(
            f"Expected limit to be a positive number of seconds, found {limit!r}",
            hint="leave it out to wait for each job",
        )
    return limit


def _attempts(attempts: int) -> int:
    if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
        raise OperandTypeError(
            f"Expected attempts to be at least 1, found {attempts!r}", hint="3 is the usual number"
        )
    return attempts
