"""Timing in turns, small operands against the oracle, and processes that crash or hang."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.runtime.child_process import ChildProcess
from taco_py.running.plan_texts import fitted_plan
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.bench_process import BenchProcess, bench_process
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.plan_bench import PlanBench, alike
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.measure import turns
from taco_py.tuning.measure.operand_file import UnpassableError, operand_file, read_operands
from taco_py.tuning.measure.sequential_test import SURE, Verdict, verdict
from taco_py.tuning.measure.small_operands import small_sizes
from taco_py.tuning.measure.turns import alone, in_turns
from taco_py.tuning.session.tuning_session import Timed, with_note

RANDOM = np.random.default_rng(0)
A = sp.random_array((60, 50), density=0.1, format="csr", rng=RANDOM)


def test_three_wins_more_than_losses_decide() -> None:
    win, loss, even = (1.0, 1.1), (1.1, 1.0), (1.0, 1.0)
    assert verdict([win, win]) is Verdict.OPEN
    assert verdict([win, win, win]) is Verdict.FASTER
    assert verdict([win, loss, win, loss, win]) is Verdict.OPEN
    assert verdict([loss, win, loss, loss, loss]) is Verdict.SLOWER
    assert verdict([(100.0, 1.0)]) is Verdict.OPEN
    assert verdict([(3.0, 1.0), (3.0, 1.0)]) is Verdict.SLOWER
    assert verdict([even] * 20) is Verdict.OPEN
    assert verdict([(0.98, 1.0)] * 20, margin=0.03) is Verdict.OPEN
    assert verdict([win] * 8, error=SURE) is Verdict.OPEN
    assert verdict([win] * 9, error=SURE) is Verdict.FASTER


def test_what_takes_longer_is_dropped_early() -> None:
    count = [0]

    def slow() -> None:
        count[0] += 1
        sleep(2e-3)

    found = in_turns(slow, lambda: sleep(2e-4), rounds=50)
    assert found.verdict is Verdict.SLOWER
    assert count[0] < 8
    assert found.mine.seconds > found.other.seconds  # type: ignore[union-attr]
    quick = in_turns(lambda: sleep(1e-4), slow, rounds=50)
    assert quick.verdict is Verdict.FASTER
    begin = perf_counter()
    assert alone(lambda: sleep(0.05), rounds=100, limit=0.1).count <= 4
    assert perf_counter() - begin < 2


def test_faster_in_most_pairs_alone_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(1.0, 0.9), *[(1.0, 1.1)] * 4]  # the least time of all is the other's
    left = iter(pairs)
    monkeypatch.setattr(turns, "_pair", lambda *_: next(left))
    assert verdict(pairs) is Verdict.FASTER
    assert in_turns(int, int, rounds=len(pairs)).verdict is Verdict.OPEN
    assert next(left, None) is None


def test_results_are_alike_up_to_their_rounding() -> None:
    one = np.array([1.0, np.nan, np.inf])
    assert alike(one, one + 1e-12, "float64")
    assert not alike(one, one + 1e-4, "float64")
    assert alike(one, one + 1e-5, "float32")
    assert not alike(one, np.array([1.0, 2.0, np.inf]), "float64")
    assert not alike(np.array([1]), np.array([2]), "int64")
    assert not alike(np.ones(2), np.ones(3), "float64")


# ---------------------------------------------------------------- the oracle

STRIDED = RANDOM.random((50, 16))[:, ::2]
PADDED = RANDOM.random((50, 10))[:, :8]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "csr": ("y[i] = A[i,j] * x[j]", {"A": A, "x": np.ones(50)}),
    "csc to rows": ("C[i,k] = A[i,j] * X[j,k]", {"A": A.tocsc(), "X": PADDED}),
    "strided": ("C[i,k] = A[i,j] * X[j,k]", {"A": A.tocoo(), "X": STRIDED}),
    "columns": ("C[i,k] = A[i,j] * X[j,k]", {"A": A, "X": np.asfortranarray(PADDED)}),
    "whole numbers": ("s = A[i,j] * A[i,j]", {"A": (A * 100).astype(np.int8)}),
    "filled": ("C[i,j] = A[i,j] + 1", {"A": tp.tensor(A)}),
    "three modes": (
        "M[i,r] = T[i,k,l] * C[k,r] * 2",
        {"T": tp.tensor(RANDOM.random((9, 8, 7)), "sss"), "C": RANDOM.random((8, 3))},
    ),
    "complex": ("y[i] = A[i,j] * x[j]", {"A": A, "x": np.ones(50) * 1j}),
    "half": ("y[i] = A[i,j] * x[j]", {"A": A, "x": np.ones(50, np.float16)}),
    "min plus": ("y[i] = A[i,j] * x[j]", {"A": A, "x": np.ones(50)}),
    "one operand twice": ("C[i,j] = A[i,k] * A[j,k]", {"A": A}),
}


def bench(name: str) -> tuple[BenchHere, str]:
    text, objects = KINDS[name]
    options = {"semiring": "min_plus"} if name == "min plus" else {}
    call = tunable(text, objects, options)
    found = space_of(call)
    plans = PlanBench(call)
    return BenchHere(plans), found.space.text(())


@pytest.mark.parametrize("name", KINDS)
def test_plans_are_compared_with_the_oracle_on_small_operands(name: str) -> None:
    here, text = bench(name)
    timed = here.time(text)
    assert (timed.result, timed.note) == ("ok", "")
    assert timed.seconds


def test_wrong_plans_are_found() -> None:
    here, text = bench("csr")
    assert here.time(text).result == "ok"
    wrong = text.replace("A[i,j] * x[j]", "A[i,j] + x[j]")
    assert here.race(wrong, text, False).result in ("wrong", "refused")
    doubled = text.replace("A[i,j] * x[j]", "A[i,j] * x[j] * 2")
    found = here.race(doubled, text, False)
    assert found.result == "refused"
    assert "is another expression" in found.note
    alone_, other = bench("csr")
    note = alone_.time(other.replace("A[i,j] * x[j]", "A[i,j] * x[j] * 2")).note
    assert "is another expression" in note


def test_plans_that_give_other_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what they are made of agrees with the call."""
    monkeypatch.setattr(fitted_plan, "check_agrees", lambda program, statement: None)
    here, text = bench("csr")
    assert here.time(text).result == "ok"
    found = here.race(text.replace("A[i,j] * x[j]", "A[i,j] * x[j] * 2"), text, False)
    assert found.result == "wrong"
    assert "without timing" in found.note
    alone_, other = bench("csr")
    assert "oracle" in alone_.time(other.replace("A[i,j] * x[j]", "A[i,j] * x[j] * 2")).note


