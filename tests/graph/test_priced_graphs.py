"""Functions whose plans a price compares: values are those of NumPy, and explain() tells of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.selection.graph_dag import dag_of_graph
from taco_py.graph.selection.region_price import prices_of
from taco_py.graph.selection.strategies import STRATEGIES, choose_regions
from taco_py.tuning.bench import priced_schedule
from taco_py.tuning.prices.forest import forest_of
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.price_model import Origin
from tests.graph.random_programs import failures
from tests.prices.test_forest import wide_model

rng = np.random.default_rng(0)
A = sp.random_array((60, 50), density=0.1, format="csr", rng=rng)
MASK = sp.csr_array(np.tril(np.ones((20, 20), bool)))
Array = np.ndarray[Any, Any]


def layer(X: Any, W: Any, b: Any) -> Any:
    h = np.maximum(X @ W + b, 0)
    return h, h.sum(0)


def normalized(A: Any, x: Any) -> Any:
    y = A @ x
    return A.sum(1), y / (np.abs(y).max() + 1)


def masked(Q: Any, K: Any, M: Any) -> Any:
    S = np.where(M, Q @ K.T, -np.inf)
    P = np.exp(S - S.max(-1, keepdims=True))
    return P / P.sum(-1, keepdims=True) @ K


def gathered(E: Any, W: Any, tokens: Any) -> Any:
    return np.tanh(E[tokens] @ W).sum(0)


def joined(x: Any) -> Any:
    return np.concatenate([np.exp(x[:, :3]), x[:, 3:] * 2], 1)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "two results": (layer, (rng.random((40, 9)), rng.random((9, 8)), rng.random(8))),
    "sparse": (normalized, (A, rng.random(50))),
    "sampled": (masked, (rng.random((20, 4)), rng.random((20, 4)), MASK)),
    "positions": (gathered, (rng.random((30, 6)), rng.random((6, 5)), rng.integers(0, 30, 12))),
    "parts": (joined, (rng.random((7, 8)),)),
}


def by_numpy(function: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[Array, ...]:
    """The results of NumPy for dense operands."""
    dense = (each.toarray() if sp.issparse(each) else each for each in operands)
    with np.errstate(all="ignore"):
        result = function(*dense)
    return result if isinstance(result, tuple) else (result,)


def as_dense(result: Any) -> tuple[Array, ...]:
    results = result if isinstance(result, tuple) else (result,)
    return tuple(each.toarray() if sp.issparse(each) else np.asarray(each) for each in results)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("optimize", ["stages", "none", "orchestrate"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_numpy(name: str, seed: int, optimize: str) -> None:
    function, operands = FUNCTIONS[name]
    fused = tp.fuse(function, price=wide_model(seed), optimize=optimize)
    for _ in range(2):
        pairs = zip(as_dense(fused(*operands)), by_numpy(function, operands), strict=True)
        for actual, expected in pairs:
            np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_random_programs() -> None:
    assert not [*failures(5, seed=700, priced=True)]


def loss(W: Any, X: Any, y: Any) -> Any:
    return ((np.tanh(X @ W) - y) ** 2).sum()


DATA = {"X": rng.random((30, 5)), "y": rng.random((30, 3))}
W = rng.random((5, 3))


@pytest.mark.parametrize("seed", range(3))
def test_gradients_and_steps_are_those_of_the_analytic_price(seed: int) -> None:
    model, operands = wide_model(seed), (W, *DATA.values())
    wanted, gradient = tp.value_and_grad(loss, "W")(*operands)
    for function in (tp.value_and_grad(loss, "W", price=model),
                     tp.value_and_grad(tp.fuse(loss, price=model), "W")):  # fmt: skip
        value, other = function(*operands)
        np.testing.assert_allclose(value, wanted)
        np.testing.assert_allclose(other, gradient)
        assert "learned" in function.graph(*operands).explain()
    np.testing.assert_allclose(tp.grad(loss, "W", price=model)(*operands), gradient)
    usual, priced = tp.train_step(loss), tp.train_step(loss, price=model)
    state, other_state = usual.begin(W=W), priced.begin(W=W)
    for _ in range(3):
        value, state = usual(state, **DATA)
        other, other_state = priced(other_state, **DATA)
        np.testing.assert_allclose(other, value)
    np.testing.assert_allclose(other_state.parameters["W"], state.parameters["W"])
    assert "learned" in priced.graph(other_state, **DATA).explain()


def test_gradients_have_the_price_of_the_function_unless_they_name_one() -> None:
    fused = tp.fuse(loss, price=wide_model(0))
    assert tp.grad(fused, "W").options.price == wide_model(0)
    assert tp.grad(fused, "W", price="analytic").options.price == "analytic"
    assert tp.train_step(fused).fused.options.price == wide_model(0)


def test_lazy_arrays_and_graphs_of_files_take_it(tmp_path: Path) -> None:
    later = tp.lazy(price=wide_model(1))
    product = later(A) @ later(np.ones(50)) + 1
    np.testing.assert_allclose(product.compute(), A.sum(1) + 1)
    assert "learned" in product.graph().explain()
    product.graph().save(tmp_path / "graph.json")
    loaded = tp.graph.load(tmp_path / "graph.json", price=wide_model(1))
    np.testing.assert_allclose(loaded(A, np.ones(50)), A.sum(1) + 1)
    assert "learned" in loaded.explain(A, np.ones(50))


def test_methods_have_the_price() -> None:
    class Model:
        weights = np.arange(50.0)

        @tp.fuse(price=wide_model(2))
        def predict(self, A: Any) -> Any:
            return A @ self.weights

    model = Model()
    np.testing.assert_allclose(model.predict(A), A @ model.weights)
    assert model.predict.options.price == wide_model(2)


def test_backends_take_what_pays_by_the_price() -> None:
    function, operands = FUNCTIONS["two results"]
    fused = tp.fuse(function, price=wide_model(1), backends=("blas",))
    for actual, expected in zip(fused(*operands), by_numpy(function, operands), strict=True):
        np.testing.assert_allclose(actual, expected)


def test_explain_says_which_price_decided() -> None:
    model = replace(wide_model(77), origin=Origin("Z80", "gcc 1", "1999-01-01", 7), digest="")
    function, operands = FUNCTIONS["sparse"]
    lines = tp.fuse(function, price=model).graph(*operands).explain().splitlines()
    words = "learned 1999-01-01 on Z80, another machine than this, so that it is a hint"
    assert f"price     {words}" in lines
    assert any(line.startswith(f"  price     {words}; ") for line in lines)
    plain = tp.fuse(function).graph(*operands).explain()
    assert "learned" not in plain and "  price     as shipped" in plain
    shipped = tp.fuse(function, price="learned").graph(*operands).explain()
    assert "\nprice     learned " in shipped


def test_the_price_decides() -> None:
    """A model that finds kernels of one thread cheap has them in the plans."""
    feature = [*FEATURES].index("serial")
    tree = {"feature": feature, "threshold": 0.5, "left": {"value": 6.0}, "right": {"value": -6.0}}
    model = replace(wide_model(0), middle=forest_of([tree]), digest="")
    function, operands = FUNCTIONS["sparse"]
    assert "serial()" in tp.fuse(function, price=model).graph(*operands).explain()
    assert "serial()" not in tp.fuse(function).graph(*operands).explain()


def test_candidates_have_corrected_seconds() -> None:
    """A model that adds three powers of two to each kernel multiplies prices by eight, less what
    calls take."""
    every = forest_of([{"value": 3.0}])
    model = replace(wide_model(0), middle=every, spread=forest_of([{"value": 0.0}]), digest="")
    function, operands = FUNCTIONS["sparse"]
    graph = tp.fuse(function).graph(*operands)
    decisions = [
        choose_regions(graph.primitives, graph.operands, "orchestrate", options)
        for options in (graph.call.options, graph.call.options.with_price(model))
    ]
    usual, corrected = (decision.alternatives[0].expected for decision in decisions)
    assert usual is not None and corrected is not None and 1 < corrected / usual < 8
    dag = dag_of_graph(graph.primitives)
    regions = decisions[0].selected.regions
    plain, priced = (prices_of(dag, graph.operands, price) for price in ("analytic", model))
    calls = plain.costs.call_seconds
    for region in regions:
        assert plain.of(region) < priced.of(region) <= 8 * (plain.of(region) - calls) + calls


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_that_were_made_before_choose_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, operands = FUNCTIONS[name]
    fused = tp.fuse(function, price=wide_model(4))
    first = as_dense(fused(*operands))
    counts = {"planned": 0}
    plan = priced_schedule.priced

    def counted(computation: Any) -> Any:
        counts["planned"] += 1
        return plan(computation)

    monkeypatch.setattr(priced_schedule, "priced", counted)
    for _ in range(3):
        for actual, expected in zip(as_dense(fused(*operands)), first, strict=True):
            np.testing.assert_array_equal(actual, expected)
    assert counts == {"planned": 0}
    tp.fuse(function, price=wide_model(5))(*operands)
    assert counts["planned"] >= 1


@pytest.mark.parametrize("price", ["learnt", 3, object()])
@pytest.mark.parametrize("call", [
    lambda price: tp.fuse(loss, price=price),
    lambda price: tp.fuse(price=price),
    lambda price: tp.grad(loss, "W", price=price),
    lambda price: tp.value_and_grad(loss, "W", price=price),
    lambda price: tp.train_step(loss, price=price),
    lambda price: tp.lazy(price=price),
])  # fmt: skip
def test_what_is_no_price_is_refused(call: Callable[[Any], Any], price: Any) -> None:
    with pytest.raises(tp.OperandTypeError, match="Expected price to be 'analytic', 'learned'"):
        call(price)


def test_calls_inside_of_traced_functions_name_no_price() -> None:
    @tp.fuse
    def product(A: Any, x: Any) -> Any:
        return tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x, price="learned")

    with pytest.raises(tp.TacoError, match=r"without price= in a traced function(.|\n)*tp.fuse"):
        product(A, np.ones(50))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_takes_it(strategy: str) -> None:
    function, operands = FUNCTIONS["parts"]
    fused = tp.fuse(function, price=wide_model(1), optimize=strategy)
    np.testing.assert_allclose(fused(*operands), function(*operands))
