"""`schedule="measure"`: results are those of any schedule, and the choice is remembered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.toolchain.entries import write_note
from codegen.toolchain.errors import KernelCacheWarning
from codegen.toolchain.store import Store
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.operands import bind_operands
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.prepare import prepare, start
from taco_py.calls.statements.read_text import parsed
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.printer import program_text
from taco_py.planner.plan_price import PricedFor
from taco_py.running.execute.run import run
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.measured_schedule import PLAIN, measure, pays, points_of
from taco_py.tuning.measure.sequential_test import Verdict, fewest_pairs
from taco_py.tuning.measure.turns import in_turns
from taco_py.tuning.session.timing_store import NotedTimes, facts_of

Attempt = Callable[[CallOptions], None]
TEXTS = (
    "A[i,j] = B[i,k] * C[k,j]",
    "y[i] = sum(j, k, B[i,j] * C[j,k] * x[k])",
    "A[i,j] = B[i,j] + C[i,j]",
    "s = B[i,i]",
)


def operands(text: str) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    known: dict[str, Any] = {
        name: sp.random_array((30, 30), density=0.2, format="csr", rng=rng) for name in "BC"
    }
    known["x"] = rng.random(30)
    right = text.partition("=")[2]
    return {name: value for name, value in known.items() if f"{name}[" in right}


@pytest.mark.parametrize("text", TEXTS)
def test_results_are_the_same(text: str) -> None:
    given = operands(text)
    expected = tp.evaluate(text, given)
    for _ in range(2):
        found = tp.evaluate(text, given, schedule="measure")
        assert abs(found - expected).max() < 1e-12


def times_of(told: str) -> tuple[str, dict[str, str]]:
    """The first line, and what stands before each name of a choice."""
    first, *rest = told.splitlines()
    assert first.startswith("measured  ")
    found = {}
    for line in rest:
        if not line.startswith("  ") or not line[2:13].strip():
            break
        found[line[15:]] = line[:15].strip()
    return first, found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, as another process has it."""
    monkeypatch.setattr(KERNELS, "_store", Store(tmp_path))
    KERNELS.memo.clear()
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", TEXTS[:3])
def test_explain_shows_each_candidate_with_its_time(text: str) -> None:
    told = tp.explain(text, operands(text), schedule="measure")
    first, found = times_of(told)
    taken = [name for name in found if name.endswith(", taken")]
    assert len(found) > 1
    assert first == f"measured  {taken[0].removesuffix(', taken')}; in this process"
    timed = [float(t.removesuffix(" ms")) for t in found.values() if t.endswith(" ms")]
    assert len(timed) > 1
    assert timed == sorted(timed)
    assert found[taken[0]].endswith(" ms")
    assert "loop order" in told


def test_sums_in_products_are_measured_both_ways() -> None:
    given = {**operands(TEXTS[0]), "A": operands(TEXTS[0])["B"], "x": np.ones(30)}
    told = tp.explain("y[i] = (A[i,j] * B[j,k] + C[i,k]) * x[k]", given, schedule="measure")
    _, found = times_of(told)
    assert any("sums as they are written" in name for name in found)


def first_line(text: str) -> str:
    KERNELS.memo.clear()
    return tp.explain(text, operands(text), schedule="measure").splitlines()[0]


def test_times_are_remembered_beside_the_kernels(folder: Path) -> None:
    text = TEXTS[1]
    before = first_line(text)
    assert before.endswith("; in this process")
    assert list(folder.rglob("*.note"))
    again = first_line(text)
    assert again == before.replace("in this process", "in an earlier process, remembered")
    KERNELS.clear()
    assert first_line(text).endswith("; in this process")


DAMAGE = ("", "[1, 2", "[]", '{"taken": "nothing such", "tried": []}', '{"taken": 3}',
          '{"taken": "in one kernel", "tried": [[1]]}', "[" * 100_000)  # fmt: skip


@pytest.mark.parametrize("text", DAMAGE, ids=range(len(DAMAGE)))
def test_notes_that_are_none_are_measured_again(folder: Path, text: str) -> None:
    """As another version may have written them."""
    first_line(TEXTS[0])
    for note in folder.rglob("*.note"):
        write_note(note.parent, note.stem, text)
    assert first_line(TEXTS[0]).endswith("; in this process")
    assert first_line(TEXTS[0]).endswith("; in an earlier process, remembered")


def test_damaged_notes_are_measured_again(folder: Path) -> None:
    first_line(TEXTS[0])
    for note in folder.rglob("*.note"):
        note.write_text("[1, 2")
    with pytest.warns(KernelCacheWarning, match="is damaged"):
        assert first_line(TEXTS[0]).endswith("; in this process")
    assert first_line(TEXTS[0]).endswith("; in an earlier process, remembered")


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(KERNELS, "_store", Store(tmp_path / "file" / "below"))
    assert first_line(TEXTS[0]).endswith("; in this process")


