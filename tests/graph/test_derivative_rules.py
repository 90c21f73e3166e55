"""The rules of what derivatives add, and the passes that can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.data.kernels import KERNELS
from taco_py.graph.backends.interpret_region import interpreted
from taco_py.graph.extents import Extent, evaluated
from taco_py.graph.graph_builder import GraphBuilder, rebuilt
from taco_py.graph.nodes import Fact, Graph, Input, Origin
from taco_py.graph.passes import without
from taco_py.graph.rules.rewrite import OF_DERIVATIVES, rewritten
from taco_py.graph.rules.sum_terms import MOST_TERMS, SumTerms

rng = np.random.default_rng(0)
x, g, b, w = rng.random((6, 4)), rng.random(4), rng.random(4), rng.random((6, 4))


def softmax(x: Any, g: Any, b: Any, w: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True) * w).sum()


def log_softmax(x: Any, g: Any, b: Any, w: Any) -> Any:
    z = x - x.max(-1, keepdims=True)
    return ((z - np.log(np.exp(z).sum(-1, keepdims=True))) * w).sum()


def logsumexp(x: Any, g: Any, b: Any, w: Any) -> Any:
    m = x.max(-1, keepdims=True)
    return (np.log(np.exp(x - m).sum(-1, keepdims=True)) + m).sum()


def layer_norm(x: Any, g: Any, b: Any, w: Any) -> Any:
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (((x - m) / np.sqrt(v + 1e-5) * g + b) * w).sum()


def batch_norm(x: Any, g: Any, b: Any, w: Any) -> Any:
    return (((x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * g + b) * w).sum()


def sums_in_a_row(graph: Graph) -> int:
    """The most sums of which each waits for the one before."""
    depth: dict[str, int] = {}
    for node in graph.nodes:
        before = max((depth.get(name, 0) for name in node.inputs), default=0)
        depth[node.name] = before + (node.operator in ("reduce", "contract"))
    return max(depth.values())


def count_of_sums(graph: Graph) -> int:
    return sum(node.operator in ("reduce", "contract") for node in graph.nodes)


@pytest.mark.parametrize(
    ("loss", "wrt", "before", "after"),
    [  # sums, and how many of them wait for each other
        (softmax, ("x",), (5, 4), (3, 2)),  # of exp(x - max(x)) alone
        (log_softmax, ("x",), (5, 3), (3, 2)),
        (logsumexp, ("x",), (4, 3), (2, 2)),
        (layer_norm, ("x", "g", "b"), (6, 4), (6, 3)),
        (batch_norm, ("x", "g", "b"), (6, 4), (4, 2)),  # two, and the scale's and the shift's
    ],
)
def test_sums_are_not_computed_that_cancel(
    loss: Callable[..., Any], wrt: tuple[str, ...], before: Any, after: Any
) -> None:
    gradient = tp.grad(loss, wrt)
    plain = without(gradient, "reduction elimination")
    graphs = [each.graph(x, g, b, w).primitives for each in (plain, gradient)]
    assert [(count_of_sums(each), sums_in_a_row(each)) for each in graphs] == [before, after]


@pytest.mark.rotating(3)
@pytest.mark.parametrize("loss", [softmax, logsumexp, layer_norm, batch_norm])
def test_gradients_are_the_same(loss: Callable[..., Any]) -> None:
    wrt = ("x", "g", "b") if "norm" in loss.__name__ else ("x",)
    gradient = tp.grad(loss, wrt)
    plain = without(gradient, "reduction elimination", "decomposition", "loss elimination")
    for found, expected in zip(gradient(x, g, b, w), plain(x, g, b, w), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-13)
    spoiled = x.copy()
    spoiled[0, 0] = np.nan
    for found, expected in zip(gradient(spoiled, g, b, w), plain(spoiled, g, b, w), strict=True):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


def test_what_a_function_sums_itself_is_summed() -> None:
    """The variance that corrects its rounding by the sum of differences, which is about 0."""

    def corrected(x: Any) -> Any:
        apart = x - x.mean()
        return (apart * apart).sum() - apart.sum() ** 2 / x.shape[0]

    graph = tp.value_and_grad(corrected, "x").graph(np.ones(5)).primitives
    forward = [n for n in graph.nodes if n.operator == "reduce" and not n.origin.derivative]
    assert len(forward) == 3


# ---------------------------------------------------------------- one rule at a time


def built(make: Callable[[GraphBuilder], str], derivative: bool = True) -> list[str]:
    """The primitives of a value of a[i,j], b[i,j], r[i] and c[j] after the rules."""
    n, m = Extent("size", ("a", 0)), Extent("size", ("a", 1))
    shapes = {"a": (n, m), "b": (n, m), "r": (n,), "c": (m,)}
    inputs = tuple(Input(name, Fact(shape, "float64")) for name, shape in shapes.items())
    builder = GraphBuilder(Graph(inputs, (), (), (), ("y",)))
    builder.origin = Origin("f", derivative)
    builder.renamed["y"] = make(builder)
    graph = rewritten(builder.finish(), OF_DERIVATIVES)
    kinds = (n.get("function") or n.operator for n in graph.nodes if n.operator != "broadcast")
    return [*kinds]


def rows(builder: GraphBuilder, name: str) -> str:
    return builder.layout("broadcast", name, (0, None), builder.facts["a"].shape)


def columns(builder: GraphBuilder, name: str) -> str:
    return builder.layout("broadcast", name, (None, 0), builder.facts["a"].shape)


def mean(builder: GraphBuilder, name: str) -> str:
    size = builder.number(builder.facts[name].shape[1], "float64")
    return rows(builder, builder.map("divide", builder.reduce("sum", name, (1,), "float64"), size))


def apart(builder: GraphBuilder, name: str = "a") -> str:
    return builder.map("subtract", name, mean(builder, name))


def summed(builder: GraphBuilder, name: str, axis: int = 1) -> str:
    return builder.reduce("sum", name, (axis,), "float64")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda B: summed(B, apart(B)), []),
        (lambda B: summed(B, B.map("multiply", apart(B), rows(B, "r"))), []),
        (lambda B: summed(B, B.map("add", "b", apart(B))), ["sum"]),
        (
            lambda B: summed(B, B.map("subtract", B.map("multiply", apart(B), rows(B, "r")), "b")),
            ["sum", "negative"],
        ),
        # of another array, over other modes, by what is summed over: nothing cancels
        (lambda B: summed(B, B.map("subtract", "b", mean(B, "a"))), None),
        (lambda B: summed(B, apart(B), 0), None),
        (lambda B: summed(B, B.map("multiply", apart(B), columns(B, "c"))), None),
        (lambda B: summed(B, B.map("multiply", "a", rows(B, "r"))), ["sum", "multiply"]),
        (lambda B: summed(B, B.map("divide", "a", rows(B, "r"))), ["sum", "divide"]),
        (lambda B: summed(B, B.map("divide", rows(B, "r"), "a")), ["divide", "sum", "multiply"]),
        (lambda B: summed(B, rows(B, "r")), ["multiply"]),
        (lambda B: B.map("add", "a", B.map("subtract", "b", "b")), []),
        (lambda B: B.map("multiply", "a", B.map("subtract", "b", "b")), []),
        (
            lambda B: B.map("subtract", B.map("subtract", "b", "b"), B.map("exp", "a")),
            ["exp", "negative"],
        ),
    ],
)  # fmt: skip
def test_rules_of_derivatives(make: Callable[[GraphBuilder], str], expected: Any) -> None:
    before = built(make, derivative=False)
    after = built(make)
    assert after == (before if expected is None else expected)
    assert before != after or expected is None


def test_terms_are_equal_only_where_values_are() -> None:
    """Sums of sums, quotients and diagonals, each with its numbers."""
    n = Extent("size", ("a", 0))
    shape = (n, n)
    inputs = tuple(Input(name, Fact(shape, "float64")) for name in ("a", "b"))
    builder = GraphBuilder(Graph(inputs, (), (), (), ()))
    arrays = {"a": rng.random((3, 3)), "b": rng.random((3, 3))}
    values: dict[str, Any] = {}
    for name in ("a", "b"):
        one, other = ("a", "b") if name == "a" else ("b", "a")
        total = builder.reduce("sum", name, (1,), "float64")
        values[total] = arrays[name].sum(1)
        wide = builder.layout("broadcast", total, (0, None), shape)
        tall = builder.layout("broadcast", total, (None, 0), shape)
        for function, compute in (("multiply", np.multiply), ("divide", np.divide)):
            for stretched, own in (
                (wide, arrays[name].sum(1)[:, None]),
                (tall, arrays[name].sum(1)),
            ):
                made = builder.map(function, other, stretched)
                for axes in ((0,), (1,), (0, 1)):
                    found = builder.reduce("sum", made, axes, "float64")
                    whole = compute(arrays[other], own).sum(axes)
                    values[found] = whole
        product = builder.contract((one, other), ((0, 1), (1, 2)), (0,), (n,), "float64")
        values[product] = (arrays[one] @ arrays[other]).sum(1)
    names = [*values]
    for one in names:
        for other in names:
            if np.shape(values[one]) == np.shape(values[other]):
                difference = builder.map("subtract", one, other)
                equal = np.allclose(values[one], values[other], rtol=1e-9)
                assert not SumTerms(builder).vanishes(difference) or equal, (one, other)
                assert one != other or SumTerms(builder).vanishes(difference)


# ---------------------------------------------------------------- random losses

STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "centre": lambda y, w, axis: y - y.mean(axis, keepdims=True),
    "shift": lambda y, w, axis: y - y.max(axis, keepdims=True),
    "exp": lambda y, w, axis: np.exp(y - y.max(axis, keepdims=True)),
    "share": lambda y, w, axis: np.abs(y) / (1 + np.abs(y).sum(axis, keepdims=True)),
    "softmax": lambda y, w, axis: (e := np.exp(y / 4)) / e.sum(axis, keepdims=True),
    "log": lambda y, w, axis: y - np.log(np.exp(y / 4).sum(axis, keepdims=True)),
    "norm": lambda y, w, axis: (
        (y - y.mean(axis, keepdims=True)) / np.sqrt(y.var(axis, keepdims=True) + 0.1)
    ),
    "length": lambda y, w, axis: y / np.sqrt((y * y).mean(axis, keepdims=True) + 0.1),
    "weigh": lambda y, w, axis: y * w,
    "rows": lambda y, w, axis: y * w.sum(axis, keepdims=True) - w.mean(axis, keepdims=True),
    "add": lambda y, w, axis: w - y / 2,
    "again": lambda y, w, axis: y * y.sum(axis, keepdims=True) + y,
    "product": lambda y, w, axis: (y @ w.T) @ w / 8,
    "total": lambda y, w, axis: y - y.sum() / y.size + w.sum(axis, keepdims=True),
    "tanh": lambda y, w, axis: np.tanh(y),
}


def computed(graph: Graph, **operands: Any) -> list[Any]:
    """The results of a graph of primitives as NumPy has them."""
    constants = {each.name: each.value for each in graph.constants}
    numbers = {
        each.name: np.dtype(each.fact.dtype).type(evaluated(each.extent, operands))
        for each in graph.numbers
    }
    arrays = [operands[each.name] for each in graph.inputs]
    return interpreted(graph).run({**constants, **numbers}, arrays)


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from([*STEPS]), st.integers(0, 1)), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_random_losses_have_the_same_gradients(steps: list[tuple[str, int]], seed: int) -> None:
    def loss(x: Any, w: Any) -> Any:
        for name, axis in steps:
            x = STEPS[name](x, w, axis)
        return (x * w).sum()

    made = np.random.default_rng(seed)
    operands = {"x": made.normal(size=(4, 3)), "w": made.normal(size=(4, 3))}
    gradient = tp.grad(loss, ("x", "w"))
    graphs = [
        each.graph(**operands).primitives
        for each in (gradient, without(gradient, "reduction elimination"))
    ]
    for found, expected in zip(*(computed(each, **operands) for each in graphs), strict=True):
        scale = 1 + np.nan_to_num(abs(expected)).max()
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * scale)
    assert count_of_sums(graphs[0]) <= count_of_sums(graphs[1])


# ---------------------------------------------------------------- passes


def test_operators_of_several_primitives_stand_apart_without_decomposition() -> None:
    def loss(X: Any, W: Any, y: Any) -> Any:
        return tp.nn.cross_entropy(np.tanh(X @ W) * 2 + 1, y)

    gradient = tp.grad(loss, "W")
    apart = without(gradient, "decomposition")
    W, y = rng.normal(size=(4, 3)), rng.integers(0, 3, 6)
    np.testing.assert_allclose(apart(x, W, y), gradient(x, W, y))
    regions = apart.graph(x, W, y).call.decision.selected.regions
    own = [
        {n.origin.operator.partition(" ")[0] for n in r.nodes if " " in n.origin.operator}
        for r in regions
        if r.kernel
    ]
    assert own.count({"cross_entropy"}) == 2 and own.count(set()) == 2 and len(own) == 4


def test_the_value_is_computed_without_loss_elimination() -> None:
    gradient = tp.grad(lambda x: (np.exp(x) ** 2).sum(), "x")
    whole = without(gradient, "loss elimination")
    assert whole in KERNELS.derived
    counts = [count_of_sums(each.graph(x).primitives) for each in (gradient, whole)]
    assert counts == [0, 1]
    np.testing.assert_allclose(whole(x), gradient(x))


def test_other_passes_are_refused() -> None:
    with pytest.raises(tp.ScheduleError, match="did you mean decomposition"):
        without(tp.grad(lambda x: x.sum(), "x"), "decompositions")


def test_long_rows_of_operators_are_looked_at_once() -> None:
    """Each value is written from those that it reads, however often it is read."""

    def row(x: Any) -> Any:
        for _ in range(60):
            x = x * x - x.mean(-1, keepdims=True)
        return x.sum()

    graph = tp.grad(row, "x").graph(x).primitives
    builder = rebuilt(graph)
    terms = SumTerms(builder)
    for name in builder.nodes:
        terms.of(name)
    assert {*builder.nodes} <= {*terms.terms}
    assert max(map(len, terms.terms.values())) <= MOST_TERMS
