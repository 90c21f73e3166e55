"""A farm whose worker, then its master, are killed on the way; and what must be true in the end.

Processes are ended by the numbers that this started, or that the journal wrote down for them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import taco_py as tp
from taco_py.tuning.store.job_journal import (
    FAIL_TO_GET_RESULT,
    FINISHED,
    NORMAL,
    TUNING,
    Transition,
    code_of,
)

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 120.0
TUNE = ("taco_py", "tune")


@dataclass(frozen=True)
class Drill:
    """What was seen.

    worker, master  the processes that were killed
    seconds         of both runs together
    transitions     the whole journal
    trials          rows of the log, and those that finished jobs told of
    """

    worker: int
    master: int
    seconds: float
    transitions: tuple[Transition, ...]
    trials: int
    told: int
    jobs: int


def killed_and_resumed(
    tasks: Path,
    store: Path,
    before_worker: int,
    before_master: int,
    command: tuple[str, ...] = TUNE,
    patience: float = PATIENCE,
) -> Drill:
    """Run a farm of two workers; kill one once so many jobs are finished, and the farm later; then
    go on with --resume to the end.

    command  that takes a file of tasks, --store and --workers, as `taco-py tune` does
    """
    start = time.monotonic()
    running = _started(command, tasks, store)
    try:
        _until(lambda: len(_finished(store)) >= before_worker, running, patience)
        worker = _worker_of(store)
        os.kill(worker, signal.SIGKILL)
        _until(lambda: bool(_lost(store)), running, patience)
        _until(lambda: len(_finished(store)) >= before_master, running, patience)
        _until(lambda: bool(_tuned(store)), running, patience)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    resumed = _started(command, tasks, store, "--resume")
    try:
        assert resumed.wait(patience) == 0
    finally:
        if resumed.poll() is None:
            os.kill(resumed.pid, signal.SIGKILL)
            resumed.wait()
    with tp.TuningStore(store) as opened:
        journal = opened.journal
        told = sum(int(job.error.split()[1]) for job in journal.jobs() if job.code == NORMAL)
        return Drill(
            worker,
            running.pid,
            time.monotonic() - start,
            journal.transitions(),
            len(opened),
            told,
            len(journal.jobs()),
        )


def check(drill: Drill, count: int) -> None:
    """Each job was queued once and finished once; each trial that was told of is in the log."""
    last = [each for each in drill.transitions if each.after == FINISHED]
    ends = Counter(each.job for each in last)
    assert drill.jobs == len(ends) == count
    assert set(ends.values()) == {1}
    assert {code_of(each.error) for each in last} == {NORMAL}
    assert drill.trials == drill.told > 0
    lost = [each for each in drill.transitions if each.error.startswith(FAIL_TO_GET_RESULT)]
    assert lost
    assert {each.after for each in lost} == {"WAITING"}
    taken = [each for each in drill.transitions if "taken over" in each.error]
    assert 1 <= len(taken) <= 2
    _check_order(drill)


def _check_order(drill: Drill) -> None:
    """Each change begins where the one before has ended."""
    states: dict[str, str] = {}
    for each in drill.transitions:
        assert states.get(each.job, "") == each.before
        states[each.job] = each.after


def _started(
    command: tuple[str, ...], tasks: Path, store: Path, *more: str
) -> subprocess.Popen[bytes]:
    words = ("-m", *command, str(tasks), "--store", str(store), "--workers", "2", *more)
    return subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def _until(there: Callable[[], bool], running: subprocess.Popen[bytes], patience: float) -> None:
    end = time.monotonic() + patience
    while not there():
        assert running.poll() is None, running.stderr and running.stderr.read().decode()
        assert time.monotonic() < end
        time.sleep(0.05)


def _finished(store: Path) -> list[Transition]:
    return [each for each in _transitions(store) if each.after == FINISHED]


def _lost(store: Path) -> list[Transition]:
    return [each for each in _transitions(store) if each.error.startswith(FAIL_TO_GET_RESULT)]


def _tuned(store: Path) -> list[str]:
    with tp.TuningStore(store, write=False) as opened:
        return [job.hash for job in opened.journal.jobs(TUNING)]


def _transitions(store: Path) -> tuple[Transition, ...]:
    if not store.exists():
        return ()
    try:
        with tp.TuningStore(store, write=False) as opened:
            return opened.journal.transitions()
    except tp.TuningStoreError:  # it is being made
        return ()


def _worker_of(store: Path) -> int:
    """The process of the worker that finished the last job, which has another one now."""
    return int(_finished(store)[-1].worker.rpartition(":")[2])
