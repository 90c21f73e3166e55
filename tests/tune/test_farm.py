"""Farms: codes of errors, interrupts, batches, workers of Dask, and what survives a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep, time
from types import SimpleNamespace
from typing import Any

import pytest

import taco_py as tp
from taco_py.tool.cli import main
from taco_py.tuning.jobs import tuning_farm
from taco_py.tuning.jobs.farm_status import label_of
from taco_py.tuning.jobs.tuning_farm import queue
from taco_py.tuning.jobs.workers import OwnProcess
from taco_py.tuning.store.job_journal import (
    FAIL_TO_CREATE_TASK,
    FAIL_TO_GET_RESULT,
    FAIL_TO_LOAD_WORKLOAD,
    FINISHED,
    NO_VALID_RESULT,
    NORMAL,
    STORAGE_ERROR,
    TUNING,
    WAITING,
)
from taco_py.tuning.tasks.tuning_task import TuningTask
from tests.tune.farm_drill import check, killed_and_resumed
from tests.tune.farm_jobs import interrupted, quick, troubled

VECTOR = {"shape": [40]}


def task(name: str, **options: Any) -> TuningTask:
    return tp.tuning.task("y[i] = 2 * x[i]", {"x": VECTOR}, name=name, **options)


def tasks(count: int) -> list[TuningTask]:
    return [task(f"task {n}", seed=n) for n in range(count)]


def codes(store: tp.TuningStore) -> dict[str, str]:
    return {json.loads(job.workload)["name"]: job.code for job in store.journal.jobs()}


# ---------------------------------------------------------------- in this process


def test_errors_have_their_codes(tmp_path: Path) -> None:
    names = ("good", "refused", "unfit", "fault", "full")
    every = [task(name, seed=n) for n, name in enumerate(names)]
    lost = tp.tuning.task("y[i] = 2 * x[i]", {"x": {"file": "none.tns"}}, name="lost")
    odd = tp.tuning.task("y[i] = x[i+1] * x[i]", {"x": VECTOR}, name="odd")  # beyond x
    with tp.TuningStore() as store:
        report = tp.tuning.farm(
            [*every, lost, odd], store, workers=0, tune=troubled, progress=False, attempts=2
        )
        assert codes(store) == {
            "good": NORMAL, "refused": NO_VALID_RESULT, "unfit": FAIL_TO_CREATE_TASK,
            "fault": NO_VALID_RESULT, "full": STORAGE_ERROR, "lost": FAIL_TO_LOAD_WORKLOAD,
            "odd": FAIL_TO_CREATE_TASK,
        }  # fmt: skip
        assert (report.queued, report.finished, len(report.failed)) == (7, 7, 6)
        assert {each.attempts for each in store.journal.jobs() if each.code == STORAGE_ERROR} == {2}
        assert "ZeroDivisionError: oh" in str(report)
        again = tp.tuning.farm(every, store, workers=0, tune=quick, progress=False, again="failed")
        assert (again.queued, again.known, len(again.failed)) == (4, 1, 0)
        assert sorted(each.seconds for each in store.records(all=True) if each.seconds) == [
            1, 2, 3, 4, 5
        ]  # fmt: skip


def test_jobs_of_the_journal_are_tuned_again_without_tasks() -> None:
    with tp.TuningStore() as store:
        every = [task("good", seed=0), task("refused", seed=1)]
        options: dict[str, Any] = {"workers": 0, "progress": False}
        tp.tuning.farm(every, store, tune=troubled, **options)
        report = tp.tuning.farm((), store, tune=quick, again="failed", **options)
        assert (report.queued, report.known, report.failed) == (1, 1, ())
        assert tp.tuning.farm((), store, tune=quick, again="all", **options).queued == 2
        assert tp.tuning.farm((), store, tune=quick, **options).queued == 0
        store.journal.add([task("far").job("c@pi")])
        assert queue(store, (), ("c",), "all") == 2
        assert queue(store, (), ("c@pi",), "all") == 0  # it waits already
        assert {job.state for job in store.journal.jobs()} == {WAITING}


def test_an_interrupt_lets_the_task_wait(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with tp.TuningStore(tmp_path / "a") as store:
        with pytest.raises(KeyboardInterrupt):
            tp.tuning.farm(tasks(3), store, workers=0, tune=interrupted, progress=False, page=page)
        assert [job.state for job in store.journal.jobs()] == [FINISHED, WAITING, WAITING]
        assert "1 of 3 finished" in page.read_text()
        assert "http-equiv" in page.read_text()
    report = tp.tuning.farm((), tmp_path / "a", workers=0, tune=quick, progress=False, page=page)
    assert (report.queued, report.finished) == (0, 3)
    assert "http-equiv" not in page.read_text()


def test_this_process_renews_its_lease_while_it_tunes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a farm that is killed keeps its job from the next one."""
    monkeypatch.setattr(OwnProcess, "lease", OwnProcess.lease / 300)
    left: list[float] = []

    def slow(*given: Any) -> None:
        (job,) = store.journal.jobs(TUNING)
        left.append(job.lease - time())
        end = monotonic() + 10
        while store.journal.jobs(TUNING)[0].lease <= job.lease and monotonic() < end:
            sleep(0.02)
        left.append(store.journal.jobs(TUNING)[0].lease - job.lease)
        quick(*given)

    with tp.TuningStore() as store:
        assert tp.tuning.farm(tasks(1), store, workers=0, tune=slow, progress=False).finished == 1
    assert left[0] * 300 <= 61, "the next farm waits for longer than a minute"
    assert left[1] > 0, "the lease was not renewed"