def test_other_sizes_and_fuller_rows_are_measured_for_themselves(folder: Path) -> None:
    text = TEXTS[0]
    given = operands(text)
    first_line(text)
    keys = len(list(folder.rglob("*.note")))
    KERNELS.memo.clear()
    full = given["B"].tolil()
    entries = given["B"].nnz
    full[:] = 0
    full.rows[0], full.data[0] = list(range(30)), [1.0] * 30
    for k in range(entries - 30):
        full[1 + k // 29, k % 29] = 1.0
    tp.explain(text, {**given, "B": full.tocsr()}, schedule="measure")
    assert len(list(folder.rglob("*.note"))) > keys


PROCESS = """
import sys
import numpy as np, scipy.sparse as sp
import taco_py as tp
rng = np.random.default_rng(2)
B, C = (sp.random_array((30, 30), density=0.2, format="csr", rng=rng) for _ in "BC")
told = tp.explain("A[i,j] = B[i,k] * C[k,j]", B=B, C=C, schedule="measure")
print(told.splitlines()[0])
"""


def test_processes_that_measure_at_once_agree_afterwards(tmp_path: Path) -> None:
    environment = {**os.environ, "TACO_PY_CACHE_DIR": str(tmp_path)}

    def begin() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROCESS]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    both = [begin(), begin()]
    lines = [process.communicate(timeout=120)[0] for process in both]
    assert all(line.startswith("measured  ") for line in lines)
    last = begin().communicate(timeout=120)[0]
    assert last.strip().endswith("in an earlier process, remembered")


def test_formats_alone_cannot_be_measured() -> None:
    with pytest.raises(tp.ScheduleError, match="times them on data"):
        tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), schedule="measure")


def space_at(text: str, given: dict[str, Any], **options: Any) -> CallSpace:
    call = CallArguments(given, CallOptions(**options))
    return space_of(Computation.of_one(parsed(text), call))


CHAIN = "Z[i,l] = A[i,j] * B[j,k] * C[k,l]"


def test_contractions_that_were_given_are_kept() -> None:
    given = {name: operands(TEXTS[0])["B"] for name in "ABC"}
    for path, expected in ((None, True), (((1, 2), (0, 1)), False)):
        assert (len(points_of(space_at(CHAIN, given, path=path))) > 1) == expected


def test_steps_of_more_than_two_are_timed_too() -> None:
    rng = np.random.default_rng(3)
    given = {name: rng.random((30, 30)) for name in "UVX"} | {"S": operands(TEXTS[0])["B"]}
    call = space_at("O[i,f] = S[i,j] * U[i,k] * V[j,k] * X[j,f]", given)
    assert "in steps (0,1,2), (0,1)" in points_of(call)


def test_decisions_of_the_log_are_tried_the_other_way() -> None:
    """Each leads to other steps and to the same value."""
    text, given = TEXTS[1], operands(TEXTS[1])
    call = space_at(text, given)
    points = points_of(call)
    assert "without contract for y" in points
    settings = [call.space.settings_of(point) for point in points.values()]
    expected = tp.evaluate_dense(text, given)
    for choice in settings:
        if choice.reversed:
            changed = prepare(parsed(text), given, choice)
            assert changed.plan.steps != call.prepared.plan.steps
            (decision,) = choice.reversed
            plans = call.prepared.plan, changed.plan
            before, after = (plan.log.decisions[decision] for plan in plans)
            assert before.accepted is not after.accepted
            result = run(changed.plan, start(changed, choice, None))
            np.testing.assert_allclose(result.values, expected)


def test_threads_that_call_at_once_measure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = operands(TEXTS[0])
    measured: list[int] = []
    KERNELS.memo.clear()
    # taco_py.tuning is the function of that name, so that its modules are found by import alone
    module = import_module("taco_py.tuning.bench.measured_schedule")
    monkeypatch.setattr(KERNELS, "note", lambda key: None)  # nothing from earlier processes

    def counted(*given: Any) -> Any:
        measured.append(1)
        return measure(*given)

    monkeypatch.setattr(module, "measure", counted)
    text = TEXTS[0].replace("A[", "Once[")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: tp.evaluate(text, given, schedule="measure"), range(4)))
    assert measured == [1]
    assert all(abs(each - found[0]).max() == 0 for each in found)


PAIRS = "in pairs (0,1), (0,1)"


def chain(monkeypatch: pytest.MonkeyPatch, prices: dict[str, float] | None = None) -> CallSpace:
    """Return the space of a product of three whose points are priced as it says, others as 0."""
    given = {name: operands(TEXTS[0])["B"] for name in "ABC"}
    call = space_at(CHAIN, given)
    plans = {call.space.text(points_of(call)[name]): p for name, p in (prices or {}).items()}

    def price(_: object, plan: Plan) -> float:
        return plans.get(program_text(plan.program), 0.0)

    monkeypatch.setattr(PricedFor, "plan", price)
    return call


