"""The store of tuned plans: keys, look-ups, the log, and files that are none."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.tool.cli import main
from taco_py.tuning.store.look_up import NEAR, SAME
from taco_py.tuning.store.store_schema import APPLICATION, FIRST, NEWEST
from taco_py.tuning.store.tuning_record import TuningKey, TuningRecord, as_json, from_json

A = sp.random_array((100, 80), density=0.1, format="csr", rng=np.random.default_rng(0))
PLAN = "B: ds/float64/int32 of 3 by 3, 3 entries\nreturn B"
ROOT = Path(__file__).parent.parent.parent


def key_of(text: str = "y[i] = A[i,j] * x[j]") -> TuningKey:
    with tp.TuningStore() as store:
        return store.key(text, A=A, x=np.ones(80))


KEY = key_of()


def record(seconds: float = 1e-3, plan: str = PLAN, **more: object) -> TuningRecord:
    return TuningRecord(KEY, plan, "one", seconds, when=5.0, **more)  # type: ignore[arg-type]


def test_names_of_users_do_not_matter_and_all_else_does() -> None:
    store, x = tp.TuningStore(), np.ones(80)
    assert store.key("z[a] = M[a,b] * v[b]", M=A, v=x) == KEY
    others = (
        store.key("y[i] = A[i,j] + x[j]", A=A, x=x),
        store.key("y[i] = A[i,j] * x[j]", A=A.tocsc(), x=x),
        store.key("y[i] = A[i,j] * x[j]", A=A, x=x.astype(np.float32)),
        store.key("y[i] = A[i,j] * x[j]", A=A, x=x, semiring="min_plus"),
        store.key("y[i] = A[i,j] * x[j]", A=A, x=x, static={"j": 80}),
        store.key("y[i] = A[i,j] * x[j]", A=A, x=x, mask=np.ones(100, bool)),
    )
    assert len({each.hash for each in (KEY, *others)}) == 1 + len(others)


def test_a_plan_is_exact_a_hint_or_near() -> None:
    store = tp.TuningStore()
    other = replace(KEY.target, compiler="gcc 99")
    far = replace(KEY.target, processor="another")
    assert store.best(KEY) is None
    store.add(replace(record(), key=replace(KEY, target=far)))
    assert store.best(KEY).match.startswith("hint: other processor another, here ")
    assert store.best(KEY, hints=False) is None
    buckets = (KEY.buckets[0] + 2, *KEY.buckets[1:])
    store.add(replace(record(), key=replace(KEY, buckets=buckets)))
    assert store.best(KEY).match == "nearest bucket, distance 2: size i0 2^9 there, 2^7 here"
    assert store.best(KEY, far=1).match.startswith("hint: other processor")
    store.add(replace(record(), key=replace(KEY, target=other)))
    assert store.best(KEY).match.startswith("hint: other compiler gcc 99, here ")
    store.add(record())
    found = store.best("z[a] = M[a,b] * v[b]", M=A, v=np.ones(80))
    assert found.is_exact
    assert dict(found.renaming) == {"y": "z", "A": "M", "x": "v"}


def test_wrong_plans_are_never_the_best() -> None:
    store, slow = tp.TuningStore(), PLAN + "\n"
    assert store.add(record(), record(2e-3, slow), record()) == 2
    assert store.best(KEY).record.plan == PLAN
    store.add(replace(record(), result="wrong", seconds=None))
    assert store.best(KEY).record.plan == slow
    store.add(record(1e-6))
    assert store.best(KEY).record.plan == slow
    assert [each.result for each in store.records(result="wrong")] == ["wrong"]
    assert store.prune(keep=0) == 1
    assert store.best(KEY) is None


def test_the_time_of_a_trial_decides_not_when_it_came() -> None:
    store = tp.TuningStore()
    store.add(replace(record(), when=200.0))
    store.add(replace(record(), when=100.0, result="slower"))  # of an older log
    assert store.best(KEY).is_exact
    store.add(replace(record(), when=300.0, result="slower"))
    assert store.best(KEY) is None


def test_what_was_never_timed_comes_last() -> None:
    store = tp.TuningStore()
    store.add(replace(record(1e-9), result="expected"))
    other = replace(KEY.target, version="0.0.1")
    store.add(replace(record(1e-9), key=replace(KEY, target=other), result="expected"))
    assert not store.best(KEY).is_timed and store.best(KEY).is_exact
    buckets = (KEY.buckets[0] + 1, *KEY.buckets[1:])
    near = replace(KEY, buckets=buckets)
    store.add(replace(record(1e-9), key=near, result="expected"))
    assert store.best(KEY).is_exact
    store.add(replace(record(), key=near))
    assert store.best(KEY).match.startswith("nearest bucket, distance 1")


def test_plans_that_do_not_parse_are_skipped_and_told() -> None:
    store = tp.TuningStore()
    store.add(record(1e-6, "no plan"), record())
    with pytest.warns(TuningStoreWarning, match="1 plans"):
        found = store.best(KEY)
    assert (found.record.plan, found.skipped) == (PLAN, 1)


def test_only_the_best_are_records() -> None:
    store = tp.TuningStore()
    store.add(*(record(1e-3 * (20 - n), PLAN + "\n" * n) for n in range(20)))
    assert len(list(store.records())) == 8
    assert len(store) == 20
    assert store.best(KEY).record.seconds == pytest.approx(1e-3)
    assert "20 trials" in repr(store)
    assert "<table>" in store._repr_html_()


def test_logs_and_stores_are_merged_once(tmp_path: Path) -> None:
    with tp.TuningStore(tmp_path / "a.sqlite") as one:
        one.add(record(), record(2e-3, trials=3, spread=0.5, note="é"))
        assert one.export(tmp_path / "log") == 2
        every = list(one.records(all=True))
    with tp.TuningStore(tmp_path / "b.sqlite") as other:
        assert [other.load(tmp_path / "log"), other.load(tmp_path / "log")] == [2, 0]
        assert other.merge(tmp_path / "a.sqlite") == 0
        assert list(other.records(all=True)) == every
        (tmp_path / "log").write_text((tmp_path / "log").read_text() + '{"target": 1}\n')
        with pytest.raises(tp.FileFormatError, match="line 3"):
            other.load(tmp_path / "log")
    assert all(from_json(as_json(each)) == each for each in every)


def test_limits_are_numbers(tmp_path: Path) -> None:
    with tp.TuningStore() as store:
        for ask in (lambda: store.prune(keep="a"), lambda: store.best(KEY, far="a")):  # type: ignore[arg-type]
            with pytest.raises(tp.OperandTypeError, match="at least 0, found 'a'"):
                ask()
        with pytest.raises(FileNotFoundError, match=r"log\.jsonl"):
            store.export(tmp_path / "none" / "log.jsonl")


def test_values_of_records_are_checked() -> None:
    wrong = ({"seconds": None}, {"seconds": float("nan")}, {"plan": ""}, {"result": "good"})
    for each in wrong:
        with pytest.raises(tp.OperandTypeError, match="Expected"):
            record(**each)  # type: ignore[arg-type]


def test_files_that_are_no_stores(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("words")
    refused(path, "not SQLite")
    assert path.read_text() == "words"
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (a)")
    other.close()
    refused(tmp_path / "other", "something else")
    refused(tmp_path, "a folder")
    refused(tmp_path / "no" / "x", "no folder")
    good = tmp_path / "good"
    with tp.TuningStore(good) as store:
        store.add(record())
    (tmp_path / "cut").write_bytes(good.read_bytes()[:-4096])
    refused(tmp_path / "cut", "damaged")
    newer = sqlite3.connect(good)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    refused(good, "schema 99")
    with pytest.warns(TuningStoreWarning), tp.TuningStore(good, required=False) as store:
        assert store.path is None


@pytest.mark.parametrize(
    ("change", "near"),
    [
        ("UPDATE jobs SET attempts = 'many'", False),
        ("UPDATE jobs SET worker = x'00'", False),
        ("UPDATE log SET names = '[[null, 1]]'", False),
        ("UPDATE problems SET measures = '[1, 2, 3]'", False),
        ("UPDATE keys SET buckets = '[3'", True),
    ],
)
def test_rows_that_others_wrote_are_damage_of_the_store(
    tmp_path: Path, change: str, near: bool
) -> None:
    with tp.TuningStore(tmp_path / "store") as store:
        store.add(record())
        store.journal.add([tp.tuning.task("y[i] = x[i]", {"x": {"shape": [5]}}).job("c@pi")])
        with store.file.write() as connection:
            connection.execute(change)
        key = replace(KEY, buckets=(KEY.buckets[0] + 1, *KEY.buckets[1:])) if near else KEY
        with pytest.raises(tp.TuningStoreError, match="damaged"):
            store.journal.claim("c@pi", "w", 60)
            store.best(key)


def test_buckets_of_another_problem_are_not_near(tmp_path: Path) -> None:
    shorter = replace(KEY, measures=KEY.measures[1:], buckets=KEY.buckets[1:])
    with tp.TuningStore(tmp_path / "store") as store:
        store.add(replace(record(), key=shorter))
        assert store.best(KEY) is None


def test_paths_that_name_no_file() -> None:
    for path in (3, b"store"):
        with pytest.raises(tp.OperandTypeError, match="Expected the path of a tuning store"):
            tp.TuningStore(path)  # type: ignore[arg-type]
    refused(Path("a" * 5000), "none that can be opened")


SUBSCRIPTS = {
    "ranges": ("y[i] = x[i+k] * w[k]", {"x": np.arange(9.0), "w": np.ones(3)}),
    "positions": ("y[i] = B[p[i],j] * z[j]", {"B": A, "p": np.arange(9) * 7, "z": np.ones(80)}),
    "blocks": ("y[i] = B[i,j] * z[j]", {"B": A.tobsr((2, 2)), "z": np.ones(80)}),
}


@pytest.mark.parametrize("case", SUBSCRIPTS)
def test_keys_of_subscripts_and_blocks_are_of_what_is_computed(case: str) -> None:
    """A plan in the store under the key of a text is the one that its call looks up."""
    text, given = SUBSCRIPTS[case]
    with tp.TuningStore() as store, tp.tuning_store(store):
        best = tp.tune(text, given, trials=1, seconds=20, store=store, progress=False)
        assert store.best(store.key(text, given)) is not None and best.trials == 1
        assert "exact" in tp.explain(text, given, schedule="tuned")
        found = tp.evaluate(text, given, schedule="tuned")
    np.testing.assert_allclose(found, tp.evaluate_dense(text, given))


def refused(path: Path, words: str) -> None:
    with pytest.raises(tp.TuningStoreError, match=words):
        tp.TuningStore(path)


def test_a_process_killed_while_its_log_goes_to_the_file_loses_nothing(tmp_path: Path) -> None:
    """The first page says then how long the file will be, and the log has the pages still."""
    path, killed = tmp_path / "store", tmp_path / "killed"
    with tp.TuningStore(path) as store:
        store.add(record())
        with store.file.read() as connection:
            connection.execute("PRAGMA wal_autocheckpoint = 0")
        store.add(*(record(float(n), note=200 * "n") for n in range(2, 300)))
        shorter = path.read_bytes()
        (tmp_path / "killed-wal").write_bytes((tmp_path / "store-wal").read_bytes())
    killed.write_bytes(path.read_bytes()[:4096] + shorter[4096:])
    assert killed.stat().st_size < path.stat().st_size
    with tp.TuningStore(killed) as store:
        assert len(store) == 299


def test_a_file_of_the_first_version_is_migrated(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "old")
    old.executescript(FIRST)
    old.execute("INSERT INTO plans (hash, text) VALUES ('h', 'kept')")
    old.execute(f"PRAGMA application_id = {APPLICATION}")
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    with tp.TuningStore(tmp_path / "old", write=False) as store:  # in a copy
        assert len(store) == 0
    with tp.TuningStore(tmp_path / "old") as store, store._file.read() as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        assert connection.execute("SELECT text FROM plans").fetchone() == ("kept",)


def test_locks_full_disks_and_read_only_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    store = tp.TuningStore(path, timeout=0.05)
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    with pytest.raises(tp.TuningStoreError, match="locked by others"):
        store.add(record())
    held.execute("ROLLBACK")
    held.close()
    assert store.add() == 1  # nothing was lost
    with store._file.read() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(tp.TuningStoreError, match="no room"):
        store.add(record(2e-3, PLAN + "\n" * 100_000))
    assert len(store) == 1
    with store._file.read() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    store.close()
    with tp.TuningStore(path, write=False) as store:
        assert len(store) == 2
        with pytest.raises(tp.TuningStoreError, match="only read"):
            store.prune(keep=1)


WRITER = """
import sys, pickle, taco_py as tp
from dataclasses import replace
path, first, text = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
record = pickle.loads(text)
with tp.TuningStore(path) as store:
    for n in range(first, first + 20):
        store.add(replace(record, when=float(n)))