def test_a_search_that_is_interrupted_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends quietly; the farm must not take that for a finished task."""
    from taco_py.tuning.jobs import usual_job
    from taco_py.tuning.session.tuning_session import INTERRUPTED

    def search(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(outcome=SimpleNamespace(reason=INTERRUPTED))

    monkeypatch.setattr(usual_job, "tune_text", search)
    with tp.TuningStore() as store:
        with pytest.raises(KeyboardInterrupt):
            tp.tuning.farm(tasks(1), store, workers=0, progress=False)
        assert store.journal.unfinished == 1


def test_trials_that_the_store_does_not_take_are_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taco_py.tuning.jobs import farm_loop

    monkeypatch.setattr(farm_loop, "PATIENCE", 0.0)

    def full(task: TuningTask, operands: Mapping[str, Any], target: str, store: Any) -> None:
        quick(task, operands, target, store)
        with home._file.read() as connection:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
        key = store.key(task.text, operands)
        store.add(tp.TuningRecord(key, "p" * 10**5, "long", result="refused"))
        raise KeyboardInterrupt

    def ended(*_: Any) -> bool:
        original(*_)
        raise KeyboardInterrupt

    original = farm_loop.FarmLoop._write_again
    monkeypatch.setattr(farm_loop.FarmLoop, "_write_again", ended)
    with tp.TuningStore(tmp_path / "a") as home:

        def fill(*given: Any) -> None:
            with pytest.raises(KeyboardInterrupt):
                full(*given)

        with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="2 trials"):
            tp.tuning.farm(tasks(1), home, workers=0, tune=fill, progress=False)
        (log,) = tmp_path.glob("*.unwritten.jsonl")
        assert len(home.journal.jobs(TUNING)) == 1  # until its lease runs out, or --resume
        with home._file.read() as connection:
            connection.execute("PRAGMA max_page_count = 100000")
        assert home.load(log) == 2


def test_arguments_are_checked() -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {"workers": -1}, {"workers": {"gpu": 1}}, {"targets": ("c@",)}, {"again": "some"},
        {"limit": 0}, {"attempts": 0},
    )  # fmt: skip
    with tp.TuningStore() as store:
        for each in wrong:
            with pytest.raises(tp.OperandTypeError, match="Expected"):
                tp.tuning.farm(tasks(1), store, **each)
        with pytest.raises(tp.OperandTypeError, match="Expected tuning tasks"):
            tp.tuning.farm(["y"], store)  # type: ignore[list-item]
        assert not store.journal.jobs()


# ---------------------------------------------------------------- batches


def test_a_batch_goes_out_and_comes_back(tmp_path: Path) -> None:
    batch, log = tmp_path / "jobs.jsonl", tmp_path / "log.jsonl"
    with tp.TuningStore(tmp_path / "a") as store:
        store.journal.add(each.job("c@pi") for each in tasks(3))
        assert tp.tuning.write_batch(store, batch, "c@pi") == 3
        assert tp.tuning.write_batch(store, batch, "c@pi") == 0
        batch.write_text("".join(batch.read_text().splitlines(keepends=True)[:2]))
        assert tp.tuning.write_batch(store, batch, "c@pi") == 1  # what was claimed and lost
        assert tp.tuning.run_batch(batch, log, quick) == 3
        assert tp.tuning.run_batch(batch, log, quick) == 0
        log.write_text(log.read_text()[:-9])  # cut off, as by a full disk
        assert tp.tuning.run_batch(batch, log, quick) == 1
        assert tp.tuning.read_batch(store, log) == (3, 0)
        assert tp.tuning.read_batch(store, log) == (0, 3)
        assert len(store) == 3
        assert {job.state for job in store.journal.jobs()} == {FINISHED}
        log.write_text("{}\n" + log.read_text())
        with pytest.raises(tp.FileFormatError, match="line 1"):
            tp.tuning.read_batch(store, log)


def test_files_that_are_no_batches_stay_as_they_are(tmp_path: Path) -> None:
    """Nor is their last line one that was cut off."""
    batch, notes = tmp_path / "jobs.jsonl", tmp_path / "notes"
    batch.touch()
    notes.write_text("my notes")
    for jobs, log in ((notes, batch), (batch, notes)):
        with pytest.raises(tp.FileFormatError, match=r"line 1 of .+, found 'my notes'"):
            tp.tuning.run_batch(jobs, log)
    assert notes.read_text() == "my notes"


def test_a_farm_waits_for_the_log_of_a_batch(tmp_path: Path) -> None:
    folder = tmp_path / "pi"
    folder.mkdir()

    def both(task: TuningTask, operands: Mapping[str, Any], target: str, store: Any) -> None:
        quick(task, operands, target, store)
        if (folder / "jobs.jsonl").exists():  # as if somebody had carried it over
            tp.tuning.run_batch(folder / "jobs.jsonl", folder / "log.jsonl", quick)

    with tp.TuningStore() as store:
        report = tp.tuning.farm(
            tasks(2), store, workers=0, targets=("c", "c@pi"), batches={"c@pi": folder},
            tune=both, progress=False,
        )  # fmt: skip
        assert (report.finished, report.failed) == (4, ())
        assert len(store.journal.last_finished(9)) == 4


# ---------------------------------------------------------------- the command line


def test_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from taco_py.tuning.jobs import usual_job

    def search(text: str, operands: Any, options: Any, search: Any, store: Any) -> Any:
        assert (search.trials, search.seconds, options["threads"]) == (1, 5.0, 1)
        quick(tasks(1)[0], operands, options["target"], store)
        return SimpleNamespace(outcome=SimpleNamespace(reason=""))

    monkeypatch.setattr(usual_job, "tune_text", search)
    file, store = tmp_path / "t.toml", str(tmp_path / "a.sqlite")
    batch, log = str(tmp_path / "jobs"), str(tmp_path / "log")
    tp.tuning.write_tasks(file, [task("small", trials=1, seconds=5.0, threads=1)])
    told = (
        ((str(file), "--store", store, "--workers", "0", "--quiet"), 0, "1 of 1 finished"),
        (("--store", store, "--status"), 0, "[##############################] 1 of 1 finished"),
        (
            (str(file), "--store", store, "--target", "c@pi", "--batch", batch), 0,
            "1 jobs written",
        ),
        (("--run-batch", batch, "--log", log), 0, "1 of 1 done"),
        (("--store", store, "--read-log", log), 0, "1 jobs taken"),
        (("--store", store, "--workers", "0", "--quiet"), 0, "2 of 2 finished"),
    )  # fmt: skip
    for words, status, text in told:
        assert main(["tune", *words]) == status, words
        assert text in capsys.readouterr().out
    wrong = (
        ((str(file),), "--store"),
        (("--store", store, "--workers", "x"), "--workers 2 or"),
        (("--store", str(tmp_path / "none"), "--status"), "No such file"),
        (("--store", str(tmp_path / "none")), "found neither"),
        (("--run-batch", batch), "--log"),
        ((str(tmp_path / "none.toml"), "--store", store), "none.toml"),
    )
    for words, text in wrong:
        assert main(["tune", *words]) == 2, words
        assert text in capsys.readouterr().err


def test_nothing_is_started_where_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("workers were started")

    monkeypatch.setattr(tuning_farm, "DaskWorkers", refuse)
    with tp.TuningStore() as store:
        tp.tuning.farm(tasks(2), store, workers=0, tune=quick, progress=False)
        report = tp.tuning.farm(tasks(2), store, workers=2, tune=quick, progress=False)
        assert (report.queued, report.finished) == (0, 2)
        with pytest.raises(AssertionError, match="workers were started"):
            tp.tuning.farm(tasks(3), store, workers=2, tune=quick, progress=False)


# ---------------------------------------------------------------- Dask


def thread_limits() -> dict[str, str]:
    """Return the variables of this process that limit the threads of libraries."""
    return {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}


def test_workers_that_crash_and_hang_are_started_again(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    every = [*tasks(1), task("crash", trials=1), task("hang", trials=2)]
    limits = thread_limits()
    with tp.TuningStore(tmp_path / "a") as store:
        report = tp.tuning.farm(
            every, store, workers={"c": 1, "cuda-emulated": 1}, targets=("c", "cuda-emulated"),
            tune=troubled, progress=False, limit=4.0, attempts=1,
        )  # fmt: skip
        assert report.finished == 6
        failed = {label_of(job)[9:]: job.error for job in report.status.failed}
        assert set(failed) == {"crash on c", "hang on cuda-emulated"}, failed
        assert failed["crash on c"].startswith(FAIL_TO_GET_RESULT)
        assert failed["hang on cuda-emulated"].startswith(f"{FAIL_TO_GET_RESULT}: no result within")
        kinds = sorted(each.label for each in store.records(all=True))
        assert kinds == ["c", "c", "cuda-emulated", "cuda-emulated"]
    assert thread_limits() == limits  # nannies limit the threads of their own process


def test_workers_of_a_scheduler() -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://",
        dashboard_address=None,
    )  # fmt: skip
    with cluster, tp.TuningStore() as store:
        address = cluster.scheduler_address
        asked = {"scheduler": address, "tune": quick, "progress": False}
        report = tp.tuning.farm(tasks(3), store, targets=("c", "cuda@lab"), **asked)
        assert (report.finished, report.failed, report.waiting) == (3, (), ("cuda@lab",))
        assert '--resources "tacopy-cuda@lab=1"' in str(report)
        assert len(cluster.workers) == 1  # which the farm did not start, and does not end
        assert tp.tuning.farm(tasks(4), store, **asked).queued == 1


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from taco_py.tuning.jobs import dask_workers

    monkeypatch.setattr(dask_workers, "SECONDS", 0.3)
    with tp.TuningStore() as store:
        with pytest.raises(tp.FarmError, match="Expected a scheduler"):
            tp.tuning.farm(tasks(1), store, scheduler="tcp://127.0.0.1:9", progress=False)
        assert store.journal.unfinished == 1


def test_a_killed_worker_and_a_killed_farm_lose_nothing(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    tp.tuning.write_tasks(tmp_path / "t.toml", tasks(8))
    command = ("tests.tune.farm_jobs",)  # taco-py with tasks that take no compiler
    check(killed_and_resumed(tmp_path / "t.toml", tmp_path / "a.sqlite", 2, 4, command), 8)
