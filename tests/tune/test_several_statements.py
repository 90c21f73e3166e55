"""Texts of several statements tuned as one computation: keys, plans, results, later processes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.call.compute import compute
from taco_py.calls.call.prepare import prepare_computation
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.tune_call import tunable

NUMBERS = np.random.default_rng(0)
A = sp.random_array((40, 30), density=0.2, format="csr", rng=NUMBERS)
B = sp.random_array((30, 20), density=0.2, format="csr", rng=NUMBERS)
D = NUMBERS.random((40, 30))
x, v, b = NUMBERS.random(30), NUMBERS.random(20), NUMBERS.random(40)
BLOCKS = sp.bsr_array(sp.kron(sp.eye_array(10), np.ones((3, 3))).tocsr(), blocksize=(3, 3))
NORM = "z[i] = A[i,j] * x[j]; s = z[i] * z[i]"
Case = tuple[str, dict[str, Any], dict[str, Any]]
CASES: dict[str, Case] = {
    "several": (NORM, {"A": A, "x": x}, {}),
    "outputs": (NORM, {"A": A, "x": x}, {"outputs": ("s", "z")}),
    "inlined": ("t[i,j] = A[i,j] * D[i,j]; y[i] = t[i,j] * x[j]", {"A": A, "D": D, "x": x}, {}),
    "fused": (
        "P[i,k] = A[i,j] * B[j,k]; y[i] = P[i,k] * v[k]",
        {"A": A, "B": B, "v": v},
        {"format": {"P": "dd"}},
    ),
    "accumulation": (
        "y[i] = A[i,j] * x[j]; y[i] += b[i]; q = y[i]", {"A": A, "x": x, "b": b}, {}
    ),
    "contractions": (
        "y[i] = A[i,j] * B[j,k] * v[k]; w[i] = y[i] + b[i]",
        {"A": A, "B": B, "v": v, "b": b},
        {"outputs": ("w", "y")},
    ),
    "semiring": (
        "y[i] = D[i,j] * x[j]; d[i] = y[i] + b[i]",
        {"D": D, "x": x, "b": b},
        {"semiring": "min_plus"},
    ),
    "mask": ("t[i,j] = D[i,j] * 2; y[i,j] = t[i,j] + 1", {"D": D}, {"mask": A}),
    "fill values": (
        "t[i,j] = A[i,j] + 1; y[i] = t[i,j] * x[j]",
        {"A": tp.tensor(A), "x": x},
        {"outputs": ("t", "y")},
    ),
    "subscripts": ("d[i] = D[i,2*j]; s[i] = d[i] * d[i]", {"D": D}, {}),
    "blocks": ("z[i] = K[i,j] * x[j]; s = z[i] * z[i]", {"K": BLOCKS, "x": x}, {}),
    "16 bits": ("t[i] = D[i,j]; u[i] = t[i] * t[i]", {"D": D.astype(np.float16)}, {}),
    "wide sums": ("t[i] = I[i,j]; u = t[i]", {"I": (D * 99).astype(np.int8)}, {}),
    "sizes": (
        "y[i] = x[i] * 2; z[i] = b[i] * 3", {"x": x, "b": b}, {"outputs": ("y", "z")}
    ),
    "stretched": ("z[i,j] = D[i,j] + c[j]; s = z[i,j]", {"D": D, "c": np.ones(1)}, {}),
}  # fmt: skip


def dense(value: Any) -> np.ndarray[Any, Any]:
    if sp.issparse(value):
        return np.asarray(value.toarray())
    return np.asarray(value.to_numpy() if isinstance(value, tp.Tensor) else value)


def check(results: Any, case: Case) -> None:
    """Compare results with the oracle's."""
    text, operands, options = case
    exact = {name: value for name, value in options.items() if name != "format"}
    expected = tp.evaluate_dense(text, operands, **exact)
    several = isinstance(expected, tuple)
    pairs = zip(results, expected, strict=True) if several else ((results, expected),)
    for result, wanted in pairs:
        close = 1e-2 if dense(result).dtype == np.float16 else 1e-9
        np.testing.assert_allclose(dense(result), wanted, rtol=close)


@pytest.mark.parametrize("name", CASES)
def test_the_plan_of_the_store_computes_what_the_oracle_does(name: str) -> None:
    text, operands, options = case = CASES[name]
    with tp.TuningStore() as store, tp.tuning_store(store):
        best = tp.tune(text, operands, trials=3, store=store, progress=False, **options)
        assert best.where == "" and best.trials == 3
        assert not [r for r in store.records(all=True) if r.result in ("wrong", "crashed")]
        tuned = {**options, "schedule": "tuned"}
        assert f"tuned     {best.label}; exact" in tp.explain(text, operands, **tuned)
        for _ in range(2):  # of which the second takes a fast path
            check(tp.evaluate(text, operands, **tuned), case)


@pytest.mark.parametrize("name", CASES)
def test_every_plan_of_the_space_computes_what_auto_does(name: str) -> None:
    text, operands, options = case = CASES[name]
    call = tunable(text, operands, options)
    plans, numbers = space_of(call), Random(name)
    near = list(plans.space.neighbours(()))
    ran = 0
    for point in [*numbers.sample(near, min(6, len(near))), plans.space.random(numbers, 4)]:
        try:
            tuned = replace(call.options, plan=plans.space.text(point))
            prepare_computation(call.with_options(tuned))
        except ScheduleError as error:  # a point that its kernels do not allow
            assert "is another expression" not in error.message
            continue
        ran += 1
        check(compute(call.with_options(tuned)), case)
    assert ran


