"""What a worker process on this machine does before it takes a job, so that no job waits for it."""

from __future__ import annotations

import signal
from typing import Any

from taco_py.tuning.jobs.usual_job import tune_task

__all__ = ["dask_setup", "tune_task"]


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C to the farm, which lets jobs wait again and then ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
