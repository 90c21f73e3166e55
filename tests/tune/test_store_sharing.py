"""One store for threads, forks and processes; records that wait for a file; rows for pandas."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from tests.tune.test_tuning_store import KEY, PLAN, record


def test_threads_share_a_store(tmp_path: Path) -> None:
    with tp.TuningStore(tmp_path / "a") as store:
        faults: list[BaseException] = []

        def write(first: int) -> None:
            try:
                for n in range(10):
                    store.add(replace(record(), when=float(first + n)))
                    assert store.best(KEY) is not None
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=write, args=(10 * n,)) for n in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not faults
        assert len(store) == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_opens_the_file_itself(tmp_path: Path) -> None:
    with tp.TuningStore(tmp_path / "a") as store:
        store.add(record())
        child = os.fork()
        if not child:
            status = 1
            try:
                store.add(record(2e-3))
                status = int(len(store) != 2)
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0
        store.add(record(3e-3))
        assert len(store) == 3
        with store._file.read() as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_records_wait_for_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    store = tp.TuningStore(path, timeout=0.05, required=False)
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    with pytest.warns(TuningStoreWarning, match="2 records are not written yet"):
        assert store.add(record(), record(2e-3)) == 0
    assert [each.seconds for each in store.unsaved] == [1e-3, 2e-3]
    held.execute("ROLLBACK")
    held.close()
    store.close()  # which writes them
    with tp.TuningStore(path) as after:
        assert len(after) == 2


def test_records_of_other_threads_wait_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread writes, a second has written the same too, and a third could not write."""
    store = tp.TuningStore(required=False)
    write = store._write

    def fail(_: object) -> int:
        raise tp.TuningStoreError("no room")

    def meanwhile(records: Iterable[tp.TuningRecord]) -> int:
        monkeypatch.setattr(store, "_write", write)
        store.add(record(2e-3))
        monkeypatch.setattr(store, "_write", fail)
        with pytest.warns(TuningStoreWarning):
            store.add(record(3e-3))
        return write(records)

    monkeypatch.setattr(store, "_write", meanwhile)
    store.add(record(1e-3))
    assert sorted(each.seconds or 0 for each in store.records(all=True)) == [1e-3, 2e-3]
    assert [each.seconds for each in store.unsaved] == [3e-3]


def test_rows_of_pandas() -> None:
    pytest.importorskip("pandas")
    with tp.TuningStore() as store:
        store.add(record(), replace(record(2e-3), result="wrong", note="differs"))
        frame = store.to_pandas()
    assert list(frame["result"]) == ["ok", "wrong"]
    assert set(frame["processor"]) == {KEY.target.processor}
    assert frame["plan"][0] == PLAN


def test_the_summary_of_an_operand_is_found_once_for_its_arrays() -> None:
    A = sp.random_array((50, 40), density=0.2, format="csr", rng=np.random.default_rng(0))
    with tp.TuningStore() as store:
        first = store.key("y[i] = A[i,j] * x[j]", A=A, x=np.ones(40))
        A.indptr[1:] = A.nnz  # all entries in one row: written in place, and noticed
        A.indices[:] = 0
        again = store.key("y[i] = A[i,j] * x[j]", A=A, x=np.ones(40))
        fresh = store.key("y[i] = A[i,j] * x[j]", A=A.copy(), x=np.ones(40))
    assert first != again
    assert again == fresh


def test_the_nearest_of_many_keys_is_found() -> None:
    rng = np.random.default_rng(0)
    keys = [
        replace(KEY, buckets=tuple(int(n) for n in np.array(KEY.buckets) + move))
        for move in rng.integers(-2, 3, (60, len(KEY.buckets)))
    ]
    with tp.TuningStore() as store:
        store.add(*(replace(record(1e-3 * (n + 1)), key=key) for n, key in enumerate(keys)))
        for each in (KEY, replace(KEY, buckets=(KEY.buckets[0] + 3, *KEY.buckets[1:]))):
            apart = [
                sum(abs(a - b) for a, b in zip(k.buckets, each.buckets, strict=True)) for k in keys
            ]
            found = store.best(each, far=50)
            assert found is not None
            assert found.match.startswith(f"nearest bucket, distance {min(apart)}:")
            fastest = 1e-3 * (1 + apart.index(min(apart)))
            assert found.record.seconds == pytest.approx(fastest)