def taking(call: CallSpace, seconds: dict[str, float]) -> tuple[list[str], Attempt]:
    """Return the labels of attempts, and an attempt that takes as long as it says, 1 ms else.

    A negative time is a refusal.
    """
    attempts: list[str] = []
    labels = {call.space.settings_of(p): label for label, p in points_of(call).items()}

    def attempt(choice: CallOptions) -> None:
        label = labels[choice]
        attempts.append(label)
        if seconds.get(label, 1e-3) < 0:
            raise ScheduleError("Expected nothing, found something")
        end = perf_counter() + seconds.get(label, 1e-3)
        while perf_counter() < end:
            pass

    return attempts, attempt


def test_the_fastest_is_taken_and_refusals_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = chain(monkeypatch)
    _, attempt = taking(call, {PLAIN: 0.02, "in one kernel": -1.0, PAIRS: 1e-4})
    label, timings = measure(call, points_of(call), attempt)
    assert label == PAIRS
    times = {each.label: each.seconds for each in timings}
    assert times["in one kernel"] is None
    assert 0 < (times[PAIRS] or 0.0) < (times[PLAIN] or 0.0)
    (why,) = (each.reason for each in timings if each.label == "in one kernel")
    assert why == "refused: Expected nothing, found something"


def test_the_plan_without_timing_stays_where_nothing_is_clearly_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = chain(monkeypatch)
    _, attempt = taking(call, {PLAIN: 1e-4})
    assert measure(call, points_of(call), attempt)[0] == PLAIN


def test_what_is_expected_to_be_much_slower_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    call = chain(monkeypatch, {"in one kernel": 1e4})
    attempts, attempt = taking(call, {})
    _, timings = measure(call, points_of(call), attempt)
    assert PAIRS in attempts
    assert "in one kernel" not in attempts
    whys = {each.label: each.reason for each in timings if each.seconds is None}
    assert whys["in one kernel"] == "expected to take 1e+04 s"


def test_nothing_new_is_tried_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("taco_py.tuning.bench.measured_schedule")
    monkeypatch.setattr(module, "SECONDS", 0.05)
    monkeypatch.setattr(module, "TIMES", 0.0)
    call = chain(monkeypatch, {PAIRS: 1e-4, "in one kernel": 2e-4})
    points = {name: points_of(call)[name] for name in (PLAIN, PAIRS, "in one kernel")}
    attempts, attempt = taking(call, {PAIRS: 0.06})
    _, timings = measure(call, points, attempt)
    assert set(attempts) == {PLAIN, PAIRS}
    (last,) = (each for each in timings if each.seconds is None)
    assert last.label == "in one kernel"
    assert last.reason == "the 0.05 s for trying others were over, for what follows too"


def test_slow_plans_take_as_many_turns_as_a_verdict_needs() -> None:
    """However short the time is that turns are taken for."""
    turns = in_turns(lambda: sleep(0.001), lambda: sleep(0.004), limit=0.0)
    assert turns.verdict is Verdict.FASTER
    assert turns.mine.count == fewest_pairs() == 3


@pytest.mark.parametrize(
    "text", ["y[i] = (I[i,j] + 1) * x[j]", "y[i] = (B[i,j] - x[i] * x[j]) * x[j]"]
)
def test_sums_of_other_types_and_differences_are_measured_as_written_too(text: str) -> None:
    rng = np.random.default_rng(0)
    graph = sp.random_array((100, 100), density=0.02, format="csr", rng=rng)
    given: dict[str, Any] = {"B": graph, "x": rng.random(100), "I": graph.copy()}
    given["I"].data = rng.integers(1, 9, graph.nnz)
    given = {name: value for name, value in given.items() if f"{name}[" in text[5:]}
    expected = tp.evaluate_dense(text, given)
    settings: dict[str, Any] = {"schedule": "measure", "allow": ("cancellation",)}
    np.testing.assert_allclose(tp.evaluate(text, given, **settings), expected)
    _, found = times_of(tp.explain(text, given, frontier_budget=0, **settings))
    written = ("sums as they are written", "in one kernel")  # the same steps are timed once
    assert any(name.startswith(written) for name in found)


def test_what_leads_to_the_same_steps_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    call = chain(monkeypatch)
    attempts, attempt = taking(call, {})
    points = points_of(call)
    _, timings = measure(call, points, attempt)
    texts = {label: call.space.text(points[label]) for label in points}
    assert len({texts[each.label] for each in timings}) == len(timings)
    assert len(timings) < len(points)
    assert set(attempts) == {each.label for each in timings}


