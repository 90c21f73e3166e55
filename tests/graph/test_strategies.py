"""Kernels of graphs chosen by each strategy: NumPy's numbers, and prices that compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.orchestrate.choosers import CHOOSERS
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.primitives.sampled_values import OPERATOR as SAMPLED
from taco_py.graph.primitives.sampled_values import operator_of
from taco_py.graph.run.graph_program import MANY_CALLS, KernelRun, make_program
from taco_py.graph.selection import strategies
from taco_py.graph.selection.graph_dag import dag_of_graph
from taco_py.graph.selection.strategies import STRATEGIES, choose_regions
from taco_py.graph.traced_graph import TracedGraph
from tests.graph.blocks import BLOCKS, operands_of, reference, walk_weights

FEW = (2,)
"""Primitives of candidates besides the stages, so that few are planned."""


def graph_of(name: str, size: int = 24) -> TracedGraph:
    """The graph of a block."""
    return tp.fuse(BLOCKS.get(name, walk_weights)).graph(*operands_of(name, size))


@pytest.mark.rotating(12)
@pytest.mark.parametrize("optimize", STRATEGIES)
@pytest.mark.parametrize("name", BLOCKS)
def test_each_strategy_gives_numpys_numbers(
    name: str, optimize: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategies, "SIZES", FEW)
    fused = tp.fuse(BLOCKS[name], optimize=optimize)
    for size in (12, 17):
        operands = operands_of(name, size)
        np.testing.assert_allclose(fused(*operands), reference(name, operands), rtol=1e-9)


def test_orchestrated_kernels_cost_no_more_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "SIZES", FEW)
    for name in BLOCKS:
        graph = graph_of(name)
        chosen = choose_regions(graph.primitives, graph.operands, "orchestrate")
        costs = {each.strategy: each.expected for each in chosen.alternatives}
        assert {*costs} == {"none", "stages", "greedy", "orchestrate"}
        least = costs.pop("orchestrate")
        assert least is not None
        assert all(cost is not None and least <= cost * (1 + 1e-9) for cost in costs.values())
        assert chosen.selected.expected is not None and chosen.priced[0] >= len(BLOCKS)


def test_a_sparse_value_is_computed_again_where_it_is_read_late() -> None:
    operands = operands_of("walk_weights", 60)
    fused = tp.fuse(walk_weights, optimize="orchestrate")
    np.testing.assert_allclose(fused(*operands), walk_weights(*operands), rtol=1e-12)
    graph = fused.graph(*operands)
    chosen = graph.call.decision
    assert [node.get("function") for node in chosen.recomputed] == ["multiply", "sqrt"]
    assert chosen.without is not None and chosen.selected.expected is not None
    assert chosen.selected.expected < 0.75 * chosen.without
    first, last = (step for step in graph.call.program.steps if isinstance(step, KernelRun))
    assert {*chosen.recomputed} <= {*first.region.nodes} & {*last.region.nodes}
    told = graph.explain()
    assert "again     p2 sqrt in kernels 1, 2" in told and "made once" in told
    assert "orchestrate  2 kernels, expected" in told and "states →" in told


def test_values_between_kernels_stay_sparse_with_their_fill_value() -> None:
    graph = graph_of("attention")
    dag = dag_of_graph(graph.primitives)
    chosen = choose_regions(graph.primitives, graph.operands, "none")
    scores = next(node.name for node in dag.nodes if node.get("function") == "where")
    program = make_program(graph.primitives, lambda _: chosen.selected.regions)
    values = program.begin(graph.operands)
    for step in program.steps:
        step.run(program.graph, values)
        if scores in values:
            break
    found = values[scores]
    assert isinstance(found, tp.Tensor) and not found.format.is_dense
    assert found.fill_value == -np.inf


def test_choosers_keep_products_sparse_that_a_mask_restricts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strategies, "SIZES", (3,))
    graph = graph_of("attention", 20)
    choosing, _ = strategies._prepare_choice(graph.primitives, graph.operands, MANY_CALLS)
    nodes = choosing.dag.nodes
    product = next(n for n in nodes if operator_of(n) == "contract")
    assert product.operator == SAMPLED
    for name in ("greedy", "orchestrate"):
        choice = CHOOSERS[name](choosing.dag.dag, choosing.candidates, choosing.price)
        made = {nodes[p].name for kernel in choice.kernels for p in bits(kernel.outputs)}
        dense = made - choosing.prices.stored.keys()
        assert product.name not in dense and not any(map(choosing.kept_from, choice.kernels))


def test_a_result_that_users_get_is_as_without_strategies() -> None:
    def parts(A: Any, x: Any) -> Any:
        S = A * x
        return S, np.cumsum(S.sum(1)), np.sqrt(S)

    rng = np.random.default_rng(0)
    A = sp.random_array((8, 8), density=0.4, rng=rng, format="csr")
    x = rng.random(8)
    for optimize in ("stages", "none"):
        found = tp.fuse(parts, optimize=optimize)(A, x)
        assert [type(each) for each in found] == [sp.csr_array, np.ndarray, sp.csr_array]
        np.testing.assert_allclose(found[2].toarray(), np.sqrt(A.toarray() * x))


def test_other_names_are_refused() -> None:
    with pytest.raises(tp.ScheduleError, match="optimize= to be one of none, stages") as error:
        tp.fuse(walk_weights, optimize="gready")
    assert "did you mean greedy?" in str(error.value)
    with pytest.raises(tp.ScheduleError, match="found 3"):
        tp.fuse(walk_weights, optimize=3)  # type: ignore[call-overload]


def test_methods_keep_their_strategy() -> None:
    class Layer:
        @tp.fuse(optimize="greedy")
        def apply(self, x: Any) -> Any:
            return x + 1

    assert Layer().apply.optimize == "greedy"


def test_operands_that_do_not_fit_are_refused_by_the_call() -> None:
    @tp.fuse(optimize="orchestrate")
    def product(x: Any, y: Any) -> Any:
        return np.exp(x) @ y

    with pytest.raises((tp.TacoError, ValueError)):
        product(np.ones((2, 3)), np.ones(4))
    np.testing.assert_allclose(product(np.zeros((2, 3)), np.ones(3)), [3, 3])


def test_strategies_look_at_few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "MOST_CANDIDATES", 40)
    graph = graph_of("feed_forward")
    dag = dag_of_graph(graph.primitives)
    stages = STRATEGIES["stages"](graph.primitives, (), MANY_CALLS).selected.regions
    found = strategies.candidates_of(dag, stages)
    assert len(found.kernels) <= 40 + 1 + 40 // 4
    whole = dag.kernel(stages[0])
    assert whole is not None and whole in found.kernels
