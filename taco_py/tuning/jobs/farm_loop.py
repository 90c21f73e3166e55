"""The loop of a farm: jobs out to workers, outcomes into the store, until none is left.

All that must not be lost is in the journal: this process may end at any time, and another goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FarmError, TuningStoreError
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.jobs.batch_files import Batch
from taco_py.tuning.jobs.run_job import Outcome
from taco_py.tuning.jobs.workers import TRIED_AGAIN, Slot, Workers
from taco_py.tuning.store.job_journal import (
    FAIL_TO_GET_RESULT,
    FAIL_TO_SUBMIT,
    FINISHED,
    NORMAL,
    Job,
    code_of,
    with_reason,
)

TICK = 0.5
"""Seconds between two looks at workers."""
RENEWED = 15.0
"""Seconds after which the leases of what is tuned are renewed."""
PATIENCE = 30.0
"""Seconds that a store which cannot be written is tried again for, at the end."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that a worker has, since when, and who."""

    job: Job
    since: float
    worker: str


class FarmLoop:
    """Jobs, workers and the store.

    hashes  of the jobs that are this farm's
    limit   seconds after which a job hangs, None for never
    name    of this farm in the journal
    """

    def __init__(
        self,
        store: TuningStore,
        workers: Workers,
        batches: Mapping[str, Batch],
        hashes: frozenset[str],
        name: str,
        limit: float | None,
        most: int,
        notify: Callable[[], None],
    ) -> None:
        self._store, self._workers, self._batches = store, workers, batches
        self._hashes, self._name, self._limit, self._notify = hashes, name, limit, notify
        self.journal = store.journal.allowing(most)
        self._running: dict[str, RunningJob] = {}
        self._unwritten: list[tuple[Job, Outcome]] = []
        self._sizes: dict[Path, int] = {}
        self._renewed = monotonic()
        self.refused = 0

    def run(self) -> None:
        """Go on until no job is left that a worker here can do.

        Jobs that are tuned when it is interrupted wait again. Raises FarmError, TuningStoreError.
        """
        try:
            while self._step():
                self._notify()
        finally:
            self._give_all_back()
            self._notify()

    def _step(self) -> bool:
        """Hand out, gather, renew; whether anything is left to do."""
        self._hand_out()
        ended = self._workers.ended(TICK)
        for job, outcome in (*ended, *self._read_batches()):
            self._write(job, outcome)
        self._write_again()
        self._end_hung()
        self._renew()
        if self._running or self._unwritten:
            return True
        return bool(self._left())

    def _left(self) -> list[Job]:
        """Return the unfinished jobs whose targets have a worker or a batch."""
        reachable = self._workers.targets() | set(self._batches)
        return [
            job
            for job in self.journal.jobs()
            if job.hash in self._hashes and job.state != FINISHED and target_of(job) in reachable
        ]

    # ---------------------------------------------------------------- out

    def _hand_out(self) -> None:
        """Let workers without a job have one."""
        for slot in self._workers.free():
            name = f"{self._name} {slot.worker}"
            job = self.journal.claim(slot.target, name, self._workers.lease, self._hashes)
            if job is not None:
                self._start(slot, job)
        for target, batch in self._batches.items():
            batch.write(self.journal, target, self._hashes)

    def _start(self, slot: Slot, job: Job) -> None:
        self._running[job.hash] = RunningJob(job, monotonic(), slot.worker)
        try:
            self._workers.start(slot, job)
        except FarmError as error:
            self._drop(job, with_reason(FAIL_TO_SUBMIT, error))

    # ---------------------------------------------------------------- back

    def _read_batches(self) -> list[tuple[Job, Outcome]]:
        """Read new outcomes of unfinished jobs from the logs of batches that have grown."""
        outcomes = []
        for batch in self._batches.values():
            size = batch.log.stat().st_size if batch.log.exists() else 0
            if size != self._sizes.get(batch.log, 0):
                self._sizes[batch.log] = size
                outcomes += batch.read(self.journal)
        return outcomes

    def _write(self, job: Job, outcome: Outcome) -> None:
        """Write the outcome of a job, once; or let the job wait again."""
        if code_of(outcome.error) in TRIED_AGAIN:
            self._drop(job, outcome.error, outcome.worker)
            return
        try:
            accepted = self.journal.finish(job, outcome.records, outcome.error, outcome.worker)
        except TuningStoreError:
            self._unwritten.append((job, outcome))
            return
        self._running.pop(job.hash, None)
        self.refused += not accepted

    def _write_again(self) -> None:
        waiting, self._unwritten = self._unwritten, []
        for job, outcome in waiting:
            self._write(job, outcome)

    def _drop(self, job: Job, error: str, worker: str = "") -> None:
        self.journal.give_back(job, error, worker)
        self._running.pop(job.hash, None)

    def _end_hung(self) -> None:
        """End jobs that take longer than the limit, with their processes."""
        for running in list(self._running.values()):
            if self._limit is not None and monotonic() - running.since > self._limit:
                self._workers.end(running.job)
                reason = f"no result within {self._limit:g} s from {running.worker}"
                self._drop(running.job, with_reason(FAIL_TO_GET_RESULT, reason))

    def _renew(self) -> None:
        """Extend the leases of the jobs that are tuned here."""
        if monotonic() - self._renewed < RENEWED or not self._running:
            return
        self._renewed = monotonic()
        claims = {hash: running.job.attempts for hash, running in self._running.items()}
        for hash in self.journal.renew(claims, self._workers.lease):
            self._workers.end(self._running.pop(hash).job)  # another farm has it by now

    def _give_all_back(self) -> None:
        """Write the unwritten outcomes, and let all other jobs wait again."""
        end = monotonic() + PATIENCE
        while self._unwritten and monotonic() < end:
            self._write_again()
            if self._unwritten:
                sleep(TICK)
        rescued = {job.hash for job, _ in self._unwritten}
        for running in list(self._running.values()):
            if running.job.hash not in rescued:
                self.journal.give_back(running.job, with_reason(NORMAL, "interrupted"))
                del self._running[running.job.hash]

    @property
    def unwritten(self) -> tuple[Any, ...]:
        """Return the trials that the store did not take."""
        return tuple(record for _, outcome in self._unwritten for record in outcome.records)


def target_of(job: Job) -> str:
    """Return the target of a job, as its options say."""
    return str(json.loads(job.options)["target"])
