"""Who does jobs: workers by name, each with a target and at most one job at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import sleep
from typing import Any, Protocol

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import TuningStoreError
from taco_py.tuning.jobs.run_job import Outcome, TuneTask, outcome_of, run_job
from taco_py.tuning.store.job_journal import (
    FAIL_TO_GET_RESULT,
    FAIL_TO_LOAD_WORKLOAD,
    FAIL_TO_SUBMIT,
    STORAGE_ERROR,
    Job,
)
from taco_py.tuning.store.journal import Journal

TRIED_AGAIN = (FAIL_TO_SUBMIT, FAIL_TO_LOAD_WORKLOAD, FAIL_TO_GET_RESULT, STORAGE_ERROR)
"""Errors that another worker, or another time, may not meet."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A worker that has nothing to do: what it is called, and its target."""

    worker: str
    target: str


class Workers(Protocol):
    """Workers as a farm sees them.

    lease  seconds for which a job is a worker's, unless the farm says again that it is
    """

    lease: float

    def free(self) -> list[Slot]:
        """Return the workers without a job."""

    def targets(self) -> set[str]:
        """Return the targets of all workers there are."""

    def start(self, slot: Slot, job: Job) -> None:
        """Let a worker begin a job. Raises FarmError where it cannot be reached."""

    def ended(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Return the jobs that ended since, waiting so long for the first."""

    def end(self, job: Job) -> None:
        """End a job that takes too long, with its process."""

    def close(self) -> None:
        """Let all go that this process started."""


class OwnProcess:
    """One worker, which is this process: a job is done when it is waited for.

    journal  in which a thread renews the job's lease meanwhile
    """

    lease = 60.0

    def __init__(self, target: str, tune: TuneTask, folder: str, journal: Journal) -> None:
        self._target, self._tune, self._folder = target, tune, folder
        self._journal = journal
        self._job: Job | None = None

    def free(self) -> list[Slot]:
        """Return this process as a slot, unless it has a job."""
        return [Slot("this process", self._target)] if self._job is None else []

    def targets(self) -> set[str]:
        """Return its target."""
        return {self._target}

    def start(self, slot: Slot, job: Job) -> None:
        """Take a job."""
        self._job = job

    def ended(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Return the job that was taken, done now."""
        if self._job is None:
            sleep(seconds)
            return []
        job, self._job = self._job, None
        with self._renewed(job):
            fields: Mapping[str, Any] = run_job(job.workload, job.options, self._tune, self._folder)
        return [(job, outcome_of(fields))]

    @contextmanager
    def _renewed(self, job: Job) -> Iterator[None]:
        """Let a job's lease hold on inside a `with`."""
        over = Event()

        def renew() -> None:
            while not over.wait(self.lease / 4):
                with suppress(TuningStoreError):  # a locked store: three more tries are left
                    self._journal.renew({job.hash: job.attempts}, self.lease)

        thread = Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def end(self, job: Job) -> None:
        """Do nothing: this process waits for its job itself."""

    def close(self) -> None:
        """Do nothing, for nothing was started."""
