"""Products that sparse operands sample are made where these store something, in both directions."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import taco_py as tp
from benchmarks.sampled import (
    gates,
    graph_attention,
    likelihood,
    masked_attention,
    most_bytes,
    row_normalised,
    symmetric,
)
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.selection.graph_dag import dag_of_graph
from taco_py.graph.selection.region_price import prices_of
from taco_py.language.legal.stored import is_sparse
from tests.graph.random_sampled import compare, make, on_pattern, operands_of, read_by


def both_ways(U: Any, V: Any, M: Any) -> Any:
    P = U @ V.T
    return (M * np.log1p(np.exp(-P))).sum() + (M.T * np.logaddexp(0, P.T)).sum()


def union(U: Any, V: Any, M: Any, N: Any) -> Any:
    P = np.tanh(U @ V.T)
    return (M * P).sum() + (np.where(N, P**2, 0) @ V).sum()


def outer(x: Any, M: Any) -> Any:
    E = np.maximum(x[:, None] + x, 0)
    return ((M * E) @ x).sum() + (M.T * np.exp(-E)).sum()


LOSSES = (
    graph_attention, masked_attention, row_normalised, symmetric, gates, likelihood, both_ways,
    union, outer,
)  # fmt: skip


def arguments(loss: Callable[..., Any], n: int) -> dict[str, Any]:
    """Operands of a loss, of n nodes with about 4 entries a row."""
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {name: rng.random((n, 8)) - 0.5 for name in "QKVUX"}
    made |= {"W": rng.random((8, 8)), "a": rng.random(8) - 0.5, "b": rng.random(8) - 0.5}
    made |= {name: matrix(n, seed) for seed, name in enumerate("MN")} | {"x": rng.random(n) - 0.5}
    names = loss.__code__.co_varnames[: loss.__code__.co_argcount]
    return {name: made[name] for name in names}


def matrix(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    found = sp.random_array((n, n), density=3 / n, format="csr", rng=rng) + sp.eye_array(n) / 2
    return sp.csr_array(found)


def in_both_directions(loss: Callable[..., Any], n: int) -> list[Any]:
    operands = arguments(loss, n)
    gradient = tp.value_and_grad(loss, tuple(operands))
    return [tp.fuse(loss).graph(**operands), gradient.graph(**operands)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda each: each.__name__)
def test_memory_grows_with_entries(loss: Callable[..., Any]) -> None:
    small, large = (
        [most_bytes(graph) for graph in in_both_directions(loss, n)] for n in (2000, 4000)
    )
    for one, other in zip(small, large, strict=True):
        assert other <= 2.1 * one + 1000
        assert other < 4000 * 4000 * 8 / 25


@pytest.mark.parametrize("loss", LOSSES, ids=lambda each: each.__name__)
def test_no_strategy_stores_a_value_of_all_pairs_of_nodes(loss: Callable[..., Any]) -> None:
    n = 500
    for graph in in_both_directions(loss, n):
        dag = dag_of_graph(graph.primitives)
        prices = prices_of(dag, graph.operands)
        for node in dag.nodes:
            facts = prices.operand_facts[node.name]
            if prod(facts.shape) >= n * n and not is_counted(graph.primitives, node):
                assert is_sparse(facts.type.format), node


def is_counted(graph: Graph, node: Node) -> bool:
    """Whether a value says which elements equal an extremum, or counts them: the others do too."""
    counted = {name for each in graph.nodes if each.operator == "reduce" for name in each.inputs}
    return node.get("function") == "equal" or (
        node.name in counted and node.get("function") == "where" and node.operator == "map"
    )


@settings(max_examples=6, deadline=None, derandomize=True, phases=[Phase.generate])
@given(seed=st.integers(0, 10**6))
def test_random_functions_store_no_value_of_all_pairs_of_nodes(seed: int) -> None:
    sampled = make(np.random.default_rng(seed))
    operands = operands_of(np.random.default_rng(seed), 300)
    function = sampled.function()
    for graph in (
        tp.fuse(function).graph(**operands),
        tp.value_and_grad(function, read_by(sampled)).graph(**operands),
    ):
        assert most_bytes(graph) < 300 * 300 * 8 / 2, sampled.text


@pytest.mark.parametrize("seed", range(2))
def test_random_functions_have_the_values_and_gradients_of_dense_operands(seed: int) -> None:
    compare(make(np.random.default_rng([seed, 5])))


@pytest.mark.parametrize("optimize", ["none", "greedy"])
def test_all_strategies_have_the_same_numbers(optimize: str) -> None:
    operands = arguments(outer, 30)
    expected_value, expected = tp.value_and_grad(outer, ("x", "M"))(**operands)
    value, found = tp.value_and_grad(outer, ("x", "M"), optimize=optimize)(**operands)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1].toarray(), expected[1].toarray(), rtol=1e-12)


def test_what_nobody_reads_may_be_infinite() -> None:
    rng = np.random.default_rng(0)
    M = sp.csr_array(np.diag(np.arange(5.0)))  # the first is an explicit zero below
    M = sp.csr_array((np.arange(5.0), np.arange(5), np.arange(6)), shape=(5, 5))
    x, y = rng.random(5) + 0.5, rng.random(5)
    y[0], x[1] = 0, 0

    def f(x: Any, y: Any, M: Any) -> Any:
        E = np.log(np.abs(x[:, None] - y))
        return (np.where(M, E, 0) * 2).sum(), (M * E).sum(1)

    E = np.log(np.abs(x - y))
    total, rows = tp.fuse(f)(x, np.where(np.arange(5) == 0, x[4], y), M)
    assert np.isfinite(total)
    np.testing.assert_allclose(total, 2 * E[1:].sum())
    np.testing.assert_allclose(rows[1:], np.arange(1, 5) * E[1:])


def test_rows_without_entries_and_fill_values() -> None:
    M = sp.csr_array(np.array([[1.0, 0, 2], [0, 0, 0], [0, 0, 3]]))
    Q = np.random.default_rng(0).random((3, 2))

    def f(Q: Any, M: Any) -> Any:
        S = Q @ Q.T
        T = np.where(M, S, -np.inf)
        return T.max(1), np.exp(T).sum(1) + (M * S).sum(1), np.where(M, np.exp(S), 1.0).sum(0)

    top, sums, filled = tp.fuse(f)(Q, M)
    S, there = Q @ Q.T, M.toarray() != 0
    np.testing.assert_allclose(top, np.where(there, S, -np.inf).max(1))
    np.testing.assert_allclose(sums, (np.where(there, np.exp(S), 0) + M.toarray() * S).sum(1))
    np.testing.assert_allclose(filled, np.where(there, np.exp(S), 1).sum(0))


def test_complements_and_whole_readers_are_made_everywhere() -> None:
    n = 40
    M, Q = matrix(n, 0) != 0, np.random.default_rng(0).random((n, 3))

    def f(Q: Any, M: Any) -> Any:
        S = Q @ Q.T
        return np.where(~M, S, 0).sum(0) + (M * S).sum(1)

    graph = tp.fuse(f).graph(Q, M)
    assert not re.search(r"^sampled ", graph.explain(), re.M)
    S = Q @ Q.T
    expected = np.where(M.toarray(), 0, S).sum(0) + (M.toarray() * S).sum(1)
    np.testing.assert_allclose(graph(), expected)


def test_integers_are_sampled_in_their_type() -> None:
    rng = np.random.default_rng(0)
    M = sp.csr_array(rng.integers(0, 2, (9, 9), dtype=np.int8))
    A = rng.integers(-90, 90, (9, 9), dtype=np.int8)

    def f(A: Any, M: Any) -> Any:
        E = A + A.T
        return np.where(M, E, 0), M.T * (E // 3)

    for found, expected in zip(tp.fuse(f)(A, M), f(A, M.toarray()), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.toarray(), expected)


def test_tensors_with_a_fill_value_are_no_masks_where_they_are_not_zero() -> None:
    rng = np.random.default_rng(0)
    D = np.where(rng.random((8, 8)) < 0.3, rng.random((8, 8)), 2.0)
    T = tp.Tensor.from_numpy(D, format="ds", fill_value=2.0) if hasattr(
        tp.Tensor, "from_numpy"
    ) else tp.tensor(D)  # fmt: skip
    Q = rng.random((8, 2))

    def f(Q: Any, T: Any) -> Any:
        S = Q @ Q.T
        return (T * np.exp(S)).sum(0), (T * S).sum(1)

    for found, expected in zip(tp.fuse(f)(Q, T), f(Q, D), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected)


def test_explain_says_what_is_sampled_where() -> None:
    operands = arguments(union, 50)
    told = tp.fuse(union).graph(**operands).explain()
    assert re.search(r"^sampled +p\d+ map tanh where M or N stores something: ", told, re.M)


def test_gradients_of_a_condition_are_sparse_and_of_arrays_dense() -> None:
    M, Q = matrix(20, 0), np.random.default_rng(0).random((20, 3))

    def f(M: Any, Q: Any) -> Any:
        return (np.where(M, Q @ Q.T, 0) ** 2).sum() + ((M * (Q @ Q.T)) @ Q).sum() * 0

    d_M, _ = tp.grad(lambda M, Q: (np.where(M, Q @ Q.T, 0) ** 2).sum(), ("M", "Q"))(M, Q)
    assert (sp.issparse(d_M) and not d_M.nnz) or not d_M.data.any()
    for form in ("coo", "csc"):
        d_Q = tp.grad(f, "Q")(M.asformat(form), Q)
        assert isinstance(d_Q, np.ndarray)


# ---------------------------------------------------------------- texts


TEXTS = {
    "S[i,j] = Q[i,k]*K[j,k]; y[i,j] = M[i,j]*exp(S[i,j]); z = N[i,j]*S[i,j]": ("y", "z"),
    "S[i,j] = Q[i,k]*K[j,k]; T[i,j] = exp(S[j,i]); y[i,j] = M[i,j]*T[j,i]": ("y",),
    "S[i,j] = x[i] - x[j]; y[i] = where(M[i,j], S[i,j]**2, 0); z[j] = N[i,j]/(1 + S[i,j]**2)":
        ("y", "z"),
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_temporaries_of_texts_are_stored_where_sparse_operands_read_them(text: str) -> None:
    operands = {n: each for n, each in arguments(everything, 60).items() if f"{n}[" in text}
    outputs = TEXTS[text]
    told = tp.explain(text, outputs=outputs, **operands)
    between = [line for line in told.splitlines() if re.match(r"between +[A-Z]\[i,j\]", line)]
    assert between or "kernel" in told
    assert not any("stored as dd" in line for line in between)
    dense = {n: e.toarray() if sp.issparse(e) else e for n, e in operands.items()}
    found, expected = (tp.evaluate(text, outputs=outputs, **each) for each in (operands, dense))
    for one, other in zip(found, expected, strict=True):
        one = one.toarray() if sp.issparse(one) else one
        np.testing.assert_allclose(one, other, rtol=1e-12)


def everything(Q: Any, K: Any, x: Any, M: Any, N: Any) -> Any:
    """The operands of texts."""


def test_derivatives_of_texts_form_nothing_dense() -> None:
    text = (
        "S[i,j] = Q[i,k]*K[j,k]; P[i,j] = where(M[i,j], exp(S[i,j]), 0); r[i] = P[i,j]; "
        "y[i] = P[i,j] / r[i] * x[j]"
    )
    operands = {n: e for n, e in arguments(everything, 60).items() if n != "N"}
    pullback = tp.vjp(text, **operands)
    told = pullback.explain(np.ones(60))
    assert not re.search(r"between +(S|d_S|d_P)\[.*stored as dd", told)
    dense = {n: e.toarray() if sp.issparse(e) else e for n, e in operands.items()}
    others = tp.vjp(text, **dense)(np.ones(60))
    for name, one, other in zip(operands, pullback(np.ones(60)), others, strict=True):
        if sp.issparse(one):
            one, other = one.toarray(), on_pattern(other, operands[name])
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "n[i] = sum(j, where(A[i,j] == b[i], 1.0, 0.5))",
        "n[j] = sum(i, where(A[i,j] < b[j], 2, 7))",
        "n = sum(i, sum(j, where(A[i,j] >= c, 1.0, 0.0)))",
        "n[i] = sum(j, where(b[i] != A[i,j], -1.0, 3.0))",
    ],
)
def test_choices_are_counted_over_entries(text: str) -> None:
    rng = np.random.default_rng(0)
    A = sp.csr_array(np.round(rng.random((12, 12)) * 3) * (rng.random((12, 12)) < 0.4))
    A.data[0] = 0  # an explicit zero
    operands = {"A": A, "b": np.round(rng.random(12) * 3), "c": 1.0}
    used = {n: e for n, e in operands.items() if re.search(rf"\b{n}\b", text.split("=", 1)[1])}
    assert "stored(A[" in tp.explain(text, **used)
    dense = {n: e.toarray() if sp.issparse(e) else e for n, e in used.items()}
    np.testing.assert_array_equal(tp.evaluate(text, **used), tp.evaluate(text, **dense))
