"""Workers of Dask's distributed scheduler: processes of this machine, or those of a scheduler.

Each worker has one job at a time, which is pinned to it; a worker says its target as a resource:

    dask worker tcp://host:8786 --nthreads 1 --resources "tacopy-cuda=1"
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread
from time import monotonic, sleep
from typing import Any

from taco_py.language.diagnostics.errors import FarmError
from taco_py.language.diagnostics.extras import library
from taco_py.tuning.jobs.run_job import Outcome, TuneTask, outcome_of, run_job
from taco_py.tuning.jobs.workers import Slot
from taco_py.tuning.store.job_journal import FAIL_TO_GET_RESULT, Job, with_reason

RESOURCE = "tacopy-"
"""What a worker's resources begin with that say its target."""
RUNNING = "running"
"""What the scheduler says of a worker that takes jobs."""
USUAL = "c"
"""The target of workers that say none."""
CONFIG = {
    "distributed.scheduler.allowed-failures": 0,  # the journal counts attempts
    "distributed.admin.tick.limit": "60s",
    "distributed.deploy.lost-worker-timeout": "1 hour",  # one that starts again may take long
    "distributed.worker.daemon": False,  # a job starts processes of its own, to measure in
}
READY = "taco_py.tuning.jobs.worker_setup"
"""What a worker imports before it takes a job, so that no job waits for it."""
LONG = 600.0
"""Seconds after which no worker will come any more."""
SECONDS = 60.0
"""Within which a scheduler answers and a worker starts again."""