def test_sizes_that_plans_compile_in_stay() -> None:
    call = tunable(*KINDS["csr"], {})
    sizes = {"i": 100_000, "j": 3, "k": 70_000, "l": 200, "m": 500}
    small = small_sizes(call.assignments, sizes, {"l": 200})
    assert (small["j"], small["l"]) == (3, 200)
    assert np.prod(list(small.values())) <= 1_000_000
    assert min(small.values()) >= 3


def test_indices_of_one_mode_have_one_size() -> None:
    square = sp.eye_array(70, format="csr")
    call = tunable("s[] = A[i,k] * A[k,j] * x[l] * x[m]", {"A": square, "x": np.ones(90)}, {})
    small = small_sizes(call.assignments, {"i": 70, "k": 70, "j": 70, "l": 90, "m": 90}, {})
    assert small["i"] == small["k"] == small["j"] < 70
    assert small["l"] == small["m"] < 90
    assert np.prod(list(small.values())) <= 1_000_000
    kept = small_sizes(call.assignments, {"i": 70, "k": 70, "j": 70, "l": 90, "m": 90}, {"k": 70})
    assert kept["i"] == kept["j"] == 70


# ---------------------------------------------------------------- processes


def test_arrays_keep_their_strides_in_a_file() -> None:
    given = {"a": STRIDED, "b": PADDED, "c": np.asfortranarray(PADDED), "d": A, "e": 2.5}
    with operand_file(given) as path:
        found = read_operands(str(path))
    assert not path.exists()
    for name in "abc":
        assert found[name].strides == given[name].strides  # type: ignore[attr-defined]
        np.testing.assert_array_equal(found[name], given[name])
    with pytest.raises(UnpassableError), operand_file(lambda: 1):
        pass


