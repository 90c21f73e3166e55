"""Operators split into primitives, and the rules on these: before → after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Constant, Fact, Graph

x = np.arange(12.0).reshape(3, 4)
M = sp.csr_array(np.eye(3, 4) != 0)


def primitives(function: Callable[..., Any], *operands: Any) -> list[str]:
    """The primitives of a function, in order."""
    graph = tp.fuse(function).graph(*operands).primitives
    names = (node.get("function") or node.get("call") or "" for node in graph.nodes)
    return [f"{n.operator} {w}".strip() for n, w in zip(graph.nodes, names, strict=True)]


def _softmax(a: Any) -> Any:
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            _softmax,
            ["reduce max", "broadcast", "map subtract", "map exp", "reduce sum", "broadcast",
             "map divide"],
        ),
        (lambda a: a.mean(0), ["reduce sum", "map divide"]),
        (
            lambda a: a.var(),
            ["reduce sum", "map divide", "broadcast", "map subtract", "map multiply",
             "reduce sum", "map divide"],
        ),
        (lambda a: a.T.T + a, ["map multiply"]),
        (lambda a: a[:, None].squeeze(1) * 1, ["map multiply"]),
        (lambda a: np.exp(a) + np.exp(a), ["map exp", "map multiply"]),
        (lambda a: (a @ a.T).sum(), ["contract"]),
        (lambda a: (a[:, None] * a).sum(-1), ["contract"]),
        (lambda a: np.sort(a)[::-1], ["numpy sort", "numpy slice"]),
        (lambda a: a.reshape(4, 3), ["numpy reshape"]),
        (lambda a: a.reshape(a.shape[0], 1, -1) + 1, ["expand", "map add"]),
    ],
)  # fmt: skip
def test_operators_are_split_and_rewritten(
    function: Callable[..., Any], expected: list[str]
) -> None:
    found = primitives(function, x)
    layouts = ("transpose", "expand", "squeeze")
    assert [each for each in found if each not in layouts or each in expected] == expected


def test_values_beside_a_mask_are_computed_in_the_mask() -> None:
    def function(mask: Any, a: Any) -> Any:
        S = np.where(mask, a, -np.inf)
        return np.exp(S - S.max(1, keepdims=True))

    dense = primitives(function, M.toarray(), x)
    sparse = primitives(function, M, x)
    assert (dense.count("map where"), sparse.count("map where")) == (1, 2)
    found = tp.fuse(function)(M, x)
    assert sp.issparse(found)
    np.testing.assert_allclose(found.toarray(), function(M.toarray(), x))


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "int8", "bool", "float32"])
def test_types_are_numpys(dtype: str) -> None:
    a = np.arange(6).reshape(2, 3).astype(dtype)

    def function(a: Any) -> Any:
        return a + a, a.sum(0), a * 2, a @ a.T, np.where(a, a, 0)

    for one, other in zip(tp.fuse(function)(a), function(a), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-3)


RULED: list[tuple[Callable[..., Any], list[str]]] = [
    (lambda a: (np.exp(a) * 2)[1:], ["numpy slice", "map exp", "map multiply"]),
    (lambda a: (np.exp(a) + a[0])[:, 1], ["numpy slice"] * 3 + ["map exp", "map add"]),
    (lambda a: (a @ a.T)[0], ["numpy slice", "contract"]),
    (lambda a: (a * a).sum(1)[1:], ["numpy slice", "map multiply", "reduce sum"]),
    (lambda a: (np.exp(a.T) * 2).T, ["map exp", "map multiply"]),
    (lambda a: np.trace(a @ a.T), ["contract"]),
    (lambda a: (a @ a[0]).T, ["numpy slice", "contract"]),
    (lambda a: np.exp(np.negative(-a)) - (-a), ["map exp", "map add"]),
    (lambda a: np.exp(a * 1), ["map exp"]),
    (lambda a: a * a + np.square(a), ["map multiply", "map multiply"]),
    (lambda a: np.abs(a) ** 0.5 * np.abs(a) ** 0.5, ["map absolute"]),
    (lambda a: (a + 1) * (1 + a), ["map add", "map multiply"]),
]


@pytest.mark.parametrize(("function", "expected"), RULED)
def test_rules_leave_less_to_compute(function: Callable[..., Any], expected: list[str]) -> None:
    layouts = ("transpose", "expand", "squeeze", "broadcast")
    found = [each for each in primitives(function, x) if each not in layouts]
    assert sorted(found) == sorted(expected)
    fused = tp.fuse(function)
    for _ in range(3):  # the short way too
        np.testing.assert_allclose(fused(x), function(x), rtol=1e-12)


def test_what_the_caller_gets_is_an_array_of_its_own() -> None:
    found = tp.fuse(lambda a: (a * 1, np.negative(-a)))(x)
    assert not any(np.shares_memory(each, x) for each in found)


def test_a_part_of_size_1_by_the_trace_stays() -> None:
    def function(a: Any) -> Any:
        return np.minimum(a, (a @ a.T)[:, 1:])

    a = np.ones((2, 2))
    np.testing.assert_allclose(tp.fuse(function)(a), function(a))


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.swapaxes(np.sum(a, axis=(0, 1), keepdims=True), 0, -1) ** 3,
        lambda a: np.all(a, axis=-1, keepdims=True).T[0] * 2,
    ],
)
def test_a_transpose_that_puts_modes_in_is_none_for_rules(function: Callable[..., Any]) -> None:
    for x in (np.arange(10.0).reshape(2, 5), np.arange(5.0)[None]):
        np.testing.assert_allclose(tp.fuse(function)(x), function(x))


def test_a_new_number_takes_the_name_of_no_other() -> None:
    """k1 is there, k0 was left out: the next one is no k1."""
    kept = Constant("k1", Fact((), "float", weak=True), 2.0)
    builder = GraphBuilder(Graph((), (kept,), (), (), ()))
    made = builder.literal(5.0)
    assert builder.constants[made].value == 5.0
    assert builder.constants[builder.literal(2.0)].value == 2.0


def _derived(function: Callable[..., Any], *operands: Any) -> list[str]:
    """The primitives of a gradient by the first argument, without layouts."""
    graph = tp.grad(function, "a").graph(*operands).primitives
    names = (node.get("function") or node.get("call") or "" for node in graph.nodes)
    found = [f"{n.operator} {w}".strip() for n, w in zip(graph.nodes, names, strict=True)]
    return [each for each in found if each not in ("transpose", "expand", "squeeze", "broadcast")]


def test_parts_of_a_gradient_are_put_together() -> None:
    def gates(a: Any) -> Any:
        z = np.exp(a)
        return (z[:, :2] * z[:, 2:]).sum() + z[0, 1] + z[::-2].sum() * z[1].sum()

    found = _derived(gates, x)
    assert found.count("numpy parts") == 1 and "numpy scatter" not in found
    along = np.random.default_rng(0).standard_normal(x.shape)
    a = x / 12
    ahead, behind = (gates(a + step * along) for step in (1e-6, -1e-6))
    slope = (tp.grad(gates, "a")(a) * along).sum()
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-7)


def test_numbers_are_computed_without_a_kernel() -> None:
    found = _derived(lambda a: -np.tanh(a[1:]).mean(), x)
    assert sorted(found) == ["map multiply", "map multiply", "map multiply", "map subtract",
                             "map tanh", "numpy broadcast_to", "numpy concatenate",
                             "numpy slice"]  # fmt: skip
    graph = tp.grad(lambda a, n: (a / n).mean(), "a")
    np.testing.assert_array_equal(graph(x, 0.0), np.full(x.shape, np.inf))
