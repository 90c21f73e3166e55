"""Calibrated prices: fitted to probes, kept beside the kernels, and followed by plans."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.toolchain.errors import KernelCacheWarning, NoCompilerError
from codegen.toolchain.store import Store
from taco_py.calls.call.prepare import prepare_computation
from taco_py.compiler.cost.calibrated import (
    COEFFICIENTS,
    UNCHANGED,
    as_shipped,
    costs_of,
    machine_here,
    parts,
    price_version,
    seconds_of,
    with_factors,
)
from taco_py.compiler.cost.machine import NOMINAL, machine_of
from taco_py.data import kept_calibration
from taco_py.data.kept_calibration import (
    AS_SHIPPED,
    VARIABLE,
    Calibration,
    MeasuredProbe,
    calibration_here,
    calibration_identity,
    keep_calibration,
    machine_digest,
    path_here,
)
from taco_py.data.kernels import KERNELS
from taco_py.tool.cli import main
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.calibration import calibrate_price
from taco_py.tuning.calibration.fit_factors import fit_factors
from taco_py.tuning.calibration.probes import PROBES, Probe, full, sparse
from taco_py.tuning.prices.plan_seconds import PlanSeconds
from tests.prices.test_forest import drawn_model

SPMV = "y[i] = A[i,j] * x[j]"
A = sp.random_array((300, 200), density=0.05, format="csr", rng=np.random.default_rng(0))
OPERANDS: dict[str, Any] = {"A": A, "x": np.ones(200)}
SMALL = (
    Probe("vector", SPMV, {"A": sparse(200, 200, 5), "x": full(200)}),
    Probe("sum", "z[i] = x[i] + y[i]", {"x": full(900), "y": full(900, seed=2)}),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of kernels of its own, where a calibration that is kept is followed."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(KERNELS, "_store", Store(tmp_path / "cache"))
    monkeypatch.setattr(calibrate_price, "PROBES", SMALL)
    KERNELS.memo.clear()
    yield tmp_path / "cache"
    for name in [name for name in KERNELS.told if name.startswith(kept_calibration.NAME)]:
        del KERNELS.told[name]
    KERNELS.memo.clear()


def made_up(**factors: float) -> Calibration:
    known = {name: factors.get(name, 1.0) for name in COEFFICIENTS}
    probe = MeasuredProbe("some", 1, 2e-6, 1e-6, 2e-6, "iterations")
    words = (machine_digest(), price_version(), "some processor", "gcc 1.0", "2021-01-01")
    return Calibration(*words, tuple(known.items()), (probe,))


def price_line() -> str:
    lines = tp.explain(SPMV, OPERANDS).splitlines()
    (line,) = [line for line in lines if line.startswith("price ")]
    return line.removeprefix("price").strip()


# ---------------------------------------------------------------- coefficients


def test_each_cost_has_one_coefficient_or_is_left_as_it_is() -> None:
    named = Counter(cost for each in COEFFICIENTS.values() for cost in each.costs)
    assert set(named.values()) == {1} and not UNCHANGED & named.keys()
    assert {*named} | UNCHANGED == {*costs_of(NOMINAL)}
    assert len(COEFFICIENTS) <= 8


def test_factors_of_1_leave_the_machine_as_it_is() -> None:
    assert with_factors(NOMINAL, {}) == NOMINAL


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_a_factor_changes_the_seconds_of_its_own_costs_alone(name: str) -> None:
    changed = with_factors(NOMINAL, {name: 0.25})
    for other in COEFFICIENTS:
        ratio = seconds_of(changed, other) / seconds_of(NOMINAL, other)
        assert ratio == pytest.approx(0.25 if other == name else 1.0)


@pytest.mark.parametrize("probe", PROBES[:11], ids=lambda probe: probe.name)
def test_parts_add_up_to_the_price(probe: Probe) -> None:
    call = space_of(tunable(probe.text, probe.make_operands(), {"threads": probe.threads}))
    plan, factors = call.space.plan(()), {"iterations": 0.4, "lines": 2.0}

    def price(machine: Any) -> float:
        return replace(call.priced, machine=machine).plan(plan)

    for at in ({}, factors):
        found = parts(price, NOMINAL, at)
        whole = sum(seconds * at.get(name, 1.0) for name, seconds in found.items())
        assert whole == pytest.approx(price(with_factors(NOMINAL, at)), rel=1e-3)


def test_probes_are_of_each_kind_and_named_once() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES) >= 38
    assert {probe.threads for probe in PROBES} == {1, 2}


# ---------------------------------------------------------------- fitting


def test_factors_that_times_have_are_found() -> None:
    rng = np.random.default_rng(3)
    rows = rng.random((40, 4)) ** 3 * 10.0 ** rng.uniform(-6, -3, (40, 1))
    factors = np.array([0.3, 2.0, 0.8, 1.4])
    assert fit_factors(rows, rows @ factors) == pytest.approx(factors, rel=0.1)


def test_a_factor_that_no_time_needs_stays() -> None:
    rows = np.array([[1e-6, 0.0], [3e-5, 0.0], [1e-4, 0.0]])
    assert fit_factors(rows, rows.sum(axis=1) * 3.0) == pytest.approx([3.0, 1.0], rel=0.1)


def test_one_time_that_no_factor_explains_changes_little() -> None:
    rows = np.linspace(1.0, 3.0, 20)[:, None] * 1e-6
    measured = rows[:, 0] * 0.5
    measured[0] *= 1000.0
    assert fit_factors(rows, measured) == pytest.approx([0.5], rel=0.2)


# ---------------------------------------------------------------- kept and followed


def test_plans_follow_what_is_kept_and_what_was_planned_before_is_forgotten(home: Path) -> None:
    assert price_line() == "as shipped"
    expected = tp.rank(SPMV, OPERANDS, limit=1)[0].seconds
    keep_calibration(made_up(iterations=0.5, calls=2.0))
    assert price_line() == "calibrated 2021-01-01 on some processor, gcc 1.0"
    assert machine_here("c").step_seconds == 0.5 * NOMINAL.step_seconds
    assert tp.rank(SPMV, OPERANDS, limit=1)[0].seconds != expected
    KERNELS.memo.clear()  # as another process
    assert machine_here("c").step_seconds == 0.5 * NOMINAL.step_seconds
    assert path_here().parent == home


def test_plans_of_two_prices_do_not_meet_in_one_memo(home: Path) -> None:
    computation = tunable(SPMV, OPERANDS, {})
    plans = []
    for calibration in (made_up(iterations=0.5), made_up(iterations=0.25), AS_SHIPPED):
        KERNELS.told[kept_calibration.NAME] = calibration  # without forgetting anything
        plans += [prepare_computation(computation).plan for _ in range(2)]
    steps = [plan.machine.step_seconds / NOMINAL.step_seconds for plan in plans]
    assert steps == [0.5, 0.5, 0.25, 0.25, 1.0, 1.0]
    assert plans[0] is plans[1] and plans[2] is plans[3]


def test_results_are_the_same(home: Path) -> None:
    before = tp.evaluate(SPMV, OPERANDS)
    keep_calibration(made_up(iterations=0.1, merges=5.0, writes=7.0, vectors=0.2))
    assert np.allclose(tp.evaluate(SPMV, OPERANDS), before)


def test_kernels_of_a_gpu_have_the_price_as_shipped(home: Path) -> None:
    keep_calibration(made_up(iterations=0.5))
    assert machine_here("cuda-emulated") == machine_of("cuda-emulated")


def test_short_ways_on_disk_are_those_of_one_price(home: Path) -> None:
    assert calibration_identity() == ""
    keep_calibration(made_up(iterations=0.5))
    one = calibration_identity()
    keep_calibration(made_up(iterations=0.25))
    assert one and calibration_identity() not in ("", one)


def test_learned_prices_correct_the_price_as_shipped(home: Path) -> None:
    price = drawn_model(0)
    before = [row.seconds for row in tp.rank(SPMV, OPERANDS, price=price, limit=3)]
    keep_calibration(made_up(iterations=0.5))
    call = space_of(tunable(SPMV, OPERANDS, {}))
    assert PlanSeconds(call.priced, price).priced.machine == NOMINAL
    assert PlanSeconds(call.priced, None).priced.machine == machine_here("c")
    after = [row.seconds for row in tp.rank(SPMV, OPERANDS, price=price, limit=3)]
    assert after == pytest.approx(before)
    assert as_shipped(machine_here("c")) == NOMINAL


def test_the_environment_turns_it_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_calibration(made_up(iterations=0.5))
    monkeypatch.setenv(VARIABLE, "off")
    KERNELS.memo.clear()
    assert calibration_here() is None and price_line() == "as shipped"


@pytest.mark.parametrize("other", ["version", "machine"])
def test_that_of_another_version_or_compiler_is_not_used(home: Path, other: str) -> None:
    keep_calibration(replace(made_up(iterations=0.5), version="0.0 of before"))
    if other == "machine":
        keep_calibration(made_up(iterations=0.5))
        KERNELS.compile_with(("-O1",))
    try:
        assert machine_here("c") == NOMINAL
    finally:
        KERNELS.compile_with(())


def with_field(home: Path, name: str, value: Any) -> bytes:
    """The file of a calibration with another value in a field, and the digest of that."""
    fields = json.loads(path_here().read_bytes())
    del fields["digest"]
    fields[name] = value
    return json.dumps({**fields, "digest": kept_calibration.checksum_of(fields)}).encode()


DAMAGE = {
    "empty": lambda home: b"",
    "cut": lambda home: path_here().read_bytes()[:-40],
    "changed": lambda home: path_here().read_bytes().replace(b"0.5", b"0.4"),
    "a list": lambda home: b"[1, 2]",
    "NaN": lambda home: with_field(home, "factors", {"iterations": float("nan")}),
    "negative": lambda home: with_field(home, "factors", {"iterations": -1.0}),
    "zero": lambda home: with_field(home, "factors", {"iterations": 0}),
    "infinite": lambda home: with_field(home, "factors", {"iterations": float("inf")}),
    "a word": lambda home: with_field(home, "factors", {"iterations": "much"}),
    "no factors": lambda home: with_field(home, "factors", None),
    "a probe of NaN": lambda home: with_field(home, "probes", [["p", 1, float("nan"), 1, 1, "x"]]),
    "a short probe": lambda home: with_field(home, "probes", [["p"]]),
    "of another machine": lambda home: with_field(home, "machine", "0" * 32),
    "nested": lambda home: b"[" * 100_000,
    "no text": lambda home: b"\xff\xfe\x00",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_is_warned_of_once(home: Path, damage: Any) -> None:
    keep_calibration(made_up(iterations=0.5))
    path_here().write_bytes(damage(home))
    KERNELS.memo.clear()
    with pytest.warns(KernelCacheWarning, match="prices are as shipped") as told:
        assert machine_here("c") == NOMINAL
        KERNELS.memo.clear()
        assert machine_here("c") == NOMINAL and price_line() == "as shipped"
    assert len(told) == 1


def test_what_others_may_have_written_is_not_used(home: Path) -> None:
    keep_calibration(made_up(iterations=0.5))
    path_here().chmod(0o666)
    KERNELS.memo.clear()
    with pytest.warns(KernelCacheWarning, match="may be written by others"):
        assert machine_here("c") == NOMINAL


# ---------------------------------------------------------------- measured


def test_it_measures_keeps_and_prints_a_table(home: Path) -> None:
    report = tp.calibrate(seconds=5.0)
    assert report.saved and report.factors.keys() == COEFFICIENTS.keys()
    assert calibration_here() == report.calibration
    head, row, *lines = str(report).splitlines()
    assert head == report.calibration.label and head.startswith("calibrated 2")
    assert row.split() == ["coefficient", "before", "after", "probes", "off", "by"]
    assert [line.split()[0] for line in lines] == [*COEFFICIENTS, "all", "saved"]
    assert f"price     {head}" in tp.explain(SPMV, OPERANDS)
    assert "<pre>calibrated" in report._repr_html_()


def test_nothing_is_kept_that_is_not_asked_for_or_not_complete(home: Path) -> None:
    report = tp.calibrate(seconds=5.0, save=False)
    assert not report.saved and "not to be saved" in str(report)
    assert calibration_here() is None
    report = tp.calibrate(seconds=1e-9)
    assert not report.saved and "1 of 2 probes were not measured" in str(report)
    assert not list(home.glob("*.json")) and price_line() == "as shipped"


def test_an_interrupt_keeps_what_there_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_calibration(made_up(iterations=0.5))
    before = path_here().read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate_price._RunningProbe, "time", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tp.calibrate(seconds=5.0)
    assert path_here().read_bytes() == before
    assert machine_here("c").step_seconds == 0.5 * NOMINAL.step_seconds


@pytest.mark.parametrize("seconds", [0, -1, "3", float("nan"), None])
def test_seconds_that_are_none_are_refused(seconds: Any) -> None:
    with pytest.raises(tp.OperandTypeError, match="Expected seconds to be"):
        tp.calibrate(seconds)


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.parent.joinpath("file").write_text("")
    monkeypatch.setattr(KERNELS, "_store", Store(home.parent / "file" / "below"))
    monkeypatch.setattr(calibrate_price, "_prepare", None)
    with pytest.raises(OSError, match="file"):
        tp.calibrate(seconds=5.0)


def test_without_a_compiler_prices_are_as_shipped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_calibration(made_up(iterations=0.5))

    def none() -> Path:
        raise NoCompilerError("Expected a C compiler, found none", hint="install gcc")

    monkeypatch.setattr(kept_calibration, "path_here", none)
    monkeypatch.setattr(calibrate_price, "path_here", none)
    KERNELS.memo.clear()
    assert machine_here("c") == NOMINAL
    with pytest.raises(tp.CompilerError, match="found none"):
        tp.calibrate(seconds=5.0)


# ---------------------------------------------------------------- the command


def test_the_command_prints_the_table_and_removes_what_was_kept(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "--seconds", "5", "--dry-run"]) == 0
    assert "not to be saved" in capsys.readouterr().out and calibration_here() is None
    assert main(["calibrate", "--seconds", "5"]) == 0
    assert "saved     yes" in capsys.readouterr().out and calibration_here() is not None
    others = {path.name for path in home.iterdir()} - {path_here().name}
    assert main(["calibrate", "--reset"]) == 0
    assert capsys.readouterr().out == "prices are as shipped\n" and calibration_here() is None
    assert {path.name for path in home.iterdir()} == others
    assert main(["calibrate", "--reset"]) == 0
    assert capsys.readouterr().out == "prices are as shipped, as they were\n"


def test_the_command_refuses_what_is_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--seconds", "-1"]) == 2
    assert "Expected seconds to be" in capsys.readouterr().err
