"""`Journal`: the jobs of a farm in the file of a store, each change with what belongs to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from time import time

from taco_py.tuning.store import job_journal as rows
from taco_py.tuning.store.job_journal import FINISHED, NORMAL, Job, Transition
from taco_py.tuning.store.store_file import StoreFile
from taco_py.tuning.store.trial_log import add_trials
from taco_py.tuning.store.tuning_record import TuningRecord


class Journal:
    """The jobs of a store, changed in one transaction each, by any number of processes.

    >>> with tp.TuningStore() as store:
    ...     store.journal.add([])
    0

    file  of the store
    most  attempts that may fail before a job is finished with the error of the last
    """

    def __init__(self, file: StoreFile, most: int = rows.MOST_ATTEMPTS) -> None:
        self._file, self._most = file, most

    def allowing(self, most: int) -> Journal:
        """Return the journal for who lets so many attempts fail."""
        return Journal(self._file, most)

    def add(self, jobs: Iterable[Job], codes: Collection[str] = ()) -> int:
        """Let jobs wait that are new, or ended with one of the codes; return how many."""
        with self._file.write() as connection:
            return rows.add_jobs(connection, jobs, codes, time())

    def claim(
        self, target: str, worker: str, seconds: float, hashes: Collection[str] = ()
    ) -> Job | None:
        """Give a job that waits to a worker for some seconds; leases that ran out end before."""
        when = time()
        with self._file.write() as connection:
            rows.expire(connection, when, self._most)
            return rows.claim(connection, target, worker, when, when + seconds, hashes)

    def renew(self, claims: Mapping[str, int], seconds: float) -> set[str]:
        """Let claims, attempts by hash, hold for so long from now; return those that were lost."""
        with self._file.write() as connection:
            return rows.renew(connection, claims, time() + seconds)

    def finish(
        self, job: Job, records: Iterable[TuningRecord], error: str = NORMAL, worker: str = ""
    ) -> bool:
        """End a job and write its trials, both or neither; False where another attempt has it."""
        with self._file.write() as connection:
            worker_name = worker or job.worker
            if not rows.finish(connection, job.hash, job.attempts, error, worker_name, time()):
                return False
            add_trials(connection, records)
            return True

    def give_back(self, job: Job, error: str = "", worker: str = "") -> str:
        """Let a job wait again, or finish it where too many attempts failed; return its state."""
        with self._file.write() as connection:
            worker_name = worker or job.worker
            return rows.give_back(
                connection, job.hash, job.attempts, error, worker_name, time(), self._most
            )

    def take_over(self, prefix: str = "") -> int:
        """Let jobs wait again whose workers' names begin so; return how many."""
        with self._file.write() as connection:
            return rows.take_over(connection, prefix, time())

    # ---------------------------------------------------------------- reading

    def job(self, hash: str) -> Job | None:
        """Return the job with a hash."""
        with self._file.read() as connection:
            return rows.find_job(connection, hash)

    def jobs(self, state: str | None = None) -> tuple[Job, ...]:
        """Return all jobs, or those in a state."""
        with self._file.read() as connection:
            return tuple(rows.jobs_of(connection, state))

    def transitions(self, job: str | None = None) -> tuple[Transition, ...]:
        """Return all changes, or the changes of a job, the oldest first."""
        with self._file.read() as connection:
            return tuple(rows.transitions_of(connection, job))

    def last_finished(self, count: int) -> list[Transition]:
        """Return the last changes to FINISHED, the oldest first."""
        with self._file.read() as connection:
            return rows.last_finished(connection, count)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many jobs there are by state and error code."""
        with self._file.read() as connection:
            return rows.counts_of(connection)

    @property
    def unfinished(self) -> int:
        """Return how many jobs wait or are tuned."""
        return sum(n for (state, _), n in self.counts().items() if state != FINISHED)
