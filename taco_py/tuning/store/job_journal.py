"""The journal of tuning jobs: every change of a job's state is a row, written with the change.

    WAITING ──claim──► TUNING ──finish──► FINISHED        with an error code, "NORMAL" of success
       ▲                  │
       └───── give back, lease ran out, taken over ◄──────┘

Each `claim` raises the job's number of attempts; only who has the newest attempt may end it, so
that a job finishes once however many workers still work at it. (The job states of Lorien, Yu et al.
2021, section 3.3; leases and attempts are ours.)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from codegen.records import dataclass
from taco_py.tuning.store.store_schema import DamagedRowError

WAITING, TUNING, FINISHED = "WAITING", "TUNING", "FINISHED"
STATES = (WAITING, TUNING, FINISHED)
NORMAL = "NORMAL"
NO_VALID_RESULT = "NO_VALID_RESULT"
FAIL_TO_SUBMIT = "FAIL_TO_SUBMIT"
FAIL_TO_LOAD_WORKLOAD = "FAIL_TO_LOAD_WORKLOAD"
FAIL_TO_CREATE_TASK = "FAIL_TO_CREATE_TASK"
FAIL_TO_GET_RESULT = "FAIL_TO_GET_RESULT"
STORAGE_ERROR = "STORAGE_ERROR"
ERRORS = (
    NORMAL, NO_VALID_RESULT, FAIL_TO_SUBMIT, FAIL_TO_LOAD_WORKLOAD, FAIL_TO_CREATE_TASK,
    FAIL_TO_GET_RESULT, STORAGE_ERROR,
)  # fmt: skip
"""How a job, or an attempt at it, ended; a reason may stand behind a colon."""
MOST_ATTEMPTS = 3
"""Attempts that may fail before a job is finished with the error of the last."""
COLUMNS = "hash, workload, options, state, error, worker, attempts, lease, place"


@dataclass(frozen=True, slots=True)
class Job:
    """A task in the journal.

    hash      of workload and options, the same in every process
    workload  the task as JSON
    options   how it is tuned and on which target, as JSON
    attempts  how often it was claimed; the number of the newest claim
    lease     seconds since 1970 until which the claim holds
    place     in the order in which jobs wait
    """

    hash: str
    workload: str
    options: str
    state: str = WAITING
    error: str = ""
    worker: str = ""
    attempts: int = 0
    lease: float = 0.0
    place: int = 0

    @property
    def code(self) -> str:
        """Return the error code without its reason."""
        return code_of(self.error)


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of a job's state: when, from what to what, why, and for which worker."""

    job: str
    when: float
    before: str
    after: str
    error: str
    worker: str


def code_of(error: str) -> str:
    """Return the code of an error with a reason: "STORAGE_ERROR: no room" → "STORAGE_ERROR"."""
    return error.partition(":")[0]


def with_reason(code: str, reason: object = "") -> str:
    """Return an error code with its reason, in one line."""
    words = " ".join(str(reason).split())
    return f"{code}: {words[:400]}" if words else code


# ---------------------------------------------------------------- changes


def add_jobs(
    connection: sqlite3.Connection, jobs: Iterable[Job], codes: Collection[str], when: float
) -> int:
    """Let jobs wait that the journal has not; how many wait now that did not before.

    codes  of finished jobs that wait anew
    """
    (place,) = connection.execute("SELECT coalesce(max(place), 0) FROM jobs").fetchone()
    count = 0
    for job in jobs:
        existing = find_job(connection, job.hash)
        if existing is None:
            place += 1
            connection.execute(
                f"INSERT INTO jobs ({COLUMNS}) VALUES (?, ?, ?, ?, '', '', 0, 0, ?)",
                (job.hash, job.workload, job.options, WAITING, place),
            )
            _note(connection, Transition(job.hash, when, "", WAITING, "", ""))
        elif existing.state == FINISHED and existing.code in codes:
            _change(connection, existing, WAITING, "", "", when)
        else:
            continue
        count += 1
    return count


def claim(
    connection: sqlite3.Connection,
    target: str,
    worker: str,
    when: float,
    until: float,
    hashes: Collection[str] = (),
) -> Job | None:
    """Give the first job that waits for a target to a worker, until a time; None where none waits.

    hashes  of the jobs that may be given, all where none is named
    """
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM jobs WHERE state = ? AND json_extract(options, '$.target') = ? "
        "ORDER BY place",
        (WAITING, target),
    )
    job = next((job_of(row) for row in rows if not hashes or row[0] in hashes), None)
    if job is None:
        return None
    _change(connection, job, TUNING, "", worker, when, job.attempts + 1, until)
    return find_job(connection, job.hash)


def renew(connection: sqlite3.Connection, claims: Mapping[str, int], until: float) -> set[str]:
    """Let claims, attempts by hash, hold longer; the hashes of those that no longer hold."""
    lost = set()
    for hash, attempt in claims.items():
        cursor = connection.execute(
            "UPDATE jobs SET lease = ? WHERE hash = ? AND attempts = ? AND state = ?",
            (until, hash, attempt, TUNING),
        )
        if not cursor.rowcount:
            lost.add(hash)
    return lost


def finish(
    connection: sqlite3.Connection, hash: str, attempt: int, error: str, worker: str, when: float
) -> bool:
    """End a job, and say whether this attempt could: False of one that is finished, or is another
    attempt's by now."""
    job = _claimed_job(connection, hash, attempt)
    if job is None:
        return False
    _change(connection, job, FINISHED, error, worker, when)
    return True


