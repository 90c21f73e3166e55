"""Plans from texts compute what the call computes, or are passed over."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.call.prepare import prepare_computation, start
from taco_py.data.storage.pack import to_dense
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.running.execute.run import run
from taco_py.running.plan_texts.compare_plan import CallStatements, UnequalPlanError, check_agrees
from taco_py.running.plan_texts.fitted_plan import parsed_plan
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.tune_call import tunable
from tests.corpus.data import operands
from tests.corpus.expressions import CASES, Case
from tests.corpus.formats import operand_options, store

RANDOM = np.random.default_rng(0)
A = sp.random_array((60, 50), density=0.1, format="csr", rng=RANDOM)
B = sp.random_array((60, 50), density=0.1, format="csc", rng=RANDOM)
D, E, x, u = (RANDOM.random(s) for s in ((60, 50), (50, 40), 50, 60))
Call = tuple[str, dict[str, Any], dict[str, Any]]
OTHERS: tuple[Call, ...] = (
    ("y[i] = max(j, A[i,j] * x[j])", {"A": A, "x": x}, {}),
    ("y[i] = max(j, D[i,j] + u[i])", {"D": D, "u": u}, {}),
    ("y[i] = all(j, A[i,j])", {"A": A}, {}),
    ("K[i,j] = sum(k, (X[i,k] - Y[j,k])**2)", {"X": B, "Y": A}, {}),
    ("Y[i,j] = exp(D[i,j]) / sum(k, exp(D[i,k]))", {"D": D}, {}),
    ("y[i] = A[i,j] * x[j]", {"A": (A * 99).astype(np.int8), "x": x}, {}),
    ("y[i] = A[i,j] * x[j] + u[i]", {"A": A.astype(np.float32), "x": x, "u": u}, {}),
    ("y[i] = where(A[i,j] > 0.5, A[i,j] * x[j], 0)", {"A": A, "x": x}, {}),
    ("y[i] = A[i,j] * E[j,k] * v[k]", {"A": A, "E": E, "v": RANDOM.random(40)}, {}),
    ("y[i] = D[i,j] * E[j,k] * v[k]", {"D": D, "E": E, "v": x[:40]}, {"semiring": "min_plus"}),
    ("C[i,k] = A[i,j] * B[k,j]", {"A": A, "B": B}, {"semiring": "or_and"}),
    ("C[i,j] = D[i,j] * 2", {"D": D}, {"mask": A}),
    ("t[i,j] = D[i,j] * 2; y[i] = t[i,j] * x[j]", {"D": D, "x": x}, {"semiring": "max_times"}),
    ("t[i,j] = A[i,j] * 0; y[i] = t[i,j] * x[j]", {"A": A, "x": x}, {"semiring": "max_times"}),
    ("t[j] = 0 * x[j]; y[i] = D[i,j] * t[j]", {"D": D, "x": x}, {"semiring": "min_plus"}),
)


def space(text: str, objects: dict[str, Any], options: dict[str, Any]) -> CallSpace:
    call = tunable(text, objects, options)
    return space_of(call)


def statements_of(found: CallSpace) -> CallStatements:
    checked = found.prepared.checked
    made = checked.elaborated
    facts = {name: each.operand for name, each in checked.operands.items()}
    results = (*checked.statements.outputs.values(),)
    return CallStatements(checked.assignments, facts, made.types, results)


def accepts_all(found: CallSpace, numbers: Random, count: int) -> None:
    near = list(found.space.neighbours(()))
    points = [(), *numbers.sample(near, min(count, len(near))), found.space.random(numbers, 4)]
    for point in points:
        try:
            text = found.space.text(point)
        except ScheduleError:
            continue
        check_agrees(parsed_plan(text), statements_of(found))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plans_of_the_corpus_agree(case: Case) -> None:
    arrays = operands(case, "mixed")
    options = {name: operand_options(np.ndim(each), more=True) for name, each in arrays.items()}
    pick = len(case.text)
    objects = {n: store(e, options[n][pick % len(options[n])]) for n, e in arrays.items()}
    accepts_all(space(case.text, objects, {}), Random(pick), 2)


@pytest.mark.parametrize("call", OTHERS, ids=lambda call: call[0])
def test_plans_of_reductions_types_and_semirings_agree(call: Call) -> None:
    accepts_all(space(*call), Random(1), 6)


PLAN = """A: ds/float64/int32 of 60 by 50, 300 entries
x: d/float64 of 50, 50 entries
y[i] = sum(j, A[i,j] * x[j])    → d/float64 of 60, 60 entries    by loops(i,j)
    operands A: ds/float64/int32, x: d/float64
    result d/float64
    sizes j=A.1, i=A.0