@pytest.fixture
def fake() -> Iterator[BenchProcess]:
    sys.path.insert(0, str(Path(__file__).parent))
    child = ChildProcess("answers:answer")
    try:
        yield BenchProcess(child, Path("any"), usual=1e-4, spare=0.3)
    finally:
        child.close()
        sys.path.pop(0)


def test_plans_that_crash_or_hang_are_ended_and_others_go_on(fake: BenchProcess) -> None:
    fake.child.start()
    fake.spare = 20.0  # the process takes a moment to start
    assert fake.time("good").seconds == 5e-4
    crashed = fake.race("crash", "good", False)
    assert crashed.result == "crashed"
    assert "status 3" in crashed.note
    assert fake.race("good", "other", False).rival == 1e-3
    fake.spare = 0.3
    begin = perf_counter()
    assert fake.race("hang", "good", False).result == "timed out"
    assert perf_counter() - begin < 10
    fake.spare = 20.0
    assert fake.race("good", "other", False).result == "ok"
    assert fake.opened == 3


def test_a_process_that_ended_has_built_nothing(fake: BenchProcess) -> None:
    """Else its heir has no time to build the rival again."""
    fake.spare = 20.0
    assert fake.race("good", "other", False).result == "ok"
    assert fake.built == {"good", "other"}
    assert fake.race("crash late", "other", False).result == "crashed"
    assert fake.built == set()


def test_a_call_in_a_process_of_its_own() -> None:
    text, objects = KINDS["columns"]
    call = tunable(text, objects, {})
    plan = space_of(call).space.text(())
    with bench_process(call) as there:
        timed = there.time(plan)
        assert (timed.result, timed.note) == ("ok", "")
        assert there.usual == timed.seconds
        again = there.race(plan + "\n", plan, False)
        assert (again.result, again.rival is not None) in (("slower", True), ("ok", True))
        assert there.race("nonsense", plan, False).result == "refused"
        pid = there.child.pid
    assert there.child.pid is None and pid is not None


def test_what_a_plan_raises_comes_back_from_its_process() -> None:
    long = np.ones(3_000_000)
    call = tunable("C[i,j] = x[i] * z[j]", {"x": long, "z": long}, {})
    plan = space_of(call).space.text(())
    with bench_process(call) as there:
        timed = there.time(plan)
    assert (timed.result, timed.raised) == ("crashed", "OutOfMemoryError")
    assert "Expected memory for C" in timed.note


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(np.arange(4.0), (3, 4)), np.arange(12.0).reshape(3, 4)[:, ::-1],
        np.arange(24.0).reshape(4, 6)[::-2, ::2], np.zeros((0, 4))[:, ::-1],
    ],
)  # fmt: skip
def test_operands_keep_strides_of_any_sign(array: Any) -> None:
    with operand_file(array) as path:
        found = read_operands(str(path))
    np.testing.assert_array_equal(found, array)
    assert found.strides == array.strides or not array.size


def test_what_a_step_says_is_kept() -> None:
    timed = Timed("crashed", note="by signal 11")
    assert with_note(timed, "unchecked: large").note == "by signal 11"
    assert with_note(Timed("ok"), "unchecked: large").note == "unchecked: large"
