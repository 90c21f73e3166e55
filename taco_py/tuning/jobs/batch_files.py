"""A target that answers to no scheduler: jobs go out in a file, outcomes come back in another.

here            tasks waiting for "c@pi"  →  jobs.jsonl
there           taco-py tune --run-batch jobs.jsonl --log log.jsonl
here            log.jsonl  →  the store, each job FINISHED once
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FileFormatError, TacoError
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.jobs.run_job import Outcome, TuneTask, outcome_of, run_job
from taco_py.tuning.jobs.usual_job import tune_task
from taco_py.tuning.jobs.workers import TRIED_AGAIN
from taco_py.tuning.store.job_journal import TUNING, Job, code_of
from taco_py.tuning.store.journal import Journal

DAYS = 7
"""For which jobs of a batch are its own."""
LEASE = DAYS * 86400.0
FIELDS = ("hash", "attempts", "workload", "options")


@dataclass(frozen=True, slots=True)
class Batch:
    """A file of jobs for a target, and the log that comes back.

    jobs  the file that is written
    log   the file that a worker elsewhere writes
    """

    jobs: Path
    log: Path

    def write(self, journal: Journal, target: str, hashes: Collection[str] = ()) -> int:
        """Put all jobs that wait for a target into the file; how many.

        Each is claimed, in the name of the file, before it stands there.
        """
        name, count = f"batch {self.jobs}", 0
        while (job := journal.claim(target, name, LEASE, hashes)) is not None:
            self._put(job)
            count += 1
        return count

    def complete(self, journal: Journal) -> int:
        """Put jobs into the file that were claimed for it and do not stand there; how many."""
        present = {_attempt(line) for line in _jobs(self.jobs)} if self.jobs.exists() else set()
        claimed = [job for job in journal.jobs(TUNING) if job.worker == f"batch {self.jobs}"]
        left = [job for job in claimed if (job.hash, job.attempts) not in present]
        for job in left:
            self._put(job)
        return len(left)

    def _put(self, job: Job) -> None:
        append(self.jobs, {field: getattr(job, field) for field in FIELDS})

    def read(self, journal: Journal) -> list[tuple[Job, Outcome]]:
        """Return the contents of the log about tuned jobs. Raises FileFormatError that names the
        line."""
        if not self.log.exists():
            return []
        waiting = {job.hash: job for job in journal.jobs(TUNING)}
        outcomes = []
        for line in _outcomes(self.log):
            job = waiting.get(line["hash"])
            if job is not None and job.attempts == line["attempts"]:
                outcomes.append((job, outcome_of(line)))
        return outcomes


def write_batch(store: TuningStore, path: str | Path, target: str) -> int:
    """Write the jobs that wait for a target into a file, and return how many.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "jobs.jsonl"
    >>> task = tp.tuning.task("y[i] = 2 * x[i]", {"x": {"shape": [8]}})
    >>> with tp.TuningStore() as store:
    ...     store.journal.add([task.job("c@pi")])
    ...     tp.tuning.write_batch(store, path, "c@pi")
    1
    1

    store   whose journal has the jobs
    path    of the file, which may have other jobs before
    target  for which they wait

    They are that file's for seven days.
    """
    batch = Batch(Path(path), Path(path))
    return batch.complete(store.journal) + batch.write(store.journal, target)


def run_batch(
    path: str | Path,
    log: str | Path,
    tune: TuneTask = tune_task,
    told: Callable[[int, int], None] = lambda finished, all: None,
) -> int:
    """Do the jobs of a file, write a line of a log for each, and return how many.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with tp.TuningStore() as store:
    ...     tp.tuning.write_batch(store, folder / "jobs.jsonl", "c@pi")
    0
    >>> (folder / "jobs.jsonl").touch()
    >>> tp.tuning.run_batch(folder / "jobs.jsonl", folder / "log.jsonl")
    0

    path  of the file of jobs
    log   of the file that is written; jobs that are in it are done already
    tune  what tunes a task, as `farm` has it
    told  is called with the numbers of jobs done and of all, after each

    It may be interrupted and begun again, and needs no store. Raises FileFormatError, OSError.
    """
    jobs = _jobs(Path(path))
    logged = Path(log)
    finished = {_attempt(job) for job in _outcomes(logged)} if logged.exists() else set()
    left = [job for job in jobs if _attempt(job) not in finished]
    for number, job in enumerate(left, 1):
        folder = str(Path(path).absolute().parent)
        outcome = run_job(job["workload"], job["options"], tune, folder)
        append(logged, {"hash": job["hash"], "attempts": job["attempts"], **outcome})
        told(number, len(left))
    return len(left)


def read_batch(store: TuningStore, log: str | Path) -> tuple[int, int]:
    """Write the outcomes of a log into a store, and return how many, and how many were refused.

    >>> import tempfile, pathlib
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> log.touch()
    >>> with tp.TuningStore() as store:
    ...     tp.tuning.read_batch(store, log)
    (0, 0)

    store  whose journal has the jobs
    log    that `run_batch` wrote

    Refused is what others have finished, or were given, in the meantime. Raises FileFormatError,
    before anything is written, and OSError.
    """
    lines = [(line, outcome_of(line)) for line in _outcomes(Path(log))]
    journal, finished, refused = store.journal, 0, 0
    for line, outcome in lines:
        job = journal.job(line["hash"])
        if job is None:
            refused += 1
            continue
        claimed = replace(job, attempts=line["attempts"])
        if code_of(outcome.error) in TRIED_AGAIN:
            accepted = bool(journal.give_back(claimed, outcome.error, outcome.worker))
        else:
            accepted = journal.finish(claimed, outcome.records, outcome.error, outcome.worker)
        finished, refused = finished + accepted, refused + (not accepted)
    return finished, refused


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line of JSON to a file, in the place of an incomplete last line."""
    with path.open("ab+") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.write(json.dumps(line).encode() + b"\n")


def _attempt(line: Mapping[str, Any]) -> tuple[str, int]:
    return line["hash"], line["attempts"]


def _jobs(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of jobs."""
    return _lines(path, _check_job)


def _outcomes(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of outcomes."""
    return _lines(path, outcome_of)


def _check_job(line: Mapping[str, Any]) -> None:
    if not all(isinstance(line[name], str) for name in ("workload", "options")):
        raise TypeError("no job")


def _lines(path: Path, check: Callable[[Any], object]) -> list[dict[str, Any]]:
    """Return the lines of a file that pass a check. A last line that is cut off is not there
    yet."""
    lines: list[dict[str, Any]] = []
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise TypeError("no object")
            check(entry)
            entry["hash"], entry["attempts"] = str(entry["hash"]), int(entry["attempts"])
            lines.append(entry)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, TacoError) as error:
            if line.startswith("{") and not line.endswith("\n"):
                break
            raise FileFormatError(
                f"Expected a job or an outcome in line {number} of {path}, found {line[:60]!r} "
                f"({error})",
                hint="taco-py tune --batch writes jobs, --run-batch outcomes",
            ) from error
    return lines