sizes i=60, j=50
return y"""
T = "T[j] = x[j] * 2    → d/float64 of 50, 50 entries    by loops(j)\n    operands x: d/float64\n"
T += "    result d/float64\n    sizes j=x.0\n"
CHANGES = {
    "factor": [("A[i,j] * x[j])", "A[i,j] * x[j] * 2)")],
    "sign": [("A[i,j] * x[j])", "-(A[i,j] * x[j]))")],
    "reduction": [("sum(j,", "max(j,")],
    "operand left out": [("A[i,j] * x[j])", "x[j] * x[j])")],
    "operand twice": [("A[i,j] * x[j])", "A[i,j] * A[i,j] * x[j])")],
    "format": [("operands A: ds/float64/int32", "operands A: dd/float64")],
    "index type": [("operands A: ds/float64/int32", "operands A: ds/float64/int64")],
    "type of levels": [("operands A: ds/float64/int32", "operands A: ds/float64/uq")],
    "type of values": [("x: d/float64\n", "x: d/float32\n")],
    "type of the result": [("result d/float64", "result d/float32")],
    "name": [("A[i,j] * x[j])", "A[i,j] * z[j])")],
    "size": [("j=A.1", "j=A.0")],
    "sizes left out": [("sizes j=A.1, i=A.0", "sizes i=A.0")],
    "digits": [("A[i,j] * x[j])", "A[i,j] * x[j]) + 1e20 * A[i,i]")],
    "step": [("y[i] =", T + "y[i] ="), ("A[i,j] * x[j])", "A[i,j] * T[j])"), (", x: d", ", T: d")],
    "no loop": [("by loops(i,j)", "by loops(i)")],
    "loop twice": [("by loops(i,j)", "by loops(i,j,j)")],
    "rough step": [
        ("y[i] =", T.replace(" * 2", " * 1").replace("float64", "float32", 1) + "y[i] ="),
        ("A[i,j] * x[j])", "A[i,j] * T[j])"),
        (", x: d/float64", ", T: d/float32"),
    ],
}


def changed(name: str) -> str:
    text = PLAN
    for old, new in CHANGES[name]:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def prepared(text: str) -> Any:
    call = tunable("y[i] = A[i,j] * x[j]", {"A": A, "x": x}, {})
    return prepare_computation(call.with_options(replace(call.options, plan=text)))


def test_a_true_plan_is_taken() -> None:
    prepared(PLAN)
    split = PLAN.replace("y[i] =", T.replace(" * 2", " * 1") + "y[i] =")
    split = split.replace("A[i,j] * x[j])", "A[i,j] * T[j])").replace(", x: d/", ", T: d/")
    prepared(split)


@pytest.mark.parametrize("name", CHANGES)
def test_plans_of_something_else_are_refused(name: str) -> None:
    with pytest.raises(ScheduleError):
        prepared(changed(name))


def test_a_plan_of_another_value_is_told_with_its_element() -> None:
    with pytest.raises(UnequalPlanError, match=r"whose element y\[0\] is another expression"):
        prepared(changed("factor"))


def test_records_of_something_else_are_passed_over_and_told_once(tmp_path: Path) -> None:
    text, path = "y[i] = A[i,j] * x[j]", tmp_path / "others.sqlite"
    with tp.TuningStore(path) as kept:
        key = kept.key(text, A=A, x=x)
        for place, name in enumerate(("factor", "reduction", "name")):
            kept.add(tp.TuningRecord(key, changed(name), name, seconds=1e-9 * (place + 1)))
        kept.add(tp.TuningRecord(key, PLAN, "true", seconds=1.0))
    with tp.tuning_store(path):
        with pytest.warns(TuningStoreWarning, match="not shown to compute this call") as told:
            y = tp.evaluate(text, A=A, x=x, schedule="tuned")
        assert len([each for each in told if each.category is TuningStoreWarning]) == 1
        np.testing.assert_allclose(y, A @ x)
        shown = str(tp.explain(text, A=A, x=x, schedule="tuned"))
    assert "true; exact" in shown
    assert "passed over" in shown and "are not shown to compute this call" in shown


WORDS = [
    "A",
    "x",
    "y",
    "T",
    "d",
    "ds",
    "s",
    "float64",
    "float32",
    "int64",
    "0",
    "1",
    "2",
    "i",
    "j",
    "k",
    "max",
    "sum",
    "*",
    "+",
    "-",
    "serial()",
    "1e300",
]


def mutated(text: str, numbers: Random) -> str:
    for _ in range(numbers.choice((1, 1, 2))):
        words = re.findall(r"\w+|\s+|[^\w\s]", text)
        place, kind = numbers.randrange(len(words)), numbers.random()
        if kind < 0.4:
            other = numbers.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        elif kind < 0.8:
            words[place] = numbers.choice((*WORDS, *words))
        else:
            del words[place]
        text = "".join(words)
    return text


@pytest.mark.parametrize("call", OTHERS[::3], ids=lambda call: call[0])
def test_mutated_texts_compute_the_same_or_are_refused(call: Call) -> None:
    found, numbers = space(*call), Random(2)
    text, refused = found.space.text(()), 0
    plain = found.prepared
    wanted = to_dense(run(plain.plan, start(plain, found.space.settings, None)))
    for _ in range(60):
        settings = replace(found.space.settings, plan=mutated(text, numbers))
        try:
            ready = prepare_computation(found.computation.with_options(settings))
        except ScheduleError:
            refused += 1
            continue
        got = to_dense(run(ready.plan, start(ready, settings, None)))
        np.testing.assert_allclose(got, wanted, rtol=1e-6, err_msg=settings.plan)
    assert refused > 20