"""


def test_processes_write_at_once(tmp_path: Path) -> None:
    import pickle

    path, data = tmp_path / "a", pickle.dumps(record())
    command = [sys.executable, "-c", WRITER, str(path)]
    started = [
        subprocess.Popen([*command, str(first)], stdin=subprocess.PIPE, cwd=ROOT)
        for first in (1, 11)
    ]
    for each in started:
        each.communicate(data)
        assert each.returncode == 0
    with tp.TuningStore(path) as store:
        assert len(store) == 30  # ten of both are the same


def test_look_ups_use_indices() -> None:
    with tp.TuningStore()._file.read() as connection:
        for query, given in ((SAME, ("h", "1", "c")), (NEAR, ("h", "d", 0, 1, 0, 1))):
            rows = connection.execute(f"EXPLAIN QUERY PLAN {query}", given).fetchall()
            assert not [row[3] for row in rows if row[3].startswith("SCAN")]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, log = (str(tmp_path / name) for name in ("a", "b", "log.jsonl"))
    for path, seconds in ((one, 1e-3), (two, 2e-3)):
        with tp.TuningStore(path) as store:
            store.add(record(seconds))
    expected = (
        (("list", one), "1 trials"), (("show", one), "return B"), (("merge", one, two), "1 trials"),
        (("export", one, log), "2 trials written"), (("prune", one, "--keep", "0"), "2 trials"),
        (("merge", one, two, log), "2 trials taken"),
    )  # fmt: skip
    for words, told in expected:
        assert main(["store", *words]) == 0
        assert told in capsys.readouterr().out
    assert main(["store", "list", str(tmp_path / "none")]) == 2
    assert main(["store", "prune", one]) == 2
    assert main(["store", "list", log]) == 2
    assert "not SQLite" in capsys.readouterr().err