def test_products_are_tried_in_pairs_and_loops_only_where_they_may_pay() -> None:
    """One kernel of the chain would take 200 ^ 5 steps."""
    matrices = [np.random.default_rng(k).random((200, 200)) for k in range(4)]
    subscripts = "ij,jk,kl,lm->im"
    found = tp.einsum(subscripts, *matrices, schedule="measure")
    np.testing.assert_allclose(found, np.linalg.multi_dot(matrices), rtol=1e-12)


def test_axes_of_size_one_are_taken_off_before() -> None:
    rng = np.random.default_rng(4)
    given = [rng.random((30, 1)), rng.random((30, 20)), rng.random((20, 10))]
    found = tp.einsum("ij,ij,jk->ik", *given, schedule="measure")
    expected = np.einsum("ij,ij,jk->ik", np.broadcast_to(given[0], (30, 20)), *given[1:])
    np.testing.assert_allclose(found, expected)


def test_quotients_and_several_terms_are_measured_too() -> None:
    rng = np.random.default_rng(5)
    A = sp.random_array((40, 40), density=0.2, format="csr", rng=rng)
    x, z = rng.random(40), 1 + rng.random(40)
    for text in (
        "y[i] = z[i] - A[i,j] * x[j]",
        "y[i] = z[i] / (1 + A[i,j] * A[j,k] * x[k])",
    ):
        told = tp.explain(text, A=A, x=x, z=z, schedule="measure")
        assert len(times_of(told)[1]) > 1
        found = tp.evaluate(text, A=A, x=x, z=z, schedule="measure")
        np.testing.assert_allclose(found, tp.evaluate(text, A=A, x=x, z=z))


@pytest.mark.parametrize("schedule", ["mesure", "Measure", "fastest"])
def test_a_word_that_is_none_of_the_two(schedule: str) -> None:
    with pytest.raises(tp.ScheduleError, match=f"'auto', 'measure', .* found '{schedule}'"):
        tp.evaluate("y[i] = x[i] + 1", x=np.ones(3), schedule=schedule)


def test_a_choice_that_other_operands_made_has_to_win_on_these(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = chain(monkeypatch)
    points = points_of(call)
    for seconds, wins in ((1e-4, True), (5e-3, False), (-1.0, False)):
        _, attempt = taking(call, {PLAIN: 1e-3, PAIRS: seconds})
        assert pays(call, points[PAIRS], attempt) == wins
    attempts, attempt = taking(call, {})
    assert pays(call, points[PLAIN], attempt) and not attempts


def test_times_are_of_operands_of_nearly_the_same_facts() -> None:
    """Of one class of sizes are operands of 64 and 127 rows; how full rows are differs too."""
    rng = np.random.default_rng(0)

    def facts(rows: int, entries: int, power: float) -> tuple[int, ...]:
        places = (rows * rng.random(entries) ** power).astype(int), rng.integers(0, 900, entries)
        matrix = sp.csr_array((np.ones(entries), places), shape=(rows, 900))
        return facts_of(bind_operands({"A": matrix}))

    times = NotedTimes("in pairs", (), facts(1000, 5000, 1.0))
    assert times.are_of(facts(1000, 5200, 1.0))
    assert not times.are_of(facts(600, 5000, 1.0))
    assert not times.are_of(facts(1000, 8000, 1.0))
    assert not times.are_of(facts(1000, 5000, 4.0))


def test_a_choice_is_measured_anew_where_it_does_not_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was noted for operands of the same class, but of other facts, is raced here first."""
    module = import_module("taco_py.tuning.bench.measured_schedule")
    given, notes = operands(TEXTS[0]), dict[str, str]()
    text = TEXTS[0].replace("A[", "Noted[")
    monkeypatch.setattr(KERNELS, "note", notes.get)
    monkeypatch.setattr(KERNELS, "write_note", notes.__setitem__)
    counts, races = list[int](), list[bool]()

    def counted(*arguments: Any) -> Any:
        counts.append(1)
        return measure(*arguments)

    monkeypatch.setattr(module, "measure", counted)
    monkeypatch.setattr(module, "pays", lambda *_: races.pop())
    expected = tp.evaluate(text, given, schedule="measure")
    (key,) = (key for key in notes if key.startswith("measured"))
    for is_alike, wins, measured in ((True, False, 1), (False, True, 1), (False, False, 2)):
        KERNELS.memo.clear()
        for other in {*notes} - {key}:
            del notes[other]  # of fast paths, which ask for no choice
        races.append(wins)
        if not is_alike:
            note = json.loads(notes[key])
            notes[key] = json.dumps({**note, "facts": [fact + 9 for fact in note["facts"]]})
        found = tp.evaluate(text, given, schedule="measure")
        assert len(counts) == measured
        assert abs(found - expected).max() < 1e-12