def test_contractions_of_each_statement_are_in_the_space() -> None:
    call = tunable(*CASES["contractions"])
    axes = {axis.name: axis for axis in space_of(call).space.planner}
    options = axes["plan: contraction of y"].options
    assert len(options) > 1 and "plan: contraction of w" not in axes
    assert all(dict(o.changes)["paths"][0][0] == "y" for o in options if o.changes)


def test_keys_are_of_all_statements_and_of_what_is_wanted() -> None:
    operands = {"A": A, "x": x}
    with tp.TuningStore() as store:
        key = store.key(NORM, operands)
        others = (
            store.key(NORM, operands, outputs="z"),
            store.key(NORM, operands, outputs=("s", "z")),
            store.key(NORM, operands, outputs=("z", "s")),
            store.key(NORM.replace("z[i] * z[i]", "z[i]"), operands),
            store.key("t[i] = A[i,j] * x[j]; s = t[i] * t[i] + t[i]", operands),
            store.key(NORM, {"A": A, "x": x.astype(np.float32)}),
        )
        assert len({each.hash for each in (key, *others)}) == 1 + len(others)
        renamed = "unread[a] = M[a,b]; q[a] = M[a,b] * u[b]; r = q[a] * q[a]"
        assert store.key(renamed, M=A, u=x) == key
        alone = store.key("z[i] = A[i,j] * x[j]", operands)
        assert store.key(NORM, operands, outputs="z").hash == alone.hash


def test_a_plan_is_taken_by_calls_of_other_names() -> None:
    with tp.TuningStore() as store, tp.tuning_store(store):
        tp.tune(NORM, A=A, x=x, outputs=("z", "s"), trials=2, store=store, progress=False)
        text = "q[a] = M[a,b] * u[b]; r = q[a] * q[a]"
        options: dict[str, Any] = {"outputs": ("q", "r"), "schedule": "tuned"}
        assert "; exact, from" in tp.explain(text, M=A, u=x, **options)
        q, r = tp.evaluate(text, M=A, u=x, **options)
    np.testing.assert_allclose(q, A @ x)
    np.testing.assert_allclose(r, (A @ x) @ (A @ x))


def test_a_plan_of_another_statement_is_passed_over() -> None:
    other = NORM.replace("z[i] * z[i]", "z[i] * z[i] * 2")
    with tp.TuningStore() as store, tp.tuning_store(store):
        best = tp.tune(other, A=A, x=x, outputs=("z", "s"), trials=1, store=store, progress=False)
        key = store.key(NORM, A=A, x=x, outputs=("z", "s"))
        store.add(tp.TuningRecord(key, best.plan, "another", seconds=1e-9))
        with pytest.warns(TuningStoreWarning, match="element s is another expression"):
            z, s = tp.evaluate(NORM, A=A, x=x, outputs=("z", "s"), schedule="tuned")
    np.testing.assert_allclose(s, z @ z)


PROCESS = """
import numpy as np, scipy.sparse as sp, sys, taco_py as tp
A = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
x = np.ones(30)
call = {"A": A, "x": x, "outputs": ("s", "z")}
text = "z[i] = A[i,j] * x[j]; s = z[i] * z[i]"
path, word = sys.argv[1:]
if word == "tune":
    tp.tune(text, **call, trials=3, store=path, progress=False)
    with tp.TuningStore(path) as store:
        store.export(path + ".jsonl")
elif word == "load":
    with tp.TuningStore(path) as store:
        assert store.load(path.replace("other", "tuned") + ".jsonl") > 0
    tp.tuning_store(path)
    told = tp.explain(text, **call, schedule="tuned")
    s, z = tp.evaluate(text, **call, schedule="tuned")
    assert np.allclose(z, A @ x) and np.allclose(s, z @ z)
    print("; exact, from" in told)
else:
    s, z = tp.evaluate(text, **call, schedule="measure")
    assert np.allclose(z, A @ x) and np.allclose(s, z @ z)
    print(tp.explain(text, **call, schedule="measure").split("\\n")[0])
"""


def output(folder: Path, *words: str) -> str:
    environment = {**os.environ, "TACO_PY_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", PROCESS, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_process_takes_the_plan_from_an_exported_store(tmp_path: Path) -> None:
    output(tmp_path, str(tmp_path / "tuned"), "tune")
    assert output(tmp_path, str(tmp_path / "other"), "load") == "True"


def test_what_was_measured_is_remembered_by_a_second_process(tmp_path: Path) -> None:
    first = output(tmp_path, "", "measure")
    assert first.startswith("measured  ") and first.endswith("in this process")
    assert output(tmp_path, "", "measure").endswith("in an earlier process, remembered")


@pytest.mark.parametrize("name", ("outputs", "semiring", "mask", "subscripts", "16 bits"))
def test_the_fastest_of_what_is_measured_computes_what_the_oracle_does(name: str) -> None:
    text, operands, options = case = CASES[name]
    check(tp.evaluate(text, operands, **options, schedule="measure"), case)


@pytest.mark.parametrize("form", ("ELL", "DIA"))
def test_operands_whose_format_stores_few_patterns_are_tuned(form: str) -> None:
    stored = tp.tensor(A, format=form)
    with tp.TuningStore() as store, tp.tuning_store(store):
        best = tp.tune(NORM, A=stored, x=x, trials=2, store=store, progress=False)
        assert best.counts["ok"] >= 1
        check(tp.evaluate(NORM, A=stored, x=x, schedule="tuned"), (NORM, {"A": A, "x": x}, {}))


def test_names_are_checked_against_all_statements() -> None:
    with pytest.raises(tp.OperandError, match="found Q"):
        tp.tune(NORM, A=A, x=x, Q=x, store=tp.TuningStore())
    with pytest.raises(tp.OperandError, match="outputs among the names"):
        tp.tune(NORM, A=A, x=x, outputs="w", store=tp.TuningStore())
