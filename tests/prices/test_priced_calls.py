"""Calls that name a learned price: the results are those of other calls, and the plan is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.tuning.bench import priced_schedule
from taco_py.tuning.prices.forest import Forest, forest_of
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.model_file import Origin
from taco_py.tuning.prices.price_model import PriceModel
from tests.prices.test_forest import drawn_model, wide_model

COUNT = len(FEATURES)
rng = np.random.default_rng(0)
A = sp.random_array((300, 200), density=0.05, format="csr", rng=rng)
M = sp.random_array((300, 200), density=0.1, format="csr", rng=rng)
X, Y = rng.random((300, 6)), rng.random((200, 6))
CALLS: dict[str, dict[str, Any]] = {
    "y[i] = A[i,j] * x[j]": {"A": A, "x": rng.random(200)},
    "C[i,k] = A[i,j] * B[j,k]": {"A": A, "B": rng.random((200, 8))},
    "C[i,j] = A[i,k] * B[k,j]": {"A": A, "B": A.T.tocsr()},
    "C[i,j] = A[i,j] + B[i,j]": {"A": A, "B": M},
    "D[i,j] = A[i,j] * X[i,k] * Y[j,k]": {"A": A, "X": X, "Y": Y},
    "G[k,l] = X[i,k] * A[i,j] * Y[j,l]": {"A": A, "X": X, "Y": Y},
    "s[i] = sum(j, A[i,j]); y[i,j] = A[i,j] / (s[i] + 1)": {"A": A},
    "t[i] = x[i] < z[i]; s = sum(i, t[i])": {"x": rng.random(9), "z": rng.random(9)},
    "y[p[i]] += A[i,j]": {"A": A, "p": rng.integers(0, 40, 300), "y": np.zeros(40)},
}


def constant(value: float) -> Forest:
    return forest_of([{"value": value}])


def by_feature(name: str, threshold: float, below: float, above: float) -> PriceModel:
    """A model that adds one number to kernels with a count up to a threshold, another to others."""
    feature = [*FEATURES].index(name)
    tree = {
        "feature": feature, "threshold": threshold,
        "left": {"value": below}, "right": {"value": above},
    }  # fmt: skip
    forest = forest_of([tree])
    return PriceModel(forest, constant(0.1), np.full(COUNT, -2000.0), np.full(COUNT, 2000.0))


def dense(value: Any) -> Any:
    return value.toarray() if sp.issparse(value) else np.asarray(value)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", CALLS)
def test_results_are_those_of_the_analytic_price(text: str, seed: int) -> None:
    wanted = tp.evaluate(text, CALLS[text])
    found = tp.evaluate(text, CALLS[text], price=drawn_model(seed))
    np.testing.assert_allclose(dense(found), dense(wanted), rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_results_that_one_kernel_makes_are_all_stored(seed: int) -> None:
    """Loops that would lose the second result are no plans, neither by a price nor by time."""
    text = "h[i,j] = max(X[i,k] * W[k,j] + b[j], 0); s[j] = sum(i, h[i,j])"
    operands = {"X": X, "W": rng.random((6, 9)), "b": rng.random(9)}
    wanted = tp.evaluate(text, operands, outputs=("h", "s"))
    found = tp.evaluate(text, operands, outputs=("h", "s"), price=wide_model(seed))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("more", [
    {"semiring": "max_times"}, {"mask": M}, {"dtype": "float32", "casting": "same_kind"},
    {"format": "csc"},
    {"threads": 1}, {"schedule": "tuned"}, {"schedule": "measure"}, {"static": {"j": 200}},
    {"out": np.zeros((300, 200)), "format": "dd"}, {"schedule": "reorder(j,i)"},
])  # fmt: skip
def test_other_options_stand_beside_it(more: dict[str, Any]) -> None:
    text, operands = "C[i,j] = A[i,j] * B[i,j]", {"A": A, "B": M + A}
    wanted = dense(tp.evaluate(text, operands, **more)).copy()
    found = tp.evaluate(text, operands, price=drawn_model(1), **more)
    np.testing.assert_allclose(dense(found), wanted, rtol=1e-6)


def test_einsum_takes_it() -> None:
    found = tp.einsum("ij,jk->ik", A, Y, price=drawn_model(2))
    np.testing.assert_allclose(found, A @ Y)
    text = tp.explain("ij,jk->ik", A, Y, price=drawn_model(2))
    assert text.startswith("price     learned")


def test_the_price_decides_and_explain_says_so() -> None:
    """The model finds kernels of one thread cheap, so that they are chosen."""
    text, operands = "C[i,k] = A[i,j] * B[j,k]", CALLS["C[i,k] = A[i,j] * B[j,k]"]
    model = replace(
        by_feature("serial", 0.5, 6.0, -6.0),
        origin=Origin("Z80", "gcc 1", "1999-01-01", 7),
        digest="",
    )
    found = tp.explain(text, operands, price=model, threads=2)
    assert "serial()" in found and "learned 1999-01-01 on Z80, another machine" in found
    assert "serial()" in tp.rank(text, operands, price=model, threads=2)[0].plan
    assert tp.explain(text, operands, threads=2).startswith("runs")


ROOT = np.zeros(1, np.int32)
NAN = Forest(ROOT, np.array([np.inf]), ROOT, ROOT, np.array([np.nan]), ROOT, 0)
NOTHING: dict[str, Callable[[], PriceModel]] = {
    "NaN": lambda: PriceModel(NAN, NAN, np.full(COUNT, -2e3), np.full(COUNT, 2e3)),
    "kernels unlike all others": lambda: PriceModel(
        constant(1.0), constant(1.0), np.full(COUNT, -1e4), np.full(COUNT, -9e3)
    ),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_the_analytic_plan_stays_where_nothing_is_known(kind: str) -> None:
    text, operands = "C[i,k] = A[i,j] * B[j,k]", CALLS["C[i,k] = A[i,j] * B[j,k]"]
    tp.explain(text, operands, frontier_budget=0)  # the kernel is compiled
    found = tp.explain(text, operands, price=NOTHING[kind](), frontier_budget=0)
    head, rest = found.split("runs ", 1)
    assert "by the analytic price, for no kernel alike was measured" in head
    assert "runs " + rest == tp.explain(text, operands, frontier_budget=0)


def test_calls_that_were_made_before_choose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text, operands = "C[i,k] = A[i,j] * B[j,k]", CALLS["C[i,k] = A[i,j] * B[j,k]"]
    model = drawn_model(5)
    first = tp.evaluate(text, operands, price=model)

    def refuse(*_: object) -> None:
        raise AssertionError("plans are priced again")

    monkeypatch.setattr(priced_schedule, "priced", refuse)
    np.testing.assert_array_equal(tp.evaluate(text, operands, price=model), first)
    with pytest.raises(AssertionError, match="priced again"):
        tp.evaluate(text, operands, price=drawn_model(6))


def test_tuning_measures_in_its_order() -> None:
    text, operands = "C[i,k] = A[i,j] * B[j,k]", CALLS["C[i,k] = A[i,j] * B[j,k]"]
    with tp.TuningStore() as store:
        best = tp.tune(text, operands, price=drawn_model(3), trials=4, store=store, threads=2)
    assert best.trials == 4


@pytest.mark.parametrize("price", ["learnt", 3, None, object()])
@pytest.mark.parametrize("call", [tp.evaluate, tp.explain, tp.rank])
def test_what_is_no_price_is_refused(call: Callable[..., Any], price: Any) -> None:
    with pytest.raises(tp.OperandTypeError, match="Expected price to be 'analytic', 'learned'"):
        call("y[i] = A[i,j] * x[j]", CALLS["y[i] = A[i,j] * x[j]"], price=price)


def test_formats_alone_have_no_entries_to_count() -> None:
    with pytest.raises(tp.ScheduleError, match="for formats alone"):
        tp.compile("y[i] = A[i,j] * x[j]", A="csr", x="d", price=drawn_model(0))
    assert tp.compile("y[i] = A[i,j] * x[j]", A="csr", x="d", price="analytic")
