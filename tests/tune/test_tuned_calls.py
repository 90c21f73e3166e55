"""`tune`, and calls with schedule="tuned": from the store, by price, or as auto plans them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.tune_call import tunable, tune_text
from taco_py.tuning.bench.tuned_plans import Progress
from taco_py.tuning.session.tuning_session import Attempt, Timed
from taco_py.tuning.space.axis import label_of, point_of
from taco_py.tuning.store.active_store import active_file
from taco_py.tuning.store.store_file import StoreFile
from taco_py.tuning.tasks.search_options import SearchOptions

RANDOM = np.random.default_rng(0)
A = sp.random_array((300, 200), density=0.05, format="csr", rng=RANDOM)
X = np.ones(200)
TEXT = "y[i] = A[i,j] * x[j]"
SERIAL = point_of({"kernel y: share": "serial()", "kernel y: inner loop": "unroll(j,8)"})


@pytest.fixture
def store() -> Iterator[tp.TuningStore]:
    with tp.TuningStore() as found, tp.tuning_store(found):
        yield found


def text_of(text: str = TEXT, point: Any = SERIAL, **objects: Any) -> str:
    call = tunable(text, objects or {"A": A, "x": X}, {})
    return space_of(call).space.text(point)


def record(store: tp.TuningStore, **changes: Any) -> tp.TuningRecord:
    key = store.key(TEXT, A=A, x=X)
    kept = {"label": label_of(SERIAL), "seconds": 1e-5, "when": 1e9, **changes}
    return tp.TuningRecord(kept.pop("key", key), kept.pop("plan", text_of()), **kept)


def explain(text: str = TEXT, **objects: Any) -> str:
    given = objects or {"A": A, "x": X}
    return str(tp.explain(text, given, schedule="tuned", frontier_budget=0))


# ---------------------------------------------------------------- from the store


def test_a_record_is_carried_out_in_the_names_of_the_call(store: tp.TuningStore) -> None:
    store.add(record(store))
    told = explain("z[a] = M[a,b] * v[b]", M=A, v=X)
    assert "tuned     kernel y: inner loop = unroll(j,8); kernel y: share = serial(); exact" in told
    assert "1e-05 s on 2001-09-09" in told
    assert "unroll 8" in told
    assert "one thread was asked for" in told
    np.testing.assert_allclose(
        tp.evaluate("z[a] = M[a,b] * v[b]", M=A, v=X, schedule="tuned"), A @ X
    )
    np.testing.assert_allclose(tp.einsum("ij,j->i", A, X, schedule="tuned"), A @ X)


def test_tensors_and_indices_of_one_name_are_told_apart(store: tp.TuningStore) -> None:
    """The plan's index u is no tensor u, though the call's names for both are p and q."""
    u, v = np.arange(4.0), np.ones(4)
    given = {"u": u, "v": v}
    text = "y[u] = u[u] - v[u]"
    plan = text_of(text, (), **given)
    store.add(tp.TuningRecord(store.key(text, given), plan, "usual", 1e-6))
    found = tp.evaluate("y[q] = p[q] - q[q]", p=u, q=v, schedule="tuned")
    np.testing.assert_array_equal(found, u - v)


def test_a_call_made_before_does_nothing_more_than_autos(
    store: tp.TuningStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(record(store))
    for schedule in ("auto", "tuned"):
        tp.evaluate(TEXT, A=A, x=X, schedule=schedule)

    def no(*_: Any) -> Any:
        raise AssertionError("a call made before looks into the store or plans")

    monkeypatch.setattr(StoreFile, "read", no)
    monkeypatch.setattr("taco_py.calls.call.texts.by_text.compute_text", no)
    counts = {}
    for schedule in ("auto", "tuned"):
        tp.evaluate(TEXT, A=A, x=X, schedule=schedule)
        counts[schedule] = calls_of(lambda s=schedule: tp.evaluate(TEXT, A=A, x=X, schedule=s))
    assert counts["tuned"] == counts["auto"] > 0


def calls_of(function: Any) -> int:
    """How many Python functions a call calls."""
    count = [0]

    def trace(_: Any, event: str, __: Any) -> None:
        count[0] += event == "call"

    sys.setprofile(trace)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count[0]


def test_short_ways_of_tuned_calls_are_not_left_for_later_processes(store: tp.TuningStore) -> None:
    store.add(record(store))
    notes: list[str] = []
    KERNELS.memo.clear()
    original = KERNELS.write_note
    KERNELS.write_note = lambda key, text: notes.append(key) or original(key, text)  # type: ignore
    try:
        tp.evaluate("w[i] = A[i,j] * x[j]", A=A, x=X, schedule="tuned")
    finally:
        KERNELS.write_note = original  # type: ignore[method-assign]
    assert not any("tuned" in key for key in notes)


def test_another_store_is_looked_into_at_once(store: tp.TuningStore, tmp_path: Path) -> None:
    assert "as auto plans it" in explain()
    with tp.TuningStore(tmp_path / "other") as other:
        other.add(record(other))
    with tp.tuning_store(tmp_path / "other"):
        assert f"exact, from {tmp_path / 'other'}" in explain()
    assert "as auto plans it" in explain()


def test_records_of_other_sizes_compilers_and_processors_are_hints(store: tp.TuningStore) -> None:
    key = store.key(TEXT, A=A, x=X)
    other = replace(key, target=replace(key.target, processor="another"))
    store.add(record(store, key=other))
    assert "hint: other processor another, here" in explain()
    buckets = (key.buckets[0] + 1, *key.buckets[1:])
    store.add(record(store, key=replace(key, buckets=buckets)))
    KERNELS.memo.clear()
    assert "nearest bucket, distance 1: size i0 2^10 there, 2^9 here" in explain()


def test_hints_that_are_expected_to_be_slower_are_passed_over(store: tp.TuningStore) -> None:
    slow = point_of({"plan: loops of y": "loops j,i"})
    key = store.key(TEXT, A=A, x=X)
    far = replace(key, buckets=(key.buckets[0] + 1, *key.buckets[1:]))
    store.add(record(store, plan=text_of(point=slow), key=far))
    told = explain()
    assert "passed over  1 plan of the store: are hints that are expected to be slower" in told
    store.add(record(store, plan=text_of(point=slow)))
    KERNELS.memo.clear()
    assert "exact" in explain()


def test_plans_that_no_longer_parse_or_fit_are_passed_over(store: tp.TuningStore) -> None:
    other = text_of(A=A.tocsc(), x=X)
    store.add(record(store, plan="no plan", seconds=1e-9), record(store, plan=other, seconds=1e-8))
    told = explain()
    assert "as auto plans it" in told
    assert "passed over  1 plan of the store: no longer parse" in told
    assert "passed over  1 plan of the store: are for other operands" in told
    np.testing.assert_allclose(tp.evaluate(TEXT, A=A, x=X, schedule="tuned"), A @ X)


def test_keys_tell_fill_values_squeezed_modes_and_paths(store: tp.TuningStore) -> None:
    from taco_py.tuning.bench.call_key import key_of_call

    def key(text: str, squeezed: Any = (), **changes: Any) -> str:
        call = tunable(text, {"A": tp.tensor(A), "x": X}, {})
        call = replace(call, options=replace(call.options, **changes), squeezed=squeezed)
        return key_of_call(call).problem

    plain = key(TEXT)
    assert (
        len({plain, key(TEXT, path=((0, 1),)), key(TEXT, contract=False), key(TEXT, memory=5)}) == 4
    )
    call = tunable("B[i,j] = A[i,j] + 1", {"A": tp.tensor(A)}, {})
    assert "/fill=" in key_of_call(call).problem
    column = sp.csr_array(np.ones((300, 1)))
    one = tunable("y[i] = A[i] * x[i]", {"A": np.ones(300), "x": np.ones(300)}, {})
    objects = {"A": column, "x": np.ones(300)}
    squeezed = replace(one, objects=objects, squeezed=(("A", (1,)),))
    told = key_of_call(squeezed).problem
    assert "without modes 1" in told
    np.testing.assert_allclose(
        tp.einsum("ij,ik->ik", column, np.ones((300, 4)), schedule="tuned"), np.ones((300, 4))
    )


def test_sizes_that_are_compiled_in_hold_for_calls_of_that_size_alone(
    store: tp.TuningStore,
) -> None:
    text, point = "Y[i,k] = A[i,j] * X[j,k]", (("plan: size of k", "32 compiled in"),)
    given = {32: RANDOM.random((200, 32)), 40: RANDOM.random((200, 40))}
    plan = text_of(text, point, A=A, X=given[32])
    assert "static k=32" in plan
    store.add(tp.TuningRecord(store.key(text, A=A, X=given[32]), plan, "compiled in", 1e-6))
    for columns in (32, 40, 32, 40, 40):
        found = tp.evaluate(text, A=A, X=given[columns], schedule="tuned")
        np.testing.assert_allclose(found, A @ given[columns])


# ---------------------------------------------------------------- none in the store


def test_zero_shot_uses_what_the_store_teaches_and_is_remembered(store: tp.TuningStore) -> None:
    key = store.key("y[i] = A[i,j] * A[i,j] * x[j]", A=A, x=X)
    store.add(tp.TuningRecord(key, "usual", label_of(()), 1e-3))
    for count in range(9):
        label = label_of((("kernel y: inner loop", "unroll(j,4)"),), ("unroll 4 at 0",))
        store.add(tp.TuningRecord(key, f"plan {count}", label, 2e-4, result="slower"))
    told = explain()
    assert "tuned     zero-shot: kernel y: inner loop = unroll(j,4)" in told
    assert "9 trials of others to learn from" in told
    (kept,) = store.records(result="expected")
    assert kept.label.startswith("zero-shot: kernel y: inner loop")
    assert kept.seconds
    KERNELS.memo.clear()
    assert "timed        never; it was chosen by price on" in explain()
    np.testing.assert_allclose(tp.evaluate(TEXT, A=A, x=X, schedule="tuned"), A @ X)
    store.add(record(store, seconds=10.0))  # what was timed comes before what was not
    KERNELS.memo.clear()
    assert "timed        10 s" in explain()


def test_calls_look_again_after_what_others_timed_came(
    store: tp.TuningStore, tmp_path: Path
) -> None:
    assert "no record" in explain()
    with tp.TuningStore() as other:
        other.add(record(other))
        store.merge(other)
        assert "exact, from a store in memory" in explain()
        other.export(tmp_path / "log.jsonl")
    store.prune(keep=0)
    assert "no record" in explain()
    store.load(tmp_path / "log.jsonl")
    assert "exact, from a store in memory" in explain()


def test_without_a_store_and_without_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys.modules[active_file.__module__], "usual_path", lambda: tmp_path / "none"
    )
    with tp.tuning_store(None):
        assert "as auto plans it" in explain()
        told = tp.explain(TEXT, A=A, x=X, schedule="tuned", frontier_budget=0, schedule_budget=0)
        assert "none of 1 plans by price" in told
    (tmp_path / "none").write_text("words")
    with tp.tuning_store(None), pytest.warns(TuningStoreWarning, match="left out"):
        KERNELS.memo.clear()
        assert "as auto plans it" in explain()
    with pytest.raises(tp.TuningStoreError):
        tp.tuning_store(tmp_path / "none")


def test_where_there_are_no_operands(store: tp.TuningStore) -> None:
    with pytest.raises(tp.ScheduleError, match="'tuned', which looks plans up"):
        tp.compile(TEXT, A=tp.CSR, x=tp.dense(1), schedule="tuned")
    with pytest.raises(tp.ScheduleError, match="tuned"):
        tp.evaluate(TEXT, A=A, x=X, schedule="tunde")


# ---------------------------------------------------------------- tune


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"trails": 3}, "did you mean the option trials=?"),
        ({"schedule": "auto"}, "schedule= is an option of evaluate; this call has "),
        ({"X": X}, "did you mean x?"),
    ],
)
def test_options_misspelt_are_told(option: dict[str, Any], told: str) -> None:
    with pytest.raises(tp.OperandError) as raised:
        tp.tune(TEXT, A=A, x=X, store=tp.TuningStore(), **option)
    assert told in str(raised.value)


def test_tune_finds_keeps_and_tells() -> None:
    with tp.TuningStore() as store:
        told: list[Attempt] = []
        found = tune_text(
            TEXT,
            {"A": A, "x": X},
            {},
            SearchOptions(trials=6),
            store,
            watch=lambda attempt, *_: told.append(attempt),
            isolated=False,
        )
        assert found.outcome.trials == 6
        assert found.where == "in this process, as asked"
        assert len([each for each in told if each.timed.result != "refused"]) in (6, 7)
        assert len(store) >= 6
        best = store.best(TEXT, A=A, x=X)
        assert best.record.plan == found.outcome.best.text
        with tp.tuning_store(store):
            np.testing.assert_allclose(tp.evaluate(TEXT, A=A, x=X, schedule="tuned"), A @ X)


def test_tune_in_a_process_of_its_own_prints_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = tp.tune(TEXT, A=A, x=X, trials=2, store=tmp_path / "s", progress=True)
    shown = capsys.readouterr().err
    assert "] 2/2" in shown and "x auto" in shown
    lines = repr(best).splitlines()
    assert [line.split()[0] for line in lines] == ["best", "seconds", "auto", "trials", "ended"]
    assert "2; 0 pruned by bounds" in repr(best)
    assert "<table>" in best._repr_html_()
    assert best.seconds <= best.auto_seconds
    with tp.TuningStore(tmp_path / "s") as store:
        assert len(store) >= 2


def test_calls_look_into_the_file_that_their_process_last_tuned_into(tmp_path: Path) -> None:
    path = tmp_path / "own.sqlite"
    tp.tuning_store(None)
    tp.tune(TEXT, A=A, x=X, trials=1, seconds=20, store=path, progress=False)
    assert f"exact, from {path}" in explain()
    with tp.TuningStore() as other, tp.tuning_store(other):  # one that was named comes before it
        assert "no record" in explain()
    assert f"exact, from {path}" in explain()
    tp.tuning_store(None)
    assert "own.sqlite" not in explain()


def test_arguments_of_tune_are_checked() -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {"trials": 0}, {"trials": 1.5}, {"seconds": -1}, {"seconds": "1"}, {"search": "best"},
        {"seed": 0.5}, {"store": 3},
    )  # fmt: skip
    for each in wrong:
        with pytest.raises(tp.TacoError, match="Expected"):
            tp.tune(TEXT, A=A, x=X, **each)
    with pytest.raises(tp.OperandError):
        tp.tune(TEXT, A=A, store=tp.TuningStore())


def test_the_bar_is_shown_only_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    quiet, loud = Progress(4, False), Progress(4, True)
    for each in (quiet, loud):
        each.tell(Attempt((), "usual", "", Timed("ok", 1e-3)), 1, 0.5)
        each.tell(Attempt((), "better", "", Timed("ok", 4e-4), share=0.5), 2, 1.0)
        each.end()
    shown = capsys.readouterr().err
    assert shown.count("2/4") == 1
    assert "best 0.0005 s, 2 x auto" in shown