def give_back(
    connection: sqlite3.Connection,
    hash: str,
    attempt: int,
    error: str,
    worker: str,
    when: float,
    most: int = MOST_ATTEMPTS,
) -> str:
    """Let a job wait again, or finish it with the error once so many attempts have failed.

    Its state, "" where another attempt has it by now. Attempts without an error do not count.
    """
    job = _claimed_job(connection, hash, attempt)
    if job is None:
        return ""
    failed = code_of(error) not in ("", NORMAL)
    last = failed and failures(connection, hash) + 1 >= most
    after = FINISHED if last else WAITING
    _change(connection, job, after, error, worker, when)
    return after


def expire(connection: sqlite3.Connection, when: float, most: int = MOST_ATTEMPTS) -> list[str]:
    """Give back the jobs whose leases ran out; their hashes."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM jobs WHERE state = ? AND lease < ?", (TUNING, when)
    ).fetchall()
    for job in (job_of(row) for row in rows):
        error = with_reason(FAIL_TO_GET_RESULT, f"nothing was heard of {job.worker}")
        give_back(connection, job.hash, job.attempts, error, job.worker, when, most)
    return [row[0] for row in rows]


def take_over(connection: sqlite3.Connection, prefix: str, when: float) -> int:
    """Let all jobs wait again that workers with a prefix have; how many. It counts as no failure.

    It is for a master that is known to be gone: its leases need not run out then.
    """
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM jobs WHERE state = ? AND substr(worker, 1, ?) = ?",
        (TUNING, len(prefix), prefix),
    ).fetchall()
    for job in (job_of(row) for row in rows):
        error = with_reason(NORMAL, f"taken over from {job.worker}")
        give_back(connection, job.hash, job.attempts, error, job.worker, when)
    return len(rows)


def failures(connection: sqlite3.Connection, hash: str) -> int:
    """Return attempts that failed since the job was queued last."""
    (count,) = connection.execute(
        "SELECT count(*) FROM transitions WHERE job = ?1 AND before = 'TUNING' AND after = "
        "'WAITING' AND error <> '' AND error NOT LIKE 'NORMAL%' AND id > (SELECT max(id) FROM "
        "transitions WHERE job = ?1 AND before IN ('', 'FINISHED'))",
        (hash,),
    ).fetchone()
    return int(count)


def _claimed_job(connection: sqlite3.Connection, hash: str, attempt: int) -> Job | None:
    """Return the job, where this attempt has it."""
    job = find_job(connection, hash)
    is_claimed = job is not None and job.state == TUNING and job.attempts == attempt
    return job if is_claimed else None


def _change(
    connection: sqlite3.Connection,
    job: Job,
    after: str,
    error: str,
    worker: str,
    when: float,
    attempts: int | None = None,
    until: float = 0.0,
) -> None:
    """Change a job's state and note it."""
    connection.execute(
        "UPDATE jobs SET state = ?, error = ?, worker = ?, attempts = ?, lease = ? WHERE hash = ?",
        (after, error, worker, job.attempts if attempts is None else attempts, until, job.hash),
    )
    _note(connection, Transition(job.hash, when, job.state, after, error, worker))


def _note(connection: sqlite3.Connection, change: Transition) -> None:
    connection.execute(
        "INSERT INTO transitions (job, made, before, after, error, worker) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (change.job, change.when, change.before, change.after, change.error, change.worker),
    )


# ---------------------------------------------------------------- what is there


def job_of(row: tuple[Any, ...]) -> Job:
    """Return the job of a row of `COLUMNS`. Raises DamagedRowError for what others wrote."""
    job = Job(*row)
    texts = job.hash, job.workload, job.options, job.state, job.error, job.worker
    numbers = isinstance(job.attempts, int) and isinstance(job.lease, int | float)
    if not numbers or not all(isinstance(text, str) for text in texts):
        raise DamagedRowError(f"a row that is no job: {row!r:.80}")
    return job


def find_job(connection: sqlite3.Connection, hash: str) -> Job | None:
    """Return the job with a hash."""
    row = connection.execute(f"SELECT {COLUMNS} FROM jobs WHERE hash = ?", (hash,)).fetchone()
    return None if row is None else job_of(row)


def jobs_of(connection: sqlite3.Connection, state: str | None = None) -> Iterator[Job]:
    """Yield all jobs, or those in a state, in the order in which they were queued."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM jobs WHERE ?1 IS NULL OR state = ?1 ORDER BY place", (state,)
    )
    yield from (job_of(row) for row in rows)


def transitions_of(connection: sqlite3.Connection, hash: str | None) -> Iterator[Transition]:
    """Yield all changes, or the changes of a job, the oldest first."""
    rows = connection.execute(
        "SELECT job, made, before, after, error, worker FROM transitions "
        "WHERE ?1 IS NULL OR job = ?1 ORDER BY id",
        (hash,),
    )
    yield from (Transition(*row) for row in rows)


def last_finished(connection: sqlite3.Connection, count: int) -> list[Transition]:
    """Return the last changes to FINISHED, the oldest first."""
    rows = connection.execute(
        "SELECT job, made, before, after, error, worker FROM transitions "
        "WHERE after = ? ORDER BY id DESC LIMIT ?",
        (FINISHED, count),
    )
    return [Transition(*row) for row in rows][::-1]


def counts_of(connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Count how many jobs there are in each state with each error code."""
    counts: dict[tuple[str, str], int] = {}
    rows: Iterable[Any] = connection.execute("SELECT state, error FROM jobs")
    for state, error in rows:
        kind = (state, code_of(error) if state == FINISHED else "")
        counts[kind] = counts.get(kind, 0) + 1
    return counts
