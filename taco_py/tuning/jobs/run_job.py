"""What a worker does with a job: operands made of their descriptions, tuned, trials handed back.

A worker has no access to the store: it writes into one in memory, and who handed the job out writes
the trials, so that workers may be on other machines.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import (
    CompilerError,
    DeviceError,
    InternalError,
    MissingExtraError,
    OutOfMemoryError,
    TacoError,
    TuningStoreError,
)
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.store.job_journal import (
    ERRORS,
    FAIL_TO_CREATE_TASK,
    FAIL_TO_LOAD_WORKLOAD,
    NO_VALID_RESULT,
    NORMAL,
    STORAGE_ERROR,
    code_of,
    with_reason,
)
from taco_py.tuning.store.tuning_record import OK, TuningRecord, as_json, from_json
from taco_py.tuning.tasks.tuning_task import TuningTask, options_of, plain_options, task_of

TuneTask = Callable[[TuningTask, Mapping[str, Any], str, TuningStore], Any]
"""Tunes a task, of which operands are made, for a kind of target, into a store."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job.

    error    a code, with a reason behind a colon
    records  its trials
    worker   the process that ran it: "host:pid"
    """

    error: str
    records: tuple[TuningRecord, ...] = ()
    seconds: float = 0.0
    worker: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as numbers and texts."""
        records = [as_json(record) for record in self.records]
        return {
            "error": self.error, "records": records, "seconds": self.seconds, "worker": self.worker
        }  # fmt: skip


def outcome_of(fields: Any) -> Outcome:
    """Return the outcome that `as_json` encoded. Raises ValueError, TypeError or KeyError."""
    error, worker = fields["error"], fields["worker"]
    if not isinstance(error, str) or code_of(error) not in ERRORS:
        raise ValueError(f"Expected one of {', '.join(ERRORS)}, found {error!r}")
    records = tuple(map(from_json, fields["records"]))
    return Outcome(error, records, float(fields["seconds"]), str(worker))


def process_name() -> str:
    """Return the name of this process in journals: "host:pid"."""
    return f"{socket.gethostname()}:{os.getpid()}"


def run_job(workload: str, options: str, tune: TuneTask, folder: str = "") -> dict[str, Any]:
    """Do a job, and return its outcome as JSON has it; whatever goes wrong is an error code.

    folder  in which files of tasks are looked for
    """
    start = perf_counter()
    with TuningStore() as store:
        try:
            error = _run_task(workload, options, tune, Path(folder or "."), store)
        except TuningStoreError as fault:
            error = with_reason(STORAGE_ERROR, fault)
        records = tuple(store.records(all=True))
    return Outcome(error, records, perf_counter() - start, process_name()).as_json()


def _run_task(workload: str, text: str, tune: TuneTask, folder: Path, store: TuningStore) -> str:
    """Tune into a store; the error code."""
    try:
        options = json.loads(text)
        if not isinstance(options, dict) or not isinstance(options.get("target"), str):
            raise ValueError(f"Expected options with a target, found {text[:60]}")
        target = options.pop("target")
        task = task_of(json.loads(workload))
        task = TuningTask(task.text, task.operands, options_of(options, ("options",)), task.name)
        operands = task.make_operands(folder)
    except (TacoError, OSError, ValueError, KeyError, MemoryError, RecursionError) as error:
        return with_reason(FAIL_TO_LOAD_WORKLOAD, error)
    kind = target.partition("@")[0]
    try:
        key = plain_options(task.call_options)
        store.key(task.text, operands, target=kind, **key)
    except InternalError as error:
        return with_reason(NO_VALID_RESULT, f"a fault of tacopy: {error}")
    except TacoError as error:
        return with_reason(FAIL_TO_CREATE_TASK, error)
    return _tuned(task, operands, kind, tune, store)


def _tuned(
    task: TuningTask, operands: Mapping[str, Any], kind: str, tune: TuneTask, store: TuningStore
) -> str:
    """Tune; the error code."""
    try:
        tune(task, operands, kind, store)
    except TuningStoreError:
        raise
    except (CompilerError, DeviceError, MissingExtraError, OutOfMemoryError) as error:
        return with_reason(NO_VALID_RESULT, error)
    except InternalError as error:
        return with_reason(NO_VALID_RESULT, f"a fault of tacopy: {error}")
    except TacoError as error:
        return with_reason(FAIL_TO_CREATE_TASK, error)
    except Exception as error:
        description = f"{type(error).__name__}: {error}"
        return with_reason(NO_VALID_RESULT, f"a fault of what tunes: {description}")
    records = tuple(store.records(all=True))
    if any(record.result == OK for record in records):
        return with_reason(NORMAL, f"{len(records)} trials")
    notes = [f"{record.result} {record.note}" for record in records]
    return with_reason(NO_VALID_RESULT, f"{len(notes)} trials, {'; '.join(notes[:3]) or 'none'}")
