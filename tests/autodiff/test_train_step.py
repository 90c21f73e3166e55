"""tp.train_step: updates by optimisers, against NumPy written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.graph.passes import without
from tests.machines import SERVER, on_machine

rng = np.random.default_rng(0)
X, w0 = rng.random((20, 3)), np.array([1.0, -2.0, 0.5])
y = X @ w0


def loss(w: Any, X: Any, y: Any) -> Any:
    return ((X @ w - y) ** 2).mean()


def gradient(w: Any) -> Any:
    return 2 * X.T @ (X @ w - y) / len(y)


def sgd(w: Any, steps: int) -> Any:
    for _ in range(steps):
        w = w - 0.1 * (gradient(w) + 0.01 * w)
    return w


def momentum(w: Any, steps: int) -> Any:
    m = np.zeros(3)
    for _ in range(steps):
        m = 0.8 * m + gradient(w)
        w = w - 0.1 * m
    return w


def adam(w: Any, steps: int) -> Any:
    m, v = np.zeros(3), np.zeros(3)
    for step in range(1, steps + 1):
        g = gradient(w)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return w


def test_a_loss_that_nobody_asks_for_is_not_computed() -> None:
    def tall(w: Any, X: Any, y: Any) -> Any:
        return (np.exp(X @ w - y) ** 2).sum()

    whole, rest = (tp.train_step(tall, "sgd", value=each) for each in (True, False))
    state = whole.begin(w=w0)
    (value, after), (none, other) = (each(state, X=X, y=y) for each in (whole, rest))
    assert none is None and value == pytest.approx(tall(w0, X, y))
    np.testing.assert_allclose(after.parameters["w"], other.parameters["w"])
    kept = without(rest, "loss elimination")
    counts = [
        sum(n.operator == "reduce" for n in each.graph(state, X=X, y=y).primitives.nodes)
        for each in (whole, rest, kept)
    ]
    assert counts[0] == counts[2] > counts[1]
    np.testing.assert_allclose(kept(state, X=X, y=y)[1].parameters["w"], other.parameters["w"])


@pytest.mark.parametrize(
    ("name", "expected", "settings"),
    [
        ("sgd", sgd, {"rate": 0.1, "decay": 0.01}),
        ("momentum", momentum, {"rate": 0.1, "momentum": 0.8}),
        ("adam", adam, {"rate": 0.1}),
    ],
)
def test_steps_are_those_of_the_optimiser(name: str, expected: Any, settings: Any) -> None:
    step = tp.train_step(loss, optimizer=name, **settings)
    state = step.begin(w=np.zeros(3))
    values = []
    for _ in range(4):
        value, state = step(state, X=X, y=y)
        values.append(value)
    np.testing.assert_allclose(state.parameters["w"], expected(np.zeros(3), 4))
    assert state.count == 4 and values[0] == pytest.approx(loss(np.zeros(3), X, y))


def test_parameters_are_changed_in_place_only_when_asked() -> None:
    for in_place in (False, True):
        w = np.zeros(3)
        step = tp.train_step(loss, optimizer="sgd", in_place=in_place)
        _, state = step(step.begin(w=w), X=X, y=y)
        assert (state.parameters["w"] is w) == in_place
        assert np.any(w) == in_place


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_parameters_and_moments_keep_their_type(name: str) -> None:
    step = tp.train_step(loss, optimizer=name)
    data = {"X": X.astype(np.float32), "y": y.astype(np.float32)}
    value, state = step(step.begin(w=np.zeros(3, np.float32)), **data)
    kept = [*state.parameters.values(), *(each["w"] for each in state.moments.values())]
    assert {value.dtype, *(each.dtype for each in kept)} == {np.dtype(np.float32)}
    told = step.graph(state, **data).explain()
    formats = [line for line in told.splitlines() if line.strip().startswith("formats ")]
    assert formats and not [line for line in formats if "float64" in line]


def test_a_step_is_one_graph() -> None:
    step = tp.train_step(loss)
    told = step.graph(step.begin(w=np.zeros(3)), X=X, y=y).explain()
    assert "runs      1 kernel calls, 0 calls of NumPy" in told


def test_the_rate_is_a_number_of_each_call() -> None:
    step = tp.train_step(loss, optimizer="sgd", rate=0.1)
    _, state = step(step.begin(w=np.zeros(3)), X=X, y=y)
    step.settings["rate"] = 0.0
    _, after = step(state, X=X, y=y)
    np.testing.assert_array_equal(after.parameters["w"], state.parameters["w"])
    assert sum(map(len, step.fused.traces.values())) == 1


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("rat", 0.1, "settings among rate, .* for adam, found rat"),
        ("rate", -0.1, "rate to be a number of at least 0, found -0.1"),
        ("rate", float("nan"), "rate to be a number of at least 0, found nan"),
        ("beta2", 1.0, "beta2 to be a number of at least 0 and less than 1, found 1.0"),
    ],
)
def test_settings_are_checked_in_each_step(key: str, value: float, said: str) -> None:
    with pytest.raises(tp.OperandError, match=said):
        tp.train_step(loss, **{key: value})
    step = tp.train_step(loss, in_place=True)
    w = np.ones(3)
    state = step.begin(w=w)
    step.settings[key] = value
    with pytest.raises(tp.OperandError, match=said):
        step(state, X=X, y=y)
    assert np.all(w == 1)


@pytest.mark.parametrize(("blas", "called"), [("avx512", True), ("old_blas", False)])
def test_products_that_threads_share_are_compiled_for_a_step(blas: str, called: bool) -> None:
    """For a single call, the library's routine need not be compiled, unless its vectors have half
    the width; a function has many."""
    w, v = np.ones((256, 128)), np.ones((160, 256))
    with on_machine(f"{SERVER}+{blas}"):
        step = tp.train_step(lambda w, v: (v @ w).max())
        state = step.begin(w=w)
        large, small = (step.graph(state, v=each).explain() for each in (v, v[:4]))
        alone = tp.explain("p[i,j] = v[i,k] * w[k,j]", v=v, w=w)
        assert "dgemm" not in large + tp.fuse(lambda w, v: v @ w).graph(w, v).explain()
        assert ("dgemm" in small, "dgemm" in alone) == (True, called)


def test_fused_functions_keep_their_strategy() -> None:
    fused = tp.fuse(loss, optimize="greedy")
    assert tp.train_step(fused).fused.optimize == "greedy"
    assert tp.grad(fused, "w").optimize == "greedy"
    assert tp.grad(fused, "w", optimize="none").optimize == "none"


def test_what_is_no_parameter_is_refused() -> None:
    with pytest.raises(tp.OperandError, match="optimizer to be one of sgd, momentum, adam"):
        tp.train_step(loss, optimizer="adagrad")
    with pytest.raises(tp.OperandError, match="settings among rate, decay for sgd, found beta1"):
        tp.train_step(loss, optimizer="sgd", beta1=0.5)
    step = tp.train_step(loss)
    with pytest.raises(tp.OperandError, match="parameters among w, X, y, found v"):
        step.begin(v=np.zeros(3))
    with pytest.raises(tp.OperandError, match="arrays of real or complex numbers, found w of list"):
        step.begin(w=[0.0])
    with pytest.raises(tp.OperandError, match="a parameter at least"):
        step.begin()


def test_adam_of_complex_parameters_goes_downhill() -> None:
    step = tp.train_step(lambda z: (np.abs(z) ** 2).sum(), rate=0.1)
    state = step.begin(z=np.array([1j, -2.0, 1 + 1j]))
    for _ in range(60):
        value, state = step(state)
    assert value < 0.1


def test_what_cannot_be_changed_in_place_is_refused() -> None:
    step, w = tp.train_step(lambda w, v: (w * v).sum(), in_place=True), np.zeros(4)
    with pytest.raises(tp.OperandError, match=r"memory of their own .* found w and v"):
        step.begin(w=w[:3], v=w[1:])
    w.setflags(write=False)
    with pytest.raises(tp.OperandError, match="changed in place, found w, which is read-only"):
        step.begin(w=w, v=np.zeros(4))
    with pytest.raises(tp.OperandError, match="rate to be a number of at least 0, found 'a'"):
        tp.train_step(loss, rate="a")  # type: ignore[arg-type]
    step = tp.train_step(loss)
    state = step.begin(w=np.zeros(3))
    with pytest.raises(
        tp.OperandError, match="Expected the data X, y for a step, found X: missing"
    ):
        step(state, X=X)
    with pytest.raises(tp.OperandError, match="the data X, y for a step, found X, y, z: got an"):
        step.graph(state, X=X, y=y, z=y)
    with pytest.raises(tp.OperandError, match="data that are no parameters, found w"):
        step(state, X=X, y=y, w=w)
    step = tp.train_step(lambda w, v: w.sum())
    with pytest.raises(tp.DerivativeError, match="parameters that the loss uses, found v"):
        step(step.begin(w=np.zeros(4), v=np.zeros(4)))
    with pytest.raises(tp.OperandTypeError, match="the state of a training, found int"):
        step(3)  # type: ignore[arg-type]
