"""The journal of jobs: states, leases, attempts, and that a job finishes once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import taco_py as tp
from taco_py.tuning.store.job_journal import (
    FAIL_TO_GET_RESULT,
    FINISHED,
    NO_VALID_RESULT,
    NORMAL,
    TUNING,
    WAITING,
    Job,
)
from taco_py.tuning.store.journal import Journal
from tests.tune.test_tuning_store import record


def jobs(count: int, target: str = "c") -> list[Job]:
    return [Job(f"{target}{n}", "{}", f'{{"target": "{target}"}}') for n in range(count)]


def states(journal: Journal, job: str) -> list[str]:
    return [each.after for each in journal.transitions(job)]


def test_a_job_waits_is_tuned_and_finished() -> None:
    with tp.TuningStore() as store:
        journal = store.journal
        assert journal.add(jobs(2)) == 2
        assert journal.add(jobs(3)) == 1  # those of a hash that is known are
        assert journal.claim("cuda", "w", 60) is None
        job = journal.claim("c", "w", 60)
        assert job is not None
        assert (job.hash, job.state, job.attempts, job.worker) == ("c0", TUNING, 1, "w")
        assert journal.finish(job, [record()], NORMAL)
        assert len(store) == 1
        assert states(journal, "c0") == [WAITING, TUNING, FINISHED]
        assert journal.counts() == {(WAITING, ""): 2, (FINISHED, NORMAL): 1}
        assert journal.unfinished == 2


def test_a_late_duplicate_is_refused_with_its_trials() -> None:
    with tp.TuningStore() as store:
        journal = store.journal
        journal.add(jobs(1))
        first = journal.claim("c", "slow", -1)  # whose lease is over
        second = journal.claim("c", "quick", 60)
        assert first is not None
        assert second is not None
        assert second.attempts == 2
        assert not journal.finish(first, [record()], NORMAL)
        assert journal.finish(second, [record(2e-3)], NORMAL)
        assert not journal.finish(second, [record(3e-3)], NORMAL)
        assert [each.seconds for each in store.records(all=True)] == [2e-3]
        assert states(journal, "c0").count(FINISHED) == 1


def test_what_fails_to_be_written_is_not_finished(tmp_path: Path) -> None:
    with tp.TuningStore(tmp_path / "a") as store:
        store.journal.add(jobs(1))
        job = store.journal.claim("c", "w", 60)
        assert job is not None
        with store._file.read() as connection:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(tp.TuningStoreError, match="no room"):
            store.journal.finish(job, [record(), record(plan="p" * 10**5)], NORMAL)
        assert store.journal.jobs(TUNING) == (job,)
        assert len(store) == 0


def test_attempts_end_with_the_last_error() -> None:
    with tp.TuningStore() as store:
        journal = store.journal.allowing(2)
        journal.add(jobs(1))
        job = journal.claim("c", "w", 60)
        assert job is not None
        assert journal.give_back(job, "NORMAL: interrupted") == WAITING  # is no failure
        for after in (WAITING, FINISHED):
            job = journal.claim("c", "w", 60)
            assert job is not None
            assert journal.give_back(job, f"{FAIL_TO_GET_RESULT}: gone") == after
        assert journal.give_back(job, FAIL_TO_GET_RESULT) == ""
        (job,) = journal.jobs()
        assert (job.code, job.error) == (FAIL_TO_GET_RESULT, f"{FAIL_TO_GET_RESULT}: gone")
        assert journal.add(jobs(1)) == 0
        assert journal.add(jobs(1), codes=(NO_VALID_RESULT,)) == 0
        assert journal.add(jobs(1), codes=(FAIL_TO_GET_RESULT,)) == 1
        job = journal.claim("c", "w", 60)
        assert job is not None
        assert journal.give_back(job, FAIL_TO_GET_RESULT) == WAITING  # failures count anew


def test_leases_run_out_unless_they_are_renewed() -> None:
    with tp.TuningStore() as store:
        journal = store.journal
        journal.add(jobs(2))
        held, left = journal.claim("c", "a", -1), None
        assert held is not None
        assert journal.renew({held.hash: held.attempts, "c1": 1}, 60) == {"c1"}
        left = journal.claim("c", "a", -1)
        assert left is not None
        assert left.hash == "c1"
        again = journal.claim("c", "b", 60)
        assert again is not None
        assert (again.hash, again.attempts) == ("c1", 2)
        assert journal.claim("c", "b", 60) is None
        assert journal.take_over("a") == 1  # of a worker whose name begins so
        assert [job.state for job in journal.jobs()] == [WAITING, TUNING]


def test_a_job_goes_to_one_of_many_that_ask(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with tp.TuningStore(path) as store:
        store.journal.add(jobs(20))
    taken: list[str] = []

    def take() -> None:
        with tp.TuningStore(path) as own:
            while (job := own.journal.claim("c", "w", 60)) is not None:
                taken.append(job.hash)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(taken) == sorted(job.hash for job in jobs(20))