class DaskWorkers:
    """Workers on Dask.

    count      how many processes to start for each target, where there is no scheduler
    scheduler  address of a scheduler whose workers are used, "" to start one
    """

    lease = 60.0

    def __init__(
        self, count: Mapping[str, int], scheduler: str, tune: TuneTask, folder: str
    ) -> None:
        self._dask = library("distributed", "tacopy[farm]", "workers=0 does without")
        self._tune, self._folder = tune, folder
        self._cluster: Any = None
        self._environment: dict[str, str | None] = {}
        self._running: dict[Any, tuple[Job, str]] = {}
        self._ending: set[str] = set()
        self._last_seen = monotonic()
        if not scheduler:
            self._cluster = self._started(count)
        try:
            self._client = self._dask.Client(
                scheduler or self._cluster, timeout=SECONDS, set_as_default=False
            )
            if scheduler:
                self._client.wait_for_workers(1, timeout=SECONDS)
        except self._dask.TimeoutError as error:
            self._client.close()
            raise FarmError(
                f"Expected workers of the scheduler {scheduler}, found none in {SECONDS:g} s",
                hint='dask worker tcp://… --nthreads 1 --resources "tacopy-c=1" starts one',
            ) from error
        except (OSError, ValueError) as error:
            self._close_cluster()
            raise FarmError(
                f"Expected a scheduler of Dask at {scheduler or 'this machine'}, found none "
                f"({error})",
                hint="start one with `dask scheduler`, or leave the address out for workers on "
                "this machine",
            ) from error

    def _started(self, count: Mapping[str, int]) -> Any:
        """Return a scheduler and processes on this machine."""
        dask = self._dask
        workers = {
            f"{target} {number}": {
                "cls": dask.Nanny,
                "options": {
                    "nthreads": 1, "resources": {RESOURCE + target: 1}, "host": "127.0.0.1",
                    "dashboard": False, "silence_logs": 50, "preload": [READY],
                },
            }
            for target, most in count.items()
            for number in range(most)
        }  # fmt: skip
        scheduler = {
            "cls": dask.Scheduler,
            "options": {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"},
        }
        config = library("dask", "tacopy[farm]").config
        config.set(CONFIG)
        names = (*config.get("distributed.nanny.pre-spawn-environ"), "PYTHONHASHSEED")
        self._environment = {name: os.environ.get(name) for name in names}
        return dask.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=50)

    # ---------------------------------------------------------------- workers

    def _worker_records(self) -> dict[str, Any]:
        """Return the scheduler's record of each worker, by its address."""
        if self._client.status not in ("running", "connecting"):
            raise FarmError(
                f"Expected the scheduler {self._client.scheduler} to answer, found its connection "
                f"{self._client.status}",
                hint="start the farm again with --resume",
            )
        try:
            # scheduler_info() may return what the client keeps, which names no workers
            workers: dict[str, Any] = self._client.sync(self._client.scheduler.identity)["workers"]
        except (OSError, RuntimeError) as error:
            raise FarmError(f"Expected the scheduler to answer, found {error}") from error
        return workers

    def free(self) -> list[Slot]:
        """Return workers without a job."""
        records = self._worker_records()
        self._look_for_any(records)
        self._ending &= set(records)
        busy = {address for _, address in self._running.values()} | self._ending
        return [
            Slot(address, target)
            for address, record in records.items()
            if address not in busy and record.get("status", RUNNING) == RUNNING
            for target in _targets(record)
        ]

    def _look_for_any(self, records: Mapping[str, Any]) -> None:
        """Raise FarmError where there has been no worker for long."""
        if records:
            self._last_seen = monotonic()
        elif monotonic() - self._last_seen > LONG:
            raise FarmError(
                f"Expected a worker to start within {LONG:g} s, found none",
                hint="tune on this process alone, with workers=0, to see what is wrong",
            )

    def targets(self) -> set[str]:
        """Return the targets of all workers, including workers that are about to start."""
        targets = {
            target for worker in self._worker_records().values() for target in _targets(worker)
        }
        if self._cluster is not None:
            targets |= {str(name).rpartition(" ")[0] for name in self._cluster.worker_spec}
        return targets

    def start(self, slot: Slot, job: Job) -> None:
        """Let a worker begin a job."""
        try:
            future = self._client.submit(
                run_job,
                job.workload,
                job.options,
                self._tune,
                self._folder,
                key=f"{job.hash}-{job.attempts}",
                workers=[slot.worker],
                allow_other_workers=False,
                retries=0,
                pure=False,
            )
        except Exception as error:  # of pickling, or of the connection
            raise FarmError(
                f"Expected a job that can be sent to a worker, found {error}"
            ) from error
        self._running[future] = (job, slot.worker)

    def ended(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Return the jobs that ended, or whose workers are gone."""
        if self._running:
            dask, futures = self._dask, list(self._running)
            nothing_yet = (TimeoutError, dask.TimeoutError, dask.CancelledError)
            with suppress(*nothing_yet), self._client.as_current():
                dask.wait(futures, timeout=seconds, return_when="FIRST_COMPLETED")
        else:
            sleep(seconds)
        outcomes = []
        for future in [future for future in self._running if future.done()]:
            job, address = self._running.pop(future)
            outcomes.append((job, _outcome(future)))
            if _has_died(future):
                self._ending.add(address)  # the scheduler may name it for a moment yet
        alive = self._worker_records() if self._running else {}
        for future in [future for future, (_, at) in self._running.items() if at not in alive]:
            job, address = self._running.pop(future)
            future.cancel()
            outcomes.append((job, _lost(f"the worker {address} is gone")))
        return outcomes

    def end(self, job: Job) -> None:
        """Restart the worker of a job, whose process ends. Nobody waits for it."""
        for future, (other, address) in list(self._running.items()):
            if other.hash == job.hash:
                del self._running[future]
                future.cancel()
                self._ending.add(address)
                self._restart(address)

    def _restart(self, address: str) -> None:
        """End a worker's process, which its nanny then starts again; without one it ends alone."""
        nannies = () if self._cluster is None else self._cluster.workers.values()
        for nanny in nannies:
            if nanny.worker_address == address and nanny.process is not None:
                with suppress(OSError):
                    os.kill(nanny.process.pid, signal.SIGKILL)
                return

        def ask() -> None:
            with suppress(Exception):  # the scheduler may be gone; what hangs there stays
                self._client.restart_workers([address], timeout=SECONDS, raise_for_error=False)

        Thread(target=ask, daemon=True).start()

    def close(self) -> None:
        """Let go of the workers; those that were started here end."""
        for future in self._running:
            with suppress(Exception):
                future.cancel()
        with suppress(Exception):
            self._client.close(timeout=SECONDS / 6)
        self._close_cluster()

    def _close_cluster(self) -> None:
        """End the processes that were started here; undo what nannies did to the environment."""
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=SECONDS / 6)
        for name, value in self._environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _targets(worker: Mapping[str, Any]) -> list[str]:
    """Return the targets that a worker says it has."""
    names = [name for name in worker.get("resources", {}) if name.startswith(RESOURCE)]
    return [name.removeprefix(RESOURCE) for name in names] or [USUAL]


def _has_died(future: Any) -> bool:
    """Tell whether the worker of a job died."""
    return future.status == "error" and type(future.exception()).__name__ == "KilledWorker"


def _outcome(future: Any) -> Outcome:
    """Return the outcome of a job that ended."""
    if future.status != "finished":
        error = future.exception() if future.status == "error" else future.status
        return _lost(f"{type(error).__name__}: {error}")
    try:
        return outcome_of(future.result())
    except (ValueError, TypeError, KeyError) as error:
        return _lost(f"an answer that is none: {error}")


def _lost(reason: str) -> Outcome:
    return Outcome(with_reason(FAIL_TO_GET_RESULT, reason))
